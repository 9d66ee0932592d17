"""Makes the budget policy of the settings. STAR is in `policy`, all others in `other_policies`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.scheduler.budgets.policy import NO_POLICY, STAR, StarBudgets
from bigcrawl.scheduler.rules.budget_rules import BUDGET_LARGEST

if TYPE_CHECKING:
    from bigcrawl.config import BudgetConfig
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.in_degrees import InDegreeArray, InDegreeCounts
    from bigcrawl.scheduler.budgets.policy import BudgetArray, BudgetPolicy


class UnlimitedBudgets:
    def budgets(self, plds: KeyArray, in_degrees: InDegreeArray) -> BudgetArray:
        return np.full(in_degrees.shape, BUDGET_LARGEST, dtype=np.uint32)


def make_policy(config: BudgetConfig, counts: InDegreeCounts) -> BudgetPolicy | None:
    name = config.policy
    if name == NO_POLICY:
        return None
    if name == STAR:
        return StarBudgets(config, counts)
    from bigcrawl.scheduler.budgets.other_policies import other_policy

    return other_policy(config, counts)
