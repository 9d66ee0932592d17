from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bigcrawl.json_text import read_json
from bigcrawl.redisdb.keys import KNOWN
from bigcrawl.redisdb.replies import pairs_of

if TYPE_CHECKING:
    from bigcrawl.views.opened_crawl import OpenedCrawl

LISTED_MAX: Final = 100
SILENT_MS: Final = 60_000
"""A crawl that runs reports its figures every ten seconds."""


async def crawls_of(crawl: OpenedCrawl) -> dict[str, Any]:
    """Return the crawls of this Redis, those that reported last first. One Redis command."""
    now_ms = crawl.client.now_ms()
    rows = []
    for name, text in pairs_of(await crawl.client.command("HGETALL", KNOWN)):
        try:
            rows.append(_row(name.decode("utf-8", "replace"), read_json(text), now_ms))
        except (ValueError, TypeError, KeyError):  # of another version, or damaged
            continue
    return {"crawls": sorted(rows, key=lambda row: -row["last_s"])[:LISTED_MAX]}


def _row(name: str, known: dict[str, Any], now_ms: int) -> dict[str, Any]:
    nodes = int(known["nodes"]) if now_ms - int(known["at_ms"]) < SILENT_MS else 0
    runs = "paused" if known["is_paused"] else "runs"
    return {
        "crawl": name,
        "spider": str(known["spider"]),
        "state": "finished" if known["is_finished"] else runs if nodes else "stopped",
        "nodes": nodes,
        "pages": int(known["pages"]),
        "waiting": int(known["waiting"]),
        "last_s": int(known["at_ms"]) / 1000,
    }
