from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from bigcrawl.revisiting.policies import next_hint_check_s
from bigcrawl.revisiting.visit import Visit, VisitFormatError
from bigcrawl.scheduler.records.body import known_in
from bigcrawl.scheduler.records.queued_url import QueuedUrl, TimedUrl, listed_in

if TYPE_CHECKING:
    from collections.abc import Mapping


Modified: TypeAlias = "Mapping[int, int]"
"""When pages changed, according to their sites: seconds since 1970, by URL key."""

_EARLY = 16  # a timed queue may release a URL up to a sixteenth of its wait too early


def first_check_s(revisit: TimedUrl, modified: Modified) -> int:
    visit = _visit_of_listed_page(revisit.url, modified)
    return revisit.due_s if visit is None else visit.soonest_s


def next_check_s(url: QueuedUrl, modified: Modified, now_s: int) -> int | None:
    """Return when to check a due page again, or None to visit it now."""
    visit = _visit_of_listed_page(url, modified)
    if visit is None or now_s >= visit.due_s - (visit.due_s - visit.last_s) // _EARLY:
        return None
    if now_s >= visit.soonest_s and modified.get(url.key, 0) > visit.last_s:
        return None
    return next_hint_check_s(visit.last_s, visit.soonest_s, visit.due_s, now_s)


def _visit_of_listed_page(url: QueuedUrl, modified: Modified) -> Visit | None:
    if not listed_in(url.flags) and url.key not in modified:
        return None
    try:
        visit = Visit.unpack(known_in(url.body))
    except (ValueError, VisitFormatError):
        return None  # it will be visited as if for the first time
    return visit if visit.last_s < visit.soonest_s < visit.due_s else None
