"""A site's hints, in a sitemap or a feed: how often its pages change, and when they last changed.

A hint counts as one visit, so later visits soon outweigh it. An interval counts as a comparison that found a change. A
change brings the next visit forward, at most to `RevisitPolicy.soonest_s`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.listings.changefreqs import CHANGEFREQS, PERIODS_S, changefreq_of
from bigcrawl.revisiting.change_rate import with_comparison

if TYPE_CHECKING:
    from bigcrawl.revisiting.change_rate import History

__all__ = ["CHANGEFREQS", "PERIODS_S", "TRUST", "changefreq_of", "next_look_s", "with_hint"]

TRUST: Final = 8
"""The largest factor by which a hint may change a wait."""


def with_hint(history: History, period_s: float) -> History:
    return with_comparison(history, round(period_s), changed=True)


def next_look_s(last_s: int, soonest_s: int, due_s: int, now_s: int) -> int:
    """Return when to check again for a hint: first at `soonest_s`, then when the wait since `last_s` has doubled.

    `due_s` is returned if no check comes before the visit. A check costs no fetch.
    """
    look_s = soonest_s
    while look_s <= now_s and look_s < due_s:
        look_s = max(last_s + 2 * (look_s - last_s), look_s + 1)
    return min(look_s, due_s)
