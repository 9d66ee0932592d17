"""By how much the budgets of PLDs are lowered (step 5): those of traps and of mirrors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.mirrors import Mirrors
    from bigcrawl.scheduler.budgets.traps import Traps

    DivisorArray = npt.NDArray[np.uint32]


def divisors_of(traps: Traps, mirrors: Mirrors, plds: KeyArray) -> DivisorArray | None:
    """Return the divisors of PLDs' budgets, the larger one for a PLD that is both; None if no budget is lowered."""
    of_traps, of_mirrors = traps.divisors(plds), mirrors.divisors(plds)
    if of_traps is None or of_mirrors is None:
        return of_mirrors if of_traps is None else of_traps
    return np.maximum(of_traps, of_mirrors)


def divided(budgets: npt.NDArray[np.uint32], divisors: DivisorArray) -> npt.NDArray[np.uint32]:
    """Return the divided budgets; those above 0 stay at least 1."""
    fewer: npt.NDArray[np.uint32] = np.minimum(budgets, np.maximum(budgets // divisors, 1))
    return fewer
