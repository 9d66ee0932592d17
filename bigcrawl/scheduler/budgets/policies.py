"""Budget policies: how many URLs of a PLD pass in a turn, by its in-degree (docs/budgets.md).

Sources: IRLbot §5.2 (policies), §6.1 (delays), §7.2 (star's numbers). Differs: the size of the top in a young crawl,
docs/decisions/0016.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from bigcrawl.config import BudgetConfig
from bigcrawl.exceptions import ConfigError
from bigcrawl.given import import_object
from bigcrawl.scheduler.budgets.in_degrees import InDegreeCounts, InDegreeRanks
from bigcrawl.scheduler.rules.budget_rules import BUDGET_LARGEST

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.in_degrees import CountArray, InDegreeArray

    BudgetArray = npt.NDArray[np.uint32]

NO_POLICY = "none"

# At most one in this many known PLDs is in the top, or all of a small crawl would be. IRLbot: one in 9,000.
_KNOWN_A_TOP = 100


class BudgetPolicy(Protocol):
    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        """Return how many URLs of each PLD pass in a turn: uint32, shape (n,), at most `BUDGET_LARGEST`.

        `plds` are keys (`pld_key`), uint64, shape (n,), and may repeat. `in_degrees`, uint32, shape (n,), count other
        PLDs that are known to link to them.
        """
        ...


class StarBudgets:
    """IRLbot's STAR: over the top ranks, budgets rise linearly from the base to the maximum for rank 1.

    No budget exceeds the base times the in-degree, so k PLDs that link to another gain it no more than their own
    budgets.
    """

    def __init__(self, config: BudgetConfig, counts: InDegreeCounts) -> None:
        _refuse_maximum_below_base(config)
        self._base, self._maximum = config.base, config.maximum
        self._ranks = InDegreeRanks(counts)
        self._top = min(config.top, self._ranks.total // _KNOWN_A_TOP)

    def __repr__(self) -> str:
        return f"<StarBudgets top={self._top} of {self._ranks.total} PLDs>"

    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        return self._budgets_by_rank(in_degrees, self._ranks.worst_ranks(in_degrees))

    def _budgets_by_rank(self, in_degrees: InDegreeArray, worst: CountArray) -> BudgetArray:
        ahead_of = np.maximum(self._top - self._ranks.likely_ranks(in_degrees), 0)
        risen = self._base + (self._maximum - self._base) * ahead_of // max(self._top - 1, 1)
        vouched = np.maximum(in_degrees.astype(np.int64), 1) * self._base
        return np.where(worst <= self._top, np.minimum(risen, vouched), self._base).astype(np.uint32)


class FixedBudgets:
    def __init__(self, config: BudgetConfig, counts: InDegreeCounts) -> None:
        self._base = config.base

    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        return np.full(in_degrees.shape, self._base, dtype=np.uint32)


class ProportionalBudgets:
    def __init__(self, config: BudgetConfig, counts: InDegreeCounts) -> None:
        _refuse_maximum_below_base(config)
        self._base, self._maximum = config.base, config.maximum

    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        return np.clip(in_degrees.astype(np.int64) * self._base, self._base, self._maximum).astype(np.uint32)


class InverseBudgets:
    def __init__(self, config: BudgetConfig, counts: InDegreeCounts) -> None:
        _refuse_maximum_below_base(config)
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
        worst = self._ranks.worst_ranks(in_degrees)
        return np.where(worst <= self._popular, self._budgets_by_rank(in_degrees, worst), 0).astype(np.uint32)


class UnlimitedBudgets:
    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        return np.full(in_degrees.shape, BUDGET_LARGEST, dtype=np.uint32)


PolicyFactory = Callable[[BudgetConfig, InDegreeCounts], BudgetPolicy]
"""Makes a policy from the settings and the counts of the whole crawl, which are empty at first."""

POLICIES: Final[dict[str, PolicyFactory]] = {
    "star": StarBudgets,
    "fixed": FixedBudgets,
    "proportional": ProportionalBudgets,
    "inverse": InverseBudgets,
    "popular-only": PopularOnly,
}


def make_policy(config: BudgetConfig, counts: InDegreeCounts) -> BudgetPolicy | None:
    name = config.policy
    if name == NO_POLICY:
        return None
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


def _refuse_maximum_below_base(config: BudgetConfig) -> None:
    if config.maximum < config.base:
        raise ConfigError(
            f"BIGCRAWL_BUDGET_MAX is {config.maximum}; must be at least BIGCRAWL_BUDGET, which is {config.base}: "
            f"raise the one or lower the other"
        )
