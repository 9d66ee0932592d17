"""A site's hints about its pages' changes, in a sitemap or feed; each counts as one visit, and is soon outweighed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.revisiting.change_rate import with_comparison

if TYPE_CHECKING:
    from bigcrawl.revisiting.change_rate import History


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
