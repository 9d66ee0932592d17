"""Places URLs in turns: BEAST's arithmetic, pure (step 5).

Turns are numbered. In each turn a PLD x has a quota: its budget B times the partition's quantum m. A URL follows the
previous one of its PLD: into the same turn while quota is left there, otherwise into the next, and never before the
first open turn. Within a turn, the first B URLs of x are ordinary. The others are extra, in two tiers: up to 8 B, and
beyond. A tier is fetched when all tiers below it are empty. So a large quantum delays no PLD's first B URLs, and does
not delay its further ones for long. A URL that would come after the last turn of the window is over budget and waits in
the over-budget queue (IRLbot's Q_F), which is re-read in generations:

    generation n        receives URLs that are over budget now
    generation n - 1    is being re-read, at times

URLs of one PLD and level must not overtake each other. The PLD's record therefore says where its last URLs went:

    turn, used      the last turn with URLs of the PLD, and how many; above `TIER_SHIFT`, the tier of the last one there
    mark            2 n: URLs of it wait in generation n, all of which arrived while n was current
                    2 n + 1: others too, which failed when generation n - 1 was re-read

    URL             mark                  goes
    arriving        of n, or of a         to n's arrived; mark 2 n, if it is less
                    generation re-read
    arriving        older, or none        to turns; from the first beyond them on, to n's arrived, mark 2 n
    re-read         2 n + 1               to n's failed
    re-read         less                  to turns; from the first beyond them on, to n's failed, mark 2 n + 1

The mark of a generation that has been re-read completely no longer means anything. The over-budget queue reads failed
URLs before arrived ones, because they arrived earlier.
Source: IRLbot §6.2. Differs: URLs that have passed keep their place, and a PLD's URLs their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    IndexArray = npt.NDArray[np.intp]
    RecordArray = npt.NDArray[np.void]
    NumberArray = npt.NDArray[np.int64]

RECORD = np.dtype([("in_degree", "<u4"), ("turn", "<u4"), ("used", "<u4"), ("mark", "<u4"), ("hosts", "<u4")])
"""The record of a PLD in its table. Placement does not use in-degree and hosts. All zero equals no record."""

OVER_BUDGET = -1
"""Takes the place of a turn: the over-budget queue."""

TIER_STARTS = (1, 8)
"""How many budgets of a turn precede each tier after the first."""

TIERS = len(TIER_STARTS) + 1

TIER_SHIFT = 30
"""The tier is stored in `used` from this bit. Later URLs of the turn get no lower tier, even if the budget changes."""

QUOTA_MAX = (1 << TIER_SHIFT) - 1
"""The most URLs of one PLD in one turn that `used` can count."""


class Window(NamedTuple):
    """Where URLs may be placed now.

    Attributes:
        first: the first turn that takes URLs.
        last: the last one; first <= last.
        generation: n, the one that takes over-budget URLs; at least 1.
        is_rereading: whether generation n - 1 is being re-read.
        quantum: m, how many budgets make a PLD's quota in a turn; at least 1.
    """

    first: int
    last: int
    generation: int
    is_rereading: bool
    quantum: int


class Placed(NamedTuple):
    """Where URLs were placed, and the updated records of their PLDs.

    Attributes:
        turns: the turn of each URL, or `OVER_BUDGET`.
        tiers: the tier of each URL in its turn; 0 is ordinary, higher ones are extra.
        records: one for each PLD, in the order of the records given.
    """

    turns: NumberArray
    tiers: NumberArray
    records: RecordArray


def place(
    whose: IndexArray, records: RecordArray, budgets: npt.NDArray[np.integer], window: Window, *, reread: bool
) -> Placed:
    """Place URLs in turns.

    Args:
        whose: for each URL, in order, the index of its PLD in `records` and `budgets`.
        records: one for each PLD; not changed.
        budgets: B of each PLD, up to `QUOTA_MAX`; with 0, all its URLs are over budget.
        window: where they may go.
        reread: whether they come from the over-budget queue, rather than arriving.

    Cost: some 40 array operations; 80 us for few URLs, 0.15 us each for many.
    """
    first, last, generation, is_rereading, quantum = window
    mark = records["mark"].astype(np.int64)
    budget = budgets.astype(np.int64)
    quota = np.minimum(budget * quantum, QUOTA_MAX)
    begun = np.maximum(records["turn"], first).astype(np.int64)
    used = np.where(records["turn"] >= first, records["used"], 0).astype(np.int64)
    had_tier = used >> TIER_SHIFT
    used = np.minimum(used & QUOTA_MAX, quota)
    barred = quota == 0
    barred |= mark > 2 * generation if reread else mark >= 2 * (generation - is_rereading)
    # Counted from the start of the turn `begun`, as if each earlier turn were full.
    nth = used[whose] + ordinals(whose, len(records))
    later, nth_of_turn = np.divmod(nth, np.maximum(quota, 1)[whose])
    turns = begun[whose] + later
    turns[(turns > last) | barred[whose]] = OVER_BUDGET
    passed = turns != OVER_BUDGET
    counts = np.bincount(whose, minlength=len(records))
    placed = np.bincount(whose[passed], minlength=len(records))
    after = records.copy()
    moved = placed > 0
    later_max, nth_max = np.divmod((used + placed - 1)[moved], quota[moved])
    after["turn"][moved] = begun[moved] + later_max
    tier_max = _tiers(nth_max, budget[moved], np.where(later_max, 0, had_tier[moved]))
    after["used"][moved] = (nth_max + 1) | (tier_max << TIER_SHIFT)
    failed = counts > placed
    after["mark"][failed] = np.maximum(mark[failed], 2 * generation + reread)
    return Placed(turns, _tiers(nth_of_turn, budget[whose], np.where(later, 0, had_tier[whose])), after)


def _tiers(nth: NumberArray, budget: NumberArray, least: NumberArray) -> NumberArray:
    """Return the tier of a PLD's nth URL in a turn, counted from 0; at least that of the URLs before it."""
    tiers = least.copy()
    for tier, budgets in enumerate(TIER_STARTS, 1):
        tiers[nth >= budgets * budget] = tier
    return np.maximum(tiers, least)


def ordinals(whose: IndexArray, plds: int) -> IndexArray:
    """Return, for each URL, how many of the same PLD precede it."""
    order = whose.argsort(kind="stable")
    counts = np.bincount(whose, minlength=plds)
    starts = (counts.cumsum() - counts).repeat(counts)
    answer = np.empty(len(whose), dtype=np.intp)
    answer[order] = np.arange(len(whose)) - starts
    return answer
