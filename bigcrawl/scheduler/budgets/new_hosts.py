"""Charges a PLD's budget for the robots.txt of new hosts (docs/budgets.md).

A new host's first URL takes two places in the turns, one of them for robots.txt. A host is known once its robots.txt
has a place, so an over-budget URL is charged when it passes.

Source: IRLbot §4.3 (RobotsRequested). Differs: IRLbot charges no budget for robots.txt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bigcrawl.scheduler.budgets.placement import OVER_BUDGET, Placement, ordinals_within_plds, place_urls

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.drum.bucket import Bucket
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.placement import IndexArray, RecordArray, TurnWindow

FREE_HOSTS: Final = 16

HOSTS_MAX: Final = 2**32 - 1


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
    """Like `place`, with charges for new hosts; also return the keys of the hosts now known, ascending."""
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
