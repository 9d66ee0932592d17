"""Looks at pages that wait for their next visit and are listed by their site: has the site said that they changed?

A listed page is looked at before it is due, at the times that `bigcrawl.revisiting.hints` computes. If its site has
said meanwhile that it changed after its last visit, it is visited now; otherwise it goes on waiting. Only what this
node has read in sitemaps and feeds since its start is known here.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from bigcrawl.revisiting.hints import next_look_s
from bigcrawl.revisiting.visit import Visit, VisitFormatError
from bigcrawl.scheduler.records.body import visit_in
from bigcrawl.scheduler.records.queued_url import listed_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.scheduler.records.revisits import Revisit

Modified: TypeAlias = "Mapping[int, int]"
"""When pages were changed, as their sites say: seconds since 1970, by URL key."""

NOTHING_LISTED: Final[Modified] = MappingProxyType({})

_EARLY = 16  # a queue by time may release a URL up to a sixteenth of its wait too early


def first_look_s(revisit: Revisit, modified: Modified) -> int:
    """Return when to look at a page that begins to wait; when it is due if it is not listed."""
    visit = _listed_visit(revisit.url, modified)
    return revisit.due_s if visit is None else visit.soonest_s


def look_again_s(url: QueuedUrl, modified: Modified, now_s: int) -> int | None:
    """Return when to look again at a page that has come up; None if it is visited now. Cost: 4 us if it is listed."""
    visit = _listed_visit(url, modified)
    if visit is None or now_s >= visit.due_s - (visit.due_s - visit.last_s) // _EARLY:
        return None
    if now_s >= visit.soonest_s and modified.get(url.key, 0) > visit.last_s:
        return None
    return next_look_s(visit.last_s, visit.soonest_s, visit.due_s, now_s)


def _listed_visit(url: QueuedUrl, modified: Modified) -> Visit | None:
    """What is known of a page that its site may bring forward; None for any other."""
    if not listed_in(url.flags) and url.key not in modified:
        return None
    try:
        visit = Visit.unpack(visit_in(url.body))
    except (ValueError, VisitFormatError):
        return None  # it will be visited as if for the first time
    return visit if visit.last_s < visit.soonest_s < visit.due_s else None
