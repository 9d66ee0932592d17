from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.allowances import Allowances

    DivisorArray = npt.NDArray[np.uint32]


def divide_budgets(budgets: npt.NDArray[np.uint32], divisors: DivisorArray) -> npt.NDArray[np.uint32]:
    fewer: npt.NDArray[np.uint32] = np.minimum(budgets, np.maximum(budgets // divisors, 1))
    return fewer


def lower_allowances(allowed: Allowances, plds: KeyArray, divisors: DivisorArray | None) -> Allowances:
    """Divide the budgets of URLs, except those of separate accounts and those set by hand."""
    if divisors is None:
        return allowed
    is_free = allowed.accounts != plds
    if allowed.by_hand is not None:
        is_free |= allowed.by_hand
    return allowed._replace(budgets=divide_budgets(allowed.budgets, np.where(is_free, 1, divisors).astype(np.uint32)))
