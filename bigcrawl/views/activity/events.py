"""Reads a crawl's events: nodes that came and went, orders, outages of Redis, its start and its end.

Events of nodes are written by the script that lets them in and out, orders by their command, and the end by the script
that announces it. The begin is in the crawl record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from bigcrawl.scheduler.crawl.crawl_record import BEGAN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bigcrawl.views.opened_crawl import OpenedCrawl

EventRow: TypeAlias = tuple[int, str, str, str]
"""Time in ms, kind, node and text of an event."""

LISTED_MAX: Final = 100
_TEXTS: Final = {
    "node_came": "has joined",
    "node_left": "has left",
    "node_died": "is dead",
    "finished": "the crawl is finished",
}


async def events_of(crawl: OpenedCrawl) -> dict[str, Any]:
    """Return the last events, newest first. Cost: two Redis commands."""
    keys = crawl.crawl_keys
    members, (began, finished) = await crawl.client.commands(
        [("ZRANGE", keys.events, 0, LISTED_MAX - 1, "REV"), ("HMGET", keys.crawl, BEGAN, "finished")]
    )
    rows = [row for member in members if (row := _row_of(member)) is not None]
    events = [_event(*row) for row in without_revoked_ends(rows, is_finished=finished is not None)]
    if began is not None and began.isdigit() and len(events) < LISTED_MAX:
        events.append(_event(int(began), "began", "", "the crawl was begun"))
    return {"events": events}


def without_revoked_ends(rows: Iterable[EventRow], *, is_finished: bool) -> Iterator[EventRow]:
    """Omit each revoked end: no node left after it, and the crawl is not finished now."""
    was_last = is_finished
    for row in rows:
        if row[1] == "finished":
            if was_last:
                yield row
            was_last = False
        else:
            was_last |= row[1] == "node_left"
            yield row


def _row_of(member: bytes) -> EventRow | None:
    at_ms, *words = member.decode("utf-8", "replace").split("\n", 3)
    return (int(at_ms), words[0], words[1], words[2]) if at_ms.isdigit() and len(words) == 3 else None


def _event(at_ms: int, kind: str, node: str, text: str) -> dict[str, Any]:
    text = text or _TEXTS.get(kind, kind)
    return {"at": at_ms / 1000, "kind": kind, "text": f"{node} {text}" if node else text, "node": node or None}
