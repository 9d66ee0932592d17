"""When a page is visited next, and why, for `scrapy frontier explain` in a crawl that visits pages again.

What is known of a page travels with its URL. So it is read where the URL is: in Redis, in the inbox, or in a queue of
its partition on disk, which are read through for it.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.revisiting.change_rate import change_rate
from bigcrawl.revisiting.hints import CHANGEFREQS
from bigcrawl.revisiting.visit import Visit, VisitFormatError
from bigcrawl.scheduler.partition.reader import find_waiting
from bigcrawl.scheduler.records.body import visit_in
from bigcrawl.scheduler.records.queued_url import listed_in

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.commands.looking.locate import Hot, InboxTrace
    from bigcrawl.scheduler.partition.reader import UrlOnDisk

_DAY_S = 86_400
_UNITS = ((_DAY_S, "days"), (3_600, "hours"), (60, "minutes"))


class NextVisit(NamedTuple):
    """What is known of a page that is visited again.

    Attributes:
        visit: what is known after its last visit; None if it was visited, but was not found where it should wait.
        flags: of its URL.
        waits: whether the time of its next visit has not come yet; otherwise it is on its way.
    """

    visit: Visit | None
    flags: int = 0
    waits: bool = False


async def find_next_visit(
    directory: Path, key: int, hot: Hot | None, trace: InboxTrace, disk: UrlOnDisk | None
) -> NextVisit | None:
    """Return what is known of the next visit of a URL's page; None if it was not visited, or is not visited again.

    Cost: nothing in those cases. Otherwise all waiting URLs of its partition may be read: some seconds for a million.

    Raises: as `read_partition`.
    """
    if hot is not None:
        return _of_body(hot.body, hot.flags, waits=False)
    if trace.revisit is not None:
        return _of_body(trace.revisit.body, trace.revisit.flags, waits=True)
    if disk is None or not disk.visits:
        return None
    found = await asyncio.to_thread(find_waiting, directory, key)
    if found is None:
        return NextVisit(None)
    return _of_body(found.url.body, found.url.flags, waits=found.for_time)


def _of_body(body: bytes, flags: int, *, waits: bool) -> NextVisit | None:
    try:
        data = visit_in(body)
        return NextVisit(Visit.unpack(data), flags, waits) if data else None
    except (ValueError, VisitFormatError):
        return None


def next_visit_data(found: NextVisit | None, rule: str, now_ms: int) -> dict[str, Any] | None:
    """Return a next visit as JSON for programs; `rule` is the policy of the settings."""
    if found is None:
        return None
    visit = found.visit
    if visit is None:
        return {"policy": rule, "waits": False, "due": None}
    rate = change_rate(visit.history)
    return {
        "policy": rule,
        "waits": found.waits,
        "due": _time(visit.due_s),
        "due_in_s": visit.due_s - now_ms // 1000,
        "soonest": _time(visit.soonest_s) if 0 < visit.soonest_s < visit.due_s else None,
        "visits": visit.number,
        "last": _time(visit.last_s),
        "changed": _time(visit.changed_s),
        "is_gone": visit.is_gone,
        "comparisons": sum(group.made for group in visit.history),
        "changes": sum(group.changes for group in visit.history),
        "changes_every_s": round(1 / rate) if rate else None,
        "changefreq": CHANGEFREQS[listed_in(found.flags)] or None,
    }


def next_visit_rows(data: dict[str, Any] | None) -> dict[str, str]:
    """Return a next visit as lines of an explanation."""
    if data is None:
        return {}
    if data["due"] is None:
        text = "none waits on disk: it has had all visits, or its host is snoozed or retired"
        return {"revisit": text}
    return {"visits": _visits_text(data), "revisit": _due_text(data)}


def _visits_text(data: dict[str, Any]) -> str:
    seen = "was gone by" if data["is_gone"] else "is as it was since"
    text = f"{data['visits']:,} so far; known at {data['last']}, and {seen} {data['changed']}"
    if data["comparisons"]:
        text += f"; {data['changes']} of the last {data['comparisons']} found a change"
    if data["changes_every_s"]:
        text += f", so it changes once in {_span(data['changes_every_s'])}"
    return text + (f"; its site says {data['changefreq']}" if data["changefreq"] else "")


def _due_text(data: dict[str, Any]) -> str:
    policy = "BIGCRAWL_REVISIT is never here" if data["policy"] == "never" else f"by the policy {data['policy']}"
    left_s = data["due_in_s"]
    when = f"in {_span(left_s)}" if left_s >= 0 else f"{_span(-left_s)} ago"
    text = f"due {data['due']}, {when}, {policy}"
    if not data["waits"]:
        return f"{text}; its time has come, and it waits with other URLs"
    if data["soonest"]:
        text += f"; from {data['soonest']} on if its site says that it has changed"
    return text


def _span(seconds: int) -> str:
    for length, unit in _UNITS:
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:,} s"


def _time(time_s: int) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat(sep=" ").replace("+00:00", "Z")
