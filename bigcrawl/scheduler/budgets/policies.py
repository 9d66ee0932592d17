"""Budgets: how many URLs of a pay-level domain (PLD) pass in a turn (step 5), by its in-degree.

A policy is one method, `budgets`, a function of in-degrees alone: no clock, no state, and the same on every node
that has the same counts. New counts are a new policy. To add one: a class here that is made of the settings and
the counts, and a row in `POLICIES`.

    star           IRLbot's: BIGCRAWL_BUDGET for all, and more by rank for those that most others point to
    fixed          BIGCRAWL_BUDGET for all
    proportional   BIGCRAWL_BUDGET for each PLD that points to it, up to BIGCRAWL_BUDGET_MAX
    inverse        BIGCRAWL_BUDGET_MAX divided by how many point to it, down to BIGCRAWL_BUDGET
    popular-only   as star for the first BIGCRAWL_BUDGET_TOP in rank, 0 for the rest
    none           no budgets at all

Sources: IRLbot §5.2 (policies), §6.1 (delays), §7.2 (star's numbers). Differs: what the top is in a young crawl,
docs/decisions/0016.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from bigcrawl.config import BudgetConfig
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.budgets.in_degrees import InDegreeCounts, Ranks
from bigcrawl.scheduler.rules.budget_rules import BUDGET_LARGEST

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.in_degrees import CountArray, InDegreeArray

    BudgetArray = npt.NDArray[np.uint32]


NO_POLICY = "none"

# At most one in so many known PLDs is of the top. IRLbot's top 10,000 were one in 9,000 of its PLD graph, so its
# rule is this one from a million PLDs on; before that, all of a small crawl would be its top.
_KNOWN_A_TOP = 100


class BudgetPolicy(Protocol):
    """What the fold asks for budgets."""

    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        """Return how many URLs of each PLD pass in a turn.

        Args:
            plds: keys of PLDs (`pld_key`), uint64, shape (n,), n >= 0; repeated where a PLD is.
            in_degrees: of each, uint32, shape (n,); 0 where no other PLD is known to point to it.

        Returns:
            uint32, shape (n,), at most `BUDGET_LARGEST`; 0: none for now, they are withheld and looked at again.
        """
        ...


class Star:
    """IRLbot's STAR: budgets rise linearly over the top ranks, from the base to the maximum of the first.

    To be of the top, a PLD must be among the first `top` whatever the error of the counts, and among the best
    hundredth of the PLDs known. No budget is larger than the base for each PLD that points to it: k PLDs that point
    to one win it no more than they have themselves. All PLDs of one in-degree have the same rank, that of the last
    of them, so that nobody is of the top in a crawl where nobody stands out.

    Cost: 20 us, and 0.05 us a PLD.
    """

    def __init__(self, config: BudgetConfig, counts: InDegreeCounts) -> None:
        _refuse_maximum_below_base(config)
        self._base, self._maximum = config.base, config.maximum
        self._ranks = Ranks(counts)
        self._top = min(config.top, self._ranks.total // _KNOWN_A_TOP)

    def __repr__(self) -> str:
        return f"<Star top={self._top} of {self._ranks.total} PLDs>"

    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        """As `BudgetPolicy.budgets`; from base to maximum, never falling with the in-degree."""
        return self._risen(in_degrees, self._ranks.worst(in_degrees))

    def _risen(self, in_degrees: InDegreeArray, worst: CountArray) -> BudgetArray:
        ahead_of = np.maximum(self._top - self._ranks.likely(in_degrees), 0)
        risen = self._base + (self._maximum - self._base) * ahead_of // max(self._top - 1, 1)
        vouched = np.maximum(in_degrees.astype(np.int64), 1) * self._base
        return np.where(worst <= self._top, np.minimum(risen, vouched), self._base).astype(np.uint32)


class Fixed:
    """The same for all: PLDs are crawled in turn."""

    def __init__(self, config: BudgetConfig, counts: InDegreeCounts) -> None:
        self._base = config.base

    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        """As `BudgetPolicy.budgets`."""
        return np.full(in_degrees.shape, self._base, dtype=np.uint32)


class Proportional:
    """Proportional to the in-degree, from base to maximum."""

    def __init__(self, config: BudgetConfig, counts: InDegreeCounts) -> None:
        _refuse_maximum_below_base(config)
        self._base, self._maximum = config.base, config.maximum

    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        """As `BudgetPolicy.budgets`; never falling with the in-degree."""
        return np.clip(in_degrees.astype(np.int64) * self._base, self._base, self._maximum).astype(np.uint32)


class Inverse:
    """Inversely proportional to the in-degree, from maximum to base: for what others have not found yet."""

    def __init__(self, config: BudgetConfig, counts: InDegreeCounts) -> None:
        _refuse_maximum_below_base(config)
        self._base, self._maximum = config.base, config.maximum

    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        """As `BudgetPolicy.budgets`; never rising with the in-degree."""
        shared = self._maximum // np.maximum(in_degrees.astype(np.int64), 1)
        found: BudgetArray = np.maximum(shared, self._base).astype(np.uint32)
        return found


class PopularOnly(Star):
    """The first `top` PLDs in rank, as STAR has them; nothing of the others until they are of the first.

    While fewer than `top` PLDs are known, all of them are.
    """

    def __init__(self, config: BudgetConfig, counts: InDegreeCounts) -> None:
        super().__init__(config, counts)
        self._popular = config.top

    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        """As `BudgetPolicy.budgets`; never falling with the in-degree."""
        worst = self._ranks.worst(in_degrees)
        return np.where(worst <= self._popular, self._risen(in_degrees, worst), 0).astype(np.uint32)


class Unlimited:
    """For rules set by hand where there is no other budget: `BUDGET_LARGEST` for all."""

    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        """As `BudgetPolicy.budgets`."""
        return np.full(in_degrees.shape, BUDGET_LARGEST, dtype=np.uint32)


PolicyFactory = Callable[[BudgetConfig, InDegreeCounts], BudgetPolicy]
"""What a policy is made by, a user's too: the settings and the counts of the whole crawl; empty at its start."""

POLICIES: Final[dict[str, PolicyFactory]] = {
    "star": Star,
    "fixed": Fixed,
    "proportional": Proportional,
    "inverse": Inverse,
    "popular-only": PopularOnly,
}


def make_policy(config: BudgetConfig, counts: InDegreeCounts) -> BudgetPolicy | None:
    """Return the policy that the settings ask for; None for "none".

    Args:
        config: its policy is a name of `POLICIES`, "none", or the import path of a `PolicyFactory`.
        counts: of the whole crawl, or of what is known of it.

    Raises:
        ConfigError: no such policy, one that cannot be made, or one whose answers are no budgets.
    """
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
    return _Checked(name, _import_factory(name), config, counts)


class _Checked:
    """A user's policy, its answers held to the contract."""

    def __init__(self, name: str, factory: Callable[..., Any], config: BudgetConfig, counts: InDegreeCounts) -> None:
        self._name = name
        try:
            self._policy = factory(config, counts)
        except Exception as error:
            raise ConfigError(
                f"BIGCRAWL_BUDGET_POLICY {name} cannot be made of (BudgetConfig, InDegreeCounts): {error!r}"
            ) from error
        for sample in ([], [0, 1, 2, 2, 100, (1 << 32) - 1]):  # better now than in the first step
            self.budgets(np.arange(len(sample), dtype=np.uint64), np.array(sample, dtype=np.uint32))

    def __repr__(self) -> str:
        return f"<{self._name}: {self._policy!r}>"

    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        """As `BudgetPolicy.budgets`; what is above `BUDGET_LARGEST` counts as that.

        Raises:
            ConfigError: the policy failed, or its answer is not a whole number from 0 on for each PLD.
        """
        try:
            found = np.asarray(self._policy.budgets(plds, in_degrees))
        except Exception as error:
            raise ConfigError(f"BIGCRAWL_BUDGET_POLICY {self._name} failed: {error!r}") from error
        is_whole = found.dtype.kind in "iu" or not found.size
        if found.shape != in_degrees.shape or not is_whole or (found.size and found.min() < 0):
            raise ConfigError(
                f"BIGCRAWL_BUDGET_POLICY {self._name} answered {len(in_degrees)} PLDs with {found!r}; must be an array "
                f"of as many whole numbers from 0 on, e.g. numpy.full(len(plds), 10)"
            )
        checked: BudgetArray = np.minimum(found.astype(np.uint64), BUDGET_LARGEST).astype(np.uint32)
        return checked


def _import_factory(path: str) -> Callable[..., Any]:
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:
        raise ConfigError(f"BIGCRAWL_BUDGET_POLICY is {path}, which cannot be imported: {error!r}") from error
    if not callable(found):
        raise ConfigError(f"BIGCRAWL_BUDGET_POLICY is {path}, a {type(found).__name__}; must be a class or function")
    return found  # type: ignore[no-any-return]


def _refuse_maximum_below_base(config: BudgetConfig) -> None:
    if config.maximum < config.base:
        raise ConfigError(
            f"BIGCRAWL_BUDGET_MAX is {config.maximum}; must be at least BIGCRAWL_BUDGET, which is {config.base}: "
            f"raise the one or lower the other"
        )
