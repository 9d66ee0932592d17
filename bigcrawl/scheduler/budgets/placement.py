"""Places URLs in turns: BEAST's arithmetic (step 5 of a URL's life).

In each turn a PLD has a quota: its budget B times the partition's quantum m. A URL goes into the turn of the previous
URL of its PLD while quota is left there, otherwise into the next. The first B URLs of a turn are ordinary. The others
are extra, in two tiers: up to 8 B, and beyond. A tier is fetched only when all tiers below it are empty, so a large
quantum does not delay other PLDs' first B URLs. A URL beyond the last turn of the window goes to the over-budget queue
(IRLbot's Q_F). Its generation n receives URLs while n - 1 is re-read.

URLs of one PLD and level must not overtake each other. So the PLD's record says where its last URLs went:

    turn, used      the last turn with URLs of the PLD, and their number; above `TIER_SHIFT`, the last one's tier
    mark            2 n: URLs wait in generation n, all of which arrived while n was current
                    2 n + 1: also URLs that failed when generation n - 1 was re-read

    URL             mark                  goes
    arriving        of n, or of a         to n's arrived; mark 2 n, if it is less
                    generation re-read
    arriving        older, or none        to turns; from the first beyond them on, to n's arrived, mark 2 n
    re-read         2 n + 1               to n's failed
    re-read         less                  to turns; from the first beyond them on, to n's failed, mark 2 n + 1

Once a generation has been re-read completely, its marks have no effect.

A new host's first URL takes two places in the turns, one of them for robots.txt (docs/budgets.md). A host is known once
its robots.txt has a place, so an over-budget URL is charged when it passes.

Source: IRLbot §6.2, §4.3 (RobotsRequested). Differs: URLs that have passed keep their place, and a PLD's URLs their
order; IRLbot charges no budget for robots.txt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    IndexArray = npt.NDArray[np.intp]
    RecordArray = npt.NDArray[np.void]
    NumberArray = npt.NDArray[np.int64]
    import numpy.typing as npt

    from bigcrawl.drum.bucket import Bucket
    from bigcrawl.drum.format import KeyArray

RECORD = np.dtype([("in_degree", "<u4"), ("turn", "<u4"), ("used", "<u4"), ("mark", "<u4"), ("hosts", "<u4")])
"""The record of a PLD in its table; all zero equals no record."""

OVER_BUDGET = -1

TIER_STARTS = (1, 8)
"""Each tier after the first begins after this many budgets of a turn."""

TIERS = len(TIER_STARTS) + 1

TIER_SHIFT = 30
"""The tier is stored in `used` from this bit. It never falls within a turn."""

QUOTA_MAX = (1 << TIER_SHIFT) - 1
"""The most URLs of a PLD in a turn that `used` can count."""

FREE_HOSTS: Final = 16

HOSTS_MAX: Final = 2**32 - 1


class TurnWindow(NamedTuple):
    """The turns `first` to `last` in which URLs may be placed now, and the generation n for all others.

    Attributes:
        is_rereading: whether generation n - 1 is being re-read.
        quantum: m.
    """

    first: int
    last: int
    generation: int
    is_rereading: bool
    quantum: int


class Placement(NamedTuple):
    turns: NumberArray
    tiers: NumberArray
    records: RecordArray


def place_urls(
    whose: IndexArray, records: RecordArray, budgets: npt.NDArray[np.integer], window: TurnWindow, *, reread: bool
) -> Placement:
    """Place URLs in turns; `whose` maps each URL to its PLD in `records` and `budgets`. Budget 0 passes none."""
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
    nth = used[whose] + ordinals_within_plds(whose, len(records))
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
    tier_max = _tiers_of(nth_max, budget[moved], np.where(later_max, 0, had_tier[moved]))
    after["used"][moved] = (nth_max + 1) | (tier_max << TIER_SHIFT)
    failed = counts > placed
    after["mark"][failed] = np.maximum(mark[failed], 2 * generation + reread)
    return Placement(turns, _tiers_of(nth_of_turn, budget[whose], np.where(later, 0, had_tier[whose])), after)


def _tiers_of(nth: NumberArray, budget: NumberArray, least: NumberArray) -> NumberArray:
    tiers = least.copy()
    for tier, budgets in enumerate(TIER_STARTS, 1):
        tiers[nth >= budgets * budget] = tier
    return np.maximum(tiers, least)


def ordinals_within_plds(whose: IndexArray, plds: int) -> IndexArray:
    order = whose.argsort(kind="stable")
    counts = np.bincount(whose, minlength=plds)
    starts = (counts.cumsum() - counts).repeat(counts)
    answer = np.empty(len(whose), dtype=np.intp)
    answer[order] = np.arange(len(whose)) - starts
    return answer


class NewHosts(NamedTuple):
    first: npt.NDArray[np.bool_]
    hosts: KeyArray


def find_new_hosts(known: Bucket, hosts: KeyArray, may_cost: npt.NDArray[np.bool_]) -> NewHosts:
    first = np.zeros(len(hosts), dtype=np.bool_)
    asked = np.flatnonzero(may_cost)
    if len(asked):
        keys, at = np.unique(hosts[asked], return_index=True)
        first[asked[at[~known.check(keys)]]] = True
    return NewHosts(first, hosts)


def place_with_hosts(
    new: NewHosts,
    whose: IndexArray,
    records: RecordArray,
    budgets: npt.NDArray[np.integer],
    window: TurnWindow,
    *,
    reread: bool,
) -> tuple[Placement, KeyArray]:
    """Like `place_urls`, with charges for new hosts; also return the keys of all known hosts, ascending."""
    if not new.first.any():
        return place_urls(whose, records, budgets, window, reread=reread), np.empty(0, dtype=np.uint64)
    firsts = whose[new.first]
    nth = records["hosts"].astype(np.int64)[firsts] + ordinals_within_plds(firsts, len(records))
    places = np.ones(len(whose), dtype=np.intp)
    places[new.first] += nth >= FREE_HOSTS
    pages = np.cumsum(places) - 1
    placed = place_urls(np.repeat(whose, places), records, budgets, window, reread=reread)
    has_robots = new.first & (placed.turns[pages - places + 1] != OVER_BUDGET)
    more = np.bincount(whose[has_robots], minlength=len(records))
    placed.records["hosts"] = np.minimum(placed.records["hosts"] + more, HOSTS_MAX)
    return Placement(placed.turns[pages], placed.tiers[pages], placed.records), np.sort(new.hosts[has_robots])
