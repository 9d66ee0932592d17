"""Charges a PLD's budget for new hosts: each costs one fetch more, that of its robots.txt (step 5).

Otherwise a link farm with a new subdomain for each link would be fetched twice for each URL of its budget. A URL on an
unknown host therefore takes two places in the turns, the robots.txt before the page. The first `FREE_HOSTS` hosts of a
PLD cost nothing, nor do its own name and www below it; an ordinary site has few hosts and keeps its whole budget. A
host is known once its robots.txt has a place in a turn, so over-budget URLs pay when they pass. Accounts of rules set
by hand pay nothing, since they count URLs.
Source: IRLbot §4.3 (RobotsRequested). Differs: IRLbot sends a URL with a new host through the robots queue, and charges
no budget for robots.txt or DNS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bigcrawl.scheduler.budgets.placement import OVER_BUDGET, Placed, ordinals, place

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.drum.bucket import Bucket
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.placement import IndexArray, RecordArray, Window

FREE_HOSTS: Final = 16
"""This many hosts of a PLD cost nothing beyond their URLs."""

HOSTS_MAX: Final = 2**32 - 1


class NewHosts(NamedTuple):
    """The URLs of a batch that are the first on an unknown host.

    Attributes:
        first: bool, one for each URL.
        hosts: uint64, the key of each URL's host.
    """

    first: npt.NDArray[np.bool_]
    hosts: KeyArray


def find_new_hosts(known: Bucket, hosts: KeyArray, may_cost: npt.NDArray[np.bool_]) -> NewHosts:
    """Find the URLs that bring a new host.

    Args:
        known: the table of known hosts.
        hosts: the key of each URL's host, in order.
        may_cost: whether a URL's host may be charged.

    Raises:
        CorruptionError: a run is damaged.
    """
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
    window: Window,
    *,
    reread: bool,
) -> tuple[Placed, KeyArray]:
    """Like `place`, but new hosts cost their robots.txt. Also returns the keys of hosts now known, ascending."""
    if not new.first.any():
        return place(whose, records, budgets, window, reread=reread), np.empty(0, dtype=np.uint64)
    firsts = whose[new.first]
    nth = records["hosts"].astype(np.int64)[firsts] + ordinals(firsts, len(records))
    places = np.ones(len(whose), dtype=np.intp)
    places[new.first] += nth >= FREE_HOSTS
    pages = np.cumsum(places) - 1
    placed = place(np.repeat(whose, places), records, budgets, window, reread=reread)
    has_robots = new.first & (placed.turns[pages - places + 1] != OVER_BUDGET)
    more = np.bincount(whose[has_robots], minlength=len(records))
    placed.records["hosts"] = np.minimum(placed.records["hosts"] + more, HOSTS_MAX)
    return Placed(placed.turns[pages], placed.tiers[pages], placed.records), np.sort(new.hosts[has_robots])
