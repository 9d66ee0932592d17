"""Reads the recent activity of a crawl's nodes: fetches, items, warnings and errors."""

from __future__ import annotations

import asyncio
import time
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from bigcrawl.json_text import read_json
from bigcrawl.redisdb.scripts import looking

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.redisdb.scripts.looking import WatchedCrawl
    from bigcrawl.views.opened_crawl import OpenedCrawl

WATCHED_MS: Final = 15_000
"""For so long after a look, nodes send what they do."""

LISTED_MAX: Final = 100
KEPT_MAX: Final = 100_000
"""More than all nodes send."""

ANSWER_S: Final = 5.0
LOOK_S: Final = 0.25


async def recent_of(crawl: OpenedCrawl) -> dict[str, Any]:
    """Return the last fetches, items and log lines of all nodes, newest first; nodes send them for `WATCHED_MS`."""
    return _merged(_nodes_of(await watch(crawl)))


async def recent_now(crawl: OpenedCrawl) -> dict[str, Any]:
    """Like `recent_of`, but first wait until all live nodes have answered, `ANSWER_S` at most."""
    asked_ms, until_s = crawl.client.now_ms(), time.monotonic() + ANSWER_S
    nodes = await crawl.nodes()
    while True:
        found = _nodes_of(await watch(crawl))
        answered = {node for node, data in found.items() if "fetches" in data and data["at_ms"] >= asked_ms}
        if nodes <= answered or time.monotonic() >= until_s:
            return _merged(found)
        await asyncio.sleep(LOOK_S)


async def summaries_of(crawl: OpenedCrawl) -> list[Any]:
    """Return what the spiders of all nodes report of their web (`crawl_summary`). Cost: one Redis command."""
    found = (data.get("summary") for data in _nodes_of(await watch(crawl)).values())
    return [summary for summary in found if summary is not None]


async def watch(crawl: OpenedCrawl, host: str = "") -> WatchedCrawl:
    """Ask nodes to send their activity, above all that at a host, and return what they sent last."""
    until_ms = crawl.client.now_ms() + WATCHED_MS
    seen: WatchedCrawl
    [seen] = await crawl.client.run([looking.watch_crawl(crawl.crawl_keys, until_ms, host)])
    return seen


def timeline_of(seen: WatchedCrawl, host: str) -> list[dict[str, Any]]:
    fetches = _merged(_nodes_of(seen), KEPT_MAX)["fetches"]
    shown = ("at", "status", "outcome", "ms", "url")
    rows = ({name: row[name] for name in shown} for row in fetches if urlsplit(row["url"]).hostname == host)
    return list(islice(rows, LISTED_MAX))


def _nodes_of(seen: WatchedCrawl) -> dict[str, dict[str, Any]]:
    found = {}
    for node, text in seen.recent:
        try:
            found[node.decode("utf-8", "replace")] = _checked(read_json(text))
        except (ValueError, TypeError):  # of another version, or damaged
            continue
    return found


def _checked(data: Any) -> dict[str, Any]:
    """Return a node's data; raise ValueError or TypeError if it is malformed."""
    if not isinstance(data, dict):
        raise TypeError("it is no object")
    rows: dict[str, Any] = {"at_ms": int(data.get("at_ms", 0)), "log": []}
    for first_s, last_s, level, logger, text, count in data.get("log", ()):
        row = {"at": float(last_s), "first_at": float(first_s), "level": str(level), "logger": str(logger)}
        rows["log"].append({**row, "text": str(text), "count": int(count)})
    if "fetches" in data:
        rows["fetches"] = [_fetch(*fetch) for fetch in data["fetches"]]
        rows["items"] = [{"at": float(at_s), "text": str(text)} for at_s, text in data["items"]]
        rows["summary"] = data.get("summary")
    return rows


def _fetch(at_ms: int, url: str, counter: str, fetched_bytes: int, took_ms: int) -> dict[str, Any]:
    kind, _, code = counter.partition(":")
    is_page = kind == "status" and code.isdigit()
    return {
        "at": int(at_ms) / 1000,
        "url": str(url),
        "status": int(code) if is_page else None,
        "outcome": "page" if is_page else counter,
        "bytes": int(fetched_bytes),
        "ms": int(took_ms),
    }


def _merged(nodes: dict[str, dict[str, Any]], most: int = LISTED_MAX) -> dict[str, Any]:
    return {
        part: _newest(({"node": node, **row} for node, data in nodes.items() for row in data.get(part, ())), most)
        for part in ("fetches", "items", "log")
    }


def _newest(rows: Iterable[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    return sorted(rows, key=itemgetter("at"), reverse=True)[:most]
