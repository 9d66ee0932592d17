"""What a site says of its pages, in a sitemap or a feed: how often they change, and when they have changed last.

A hint is worth one visit. How often a page changes counts as one comparison that has found a change, at the interval
that the site names. When it has changed brings a visit sooner, but none that the policy would not bear: see
`RevisitPolicy.soonest_s`. So a site's word moves a page by a factor of `TRUST` at most, and visits soon outweigh it.

A page that waits and may be brought forward is looked at on its way: first when it may be visited at the soonest, and
then each time that it has waited twice as long. So news wait at most as long again as their page had waited, and a
look costs no fetch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.revisiting.change_rate import with_comparison

if TYPE_CHECKING:
    from bigcrawl.revisiting.change_rate import History

TRUST: Final = 8
"""By what factor a site's word may move a page's visits from the usual wait."""

CHANGEFREQS: Final = ("", "always", "hourly", "daily", "weekly", "monthly", "yearly", "never")
"""What sitemaps say of how often a page changes, by code; 0 for nothing."""

_HOUR_S: Final = 3_600
_DAY_S: Final = 24 * _HOUR_S
PERIODS_S: Final = (0, 1, _HOUR_S, _DAY_S, 7 * _DAY_S, 30 * _DAY_S, 365 * _DAY_S, 3_650 * _DAY_S)
"""How long a page takes to change, in seconds, by code."""


def changefreq_of(written: str, age_s: float | None) -> str:
    """Return how often a page changes by what its site says: one of `CHANGEFREQS`.

    Args:
        written: what a sitemap says; anything but one of its words counts as nothing.
        age_s: how long ago the page has changed, if the site says that. Without a word, a page that has not changed
            for so long is taken to change as rarely.
    """
    word = written.strip().lower()
    if word in CHANGEFREQS[1:]:
        return word
    if age_s is None:
        return ""
    at_most = [word for word, period_s in zip(CHANGEFREQS, PERIODS_S, strict=True) if period_s <= max(age_s, _HOUR_S)]
    return at_most[-1]


def with_hint(history: History, period_s: float) -> History:
    """Return the history with a site's word as one more comparison, of a page that takes so long to change."""
    return with_comparison(history, round(period_s), changed=True)


def next_look_s(last_s: int, soonest_s: int, due_s: int, now_s: int) -> int:
    """Return when to look at a page that waits, and is listed by its site; `due_s` for its visit.

    Args:
        last_s: when its content was last known.
        soonest_s: from when a visit may be brought forward.
        due_s: when it is visited at the latest.
        now_s: the time; a look is after it, unless the page is due.
    """
    look_s = soonest_s
    while look_s <= now_s and look_s < due_s:
        look_s = max(last_s + 2 * (look_s - last_s), look_s + 1)
    return min(look_s, due_s)
