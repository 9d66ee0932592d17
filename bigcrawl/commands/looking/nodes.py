"""`scrapy frontier nodes`: the nodes of the crawl, one by one: what each has, holds and waits for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.replies import scores_of
from bigcrawl.scheduler.crawl.alike import SINCE, VERSION
from bigcrawl.scheduler.crawl.node_reports import read_or_nothing
from bigcrawl.scheduler.node.control import DRAINED, PAUSED

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config


def nodes(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show each node that lives, or died lately.

    Raises:
        ConfigError: there is no such crawl.
        TransientStoreError: Redis does not answer.
    """
    with server_of(config) as server:
        found = asyncio.run(_read(config, server))
    return Result({"nodes": found}, nodes_text(found))


async def _read(config: Config, server: str) -> list[dict[str, Any]]:
    async with opened(config, server) as crawl:
        keys, client = CrawlKeys(config.crawl.name), crawl.client
        beats = scores_of(await client.command("ZRANGE", keys.beats, 0, -1, "WITHSCORES"))
        reports = await client.command("HMGET", keys.nodes, *[name for name, _ in beats]) if beats else []
        orders = {name.decode() for name in await client.command("HKEYS", keys.control)}
        now_ms = client.now_ms()
    rows = []
    for (name, beat_ms), text in sorted(zip(beats, reports, strict=True)):
        report = read_or_nothing(text or b"")
        silent_ms = max(0, now_ms - beat_ms)
        state = "silent" if silent_ms > config.frontier.lease_ms else "runs"
        if state == "runs" and f"{DRAINED}:{name}" in orders:
            state = "is being drained"
        elif state == "runs" and orders & {PAUSED, f"{PAUSED}:{name}"}:
            state = "paused"
        rows.append(
            {
                "node": name,
                "state": state,
                "version": report.get(VERSION, ""),
                "last_heard_s": round(silent_ms / 1000, 1),
                "up_s": round((beat_ms - report.get(SINCE, beat_ms)) / 1000, 1),
                "partitions": report.get("partitions", 0),
                "pages": report.get("pages", 0),
                "pages_per_s": report.get("rate", 0.0),
                "held": report.get("held", 0),
                "stages": report.get("stages", {}),
                "fetches_max": report.get("fetches_max", 0),
                "outbox": report.get("outbox", 0),
                "late_ms": report.get("late_ms", 0),
                "crowded": report.get("crowded", False),
                "trouble": report.get("trouble", ""),
            }
        )
    return rows


def nodes_text(rows: Sequence[dict[str, Any]]) -> str:
    """Return the nodes as text."""
    lines = []
    for row in rows:
        stages = ", ".join(f"{count:,} {stage}" for stage, count in sorted(row["stages"].items())) or "none"
        version = f", bigcrawl {row['version']}" if row["version"] else ""
        lines += [
            f"{row['node']}: {row['state']}{version}, heard {row['last_heard_s']:,.1f} s ago, up {row['up_s']:,.0f} s",
            f"  pages     {row['pages']:,}, {row['pages_per_s']:.1f} a second",
            f"  has       {row['partitions']:,} partitions; URLs held: {stages}; {row['outbox']:,} in its outbox",
            f"  fetches   {row['fetches_max']:,} at a time; hosts start {row['late_ms']:,} ms late",
        ]
        if row["crowded"]:
            lines.append("  takes     nothing: outbox or inboxes are full")
        if row["trouble"]:
            lines.append(f"  waits     {row['trouble']}")
    return "\n".join(lines) or "no node runs"
