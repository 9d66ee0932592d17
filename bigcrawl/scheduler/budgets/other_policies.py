"""The policies besides STAR, and those that users write; imported where BIGCRAWL_BUDGET_POLICY names one."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bigcrawl.exceptions import ConfigError
from bigcrawl.given import import_object
from bigcrawl.scheduler.budgets.policy import NO_POLICY, StarBudgets, refuse_maximum_below_base
from bigcrawl.scheduler.rules.budget_rules import BUDGET_LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.config import BudgetConfig
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.in_degrees import InDegreeArray, InDegreeCounts
    from bigcrawl.scheduler.budgets.policy import BudgetArray, BudgetPolicy, PolicyFactory


class FixedBudgets:
    def __init__(self, config: BudgetConfig, counts: InDegreeCounts) -> None:
        self._base = config.base

    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        return np.full(in_degrees.shape, self._base, dtype=np.uint32)


class ProportionalBudgets:
    def __init__(self, config: BudgetConfig, counts: InDegreeCounts) -> None:
        refuse_maximum_below_base(config)
        self._base, self._maximum = config.base, config.maximum

    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        return np.clip(in_degrees.astype(np.int64) * self._base, self._base, self._maximum).astype(np.uint32)


class InverseBudgets:
    def __init__(self, config: BudgetConfig, counts: InDegreeCounts) -> None:
        refuse_maximum_below_base(config)
        self._base, self._maximum = config.base, config.maximum

    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        shared = self._maximum // np.maximum(in_degrees.astype(np.int64), 1)
        found: BudgetArray = np.maximum(shared, self._base).astype(np.uint32)
        return found


class PopularOnly(StarBudgets):
    def __init__(self, config: BudgetConfig, counts: InDegreeCounts) -> None:
        super().__init__(config, counts)
        self._popular = config.top

    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        worst = self.ranks.worst_ranks(in_degrees)
        return np.where(worst <= self._popular, self.budgets_by_rank(in_degrees, worst), 0).astype(np.uint32)


POLICIES: Final[dict[str, PolicyFactory]] = {
    "star": StarBudgets,
    "fixed": FixedBudgets,
    "proportional": ProportionalBudgets,
    "inverse": InverseBudgets,
    "popular-only": PopularOnly,
}


def other_policy(config: BudgetConfig, counts: InDegreeCounts) -> BudgetPolicy:
    name = config.policy
    if name in POLICIES:
        return POLICIES[name](config, counts)
    if "." not in name:
        known = [*POLICIES, NO_POLICY]
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
        hint = f"did you mean {close[0]}? " if close else ""
        raise ConfigError(
            f"BIGCRAWL_BUDGET_POLICY is {name!r}; {hint}must be one of {', '.join(known)}, or the import path of a "
            f"policy of your own, e.g. my.module.Policy"
        )
    return _CheckedPolicy(name, _import_factory(name), config, counts)


class _CheckedPolicy:
    def __init__(self, name: str, factory: Callable[..., Any], config: BudgetConfig, counts: InDegreeCounts) -> None:
        self._name = name
        try:
            self._policy = factory(config, counts)
        except Exception as error:
            raise ConfigError(
                f"BIGCRAWL_BUDGET_POLICY {name} cannot be constructed from (BudgetConfig, InDegreeCounts): {error!r}"
            ) from error
        for sample in ([], [0, 1, 2, 2, 100, (1 << 32) - 1]):  # fail at start rather than in the first step
            self.budgets(np.arange(len(sample), dtype=np.uint64), np.array(sample, dtype=np.uint32))

    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        try:
            found = np.asarray(self._policy.budgets(plds, in_degrees))
        except Exception as error:
            raise ConfigError(f"BIGCRAWL_BUDGET_POLICY {self._name} failed: {error!r}") from error
        is_whole = found.dtype.kind in "iu" or not found.size
        if found.shape != in_degrees.shape or not is_whole or (found.size and found.min() < 0):
            raise ConfigError(
                f"BIGCRAWL_BUDGET_POLICY {self._name} returned {found!r} for {len(in_degrees)} PLDs; must be an array "
                f"of that many non-negative whole numbers, e.g. numpy.full(len(plds), 10)"
            )
        checked: BudgetArray = np.minimum(found.astype(np.uint64), BUDGET_LARGEST).astype(np.uint32)
        return checked


def _import_factory(path: str) -> Callable[..., Any]:
    found = import_object("BIGCRAWL_BUDGET_POLICY", path)
    if not callable(found):
        raise ConfigError(f"BIGCRAWL_BUDGET_POLICY is {path}, a {type(found).__name__}; must be a class or function")
    return found  # type: ignore[no-any-return]
