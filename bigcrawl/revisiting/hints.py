"""What a site says of its pages, in a sitemap or a feed: how often they change, and when they last changed.

A hint is worth one visit. If the site names an interval of changes, that counts as one comparison that found a change
after this interval. If it names the time of the last change, the next visit may come sooner, but no sooner than the
policy allows: see `RevisitPolicy.soonest_s`. So a site's word moves a page by a factor of `TRUST` at most, and visits
soon outweigh it.

A page that may be brought forward is looked at while it waits: first at the earliest time at which it may be visited,
and then each time that it has waited twice as long. So a change is noticed at the latest when the page has waited as
long again as before the change. A look costs no fetch.
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
    """Return how often a page changes according to its site: one of `CHANGEFREQS`.

    Args:
        written: the changefreq of a sitemap; anything but one of the defined words is ignored.
        age_s: how long ago the page last changed, if the site says so. Without a valid changefreq, the page is assumed
            to change about once in this time.
    """
    word = written.strip().lower()
    if word in CHANGEFREQS[1:]:
        return word
    if age_s is None:
        return ""
    at_most = [word for word, period_s in zip(CHANGEFREQS, PERIODS_S, strict=True) if period_s <= max(age_s, _HOUR_S)]
    return at_most[-1]


def with_hint(history: History, period_s: float) -> History:
    """Return the history with one more comparison: the site's word that the page takes this long to change."""
    return with_comparison(history, round(period_s), changed=True)


def next_look_s(last_s: int, soonest_s: int, due_s: int, now_s: int) -> int:
    """Return when to look next at a waiting page that its site lists; `due_s` if only at its visit.

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
