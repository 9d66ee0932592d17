"""Budget policies: how many URLs of a PLD pass in a turn, by its in-degree (docs/budgets.md). STAR is the default.

Sources: IRLbot §5.2 (policies), §6.1 (delays), §7.2 (star's numbers). Differs: the size of the top in a young crawl,
docs/decisions/0016.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from bigcrawl.config import BudgetConfig
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.budgets.in_degrees import InDegreeCounts, InDegreeRanks

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.in_degrees import CountArray, InDegreeArray

    BudgetArray = npt.NDArray[np.uint32]

NO_POLICY = "none"
STAR = "star"

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
        refuse_maximum_below_base(config)
        self._base, self._maximum = config.base, config.maximum
        self.ranks = InDegreeRanks(counts)
        self._top = min(config.top, self.ranks.total // _KNOWN_A_TOP)

    def __repr__(self) -> str:
        return f"<StarBudgets top={self._top} of {self.ranks.total} PLDs>"

    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        return self.budgets_by_rank(in_degrees, self.ranks.worst_ranks(in_degrees))

    def budgets_by_rank(self, in_degrees: InDegreeArray, worst: CountArray) -> BudgetArray:
        ahead_of = np.maximum(self._top - self.ranks.likely_ranks(in_degrees), 0)
        risen = self._base + (self._maximum - self._base) * ahead_of // max(self._top - 1, 1)
        vouched = np.maximum(in_degrees.astype(np.int64), 1) * self._base
        return np.where(worst <= self._top, np.minimum(risen, vouched), self._base).astype(np.uint32)


PolicyFactory = Callable[[BudgetConfig, InDegreeCounts], BudgetPolicy]
"""Makes a policy from the settings and the counts of the whole crawl, which are empty at first."""


def refuse_maximum_below_base(config: BudgetConfig) -> None:
    if config.maximum < config.base:
        raise ConfigError(
            f"BIGCRAWL_BUDGET_MAX is {config.maximum}; must be at least BIGCRAWL_BUDGET, which is {config.base}: "
            f"raise the one or lower the other"
        )
