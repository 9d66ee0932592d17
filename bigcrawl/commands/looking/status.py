"""`scrapy frontier status`: the state of the whole crawl, from Redis only.

A stopped embedded server is started for the query; a crawl that starts meanwhile uses it.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from bigcrawl.commands.looking.standstill import Facts, done_in_s, standstill
from bigcrawl.commands.moving.import_crawl import IMPORTING
from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.commands.steering.speed import read_speed
from bigcrawl.redisdb.keys import CrawlKeys, partition_keys
from bigcrawl.redisdb.replies import pairs_of, scores_of
from bigcrawl.scheduler.crawl.survey import survey
from bigcrawl.scheduler.queues.epoch_directory import REJECTED

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.survey import Survey


def status(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show the state of the crawl; the exit status is 1 if inbox entries could not be read.

    Raises:
        as `read_status`.
    """
    with server_of(config) as server:
        found = asyncio.run(read_status(config, server))
    return Result(found, status_text(found), 1 if found["rejected"]["entries"] else 0)


async def read_status(config: Config, server: str) -> dict[str, Any]:
    """Return the crawl's nodes, partitions, hosts and URLs by state, pages and rates.

    Raises:
        ConfigError: there is no such crawl.
        TransientStoreError: Redis does not answer.
    """
    async with opened(config, server) as crawl:
        keys, client = CrawlKeys(config.crawl.name), crawl.client
        seen = await survey(client, config.crawl.name, crawl.partitions)
        record = dict(pairs_of(await client.command("HGETALL", keys.crawl)))
        speed = await read_speed(crawl)
        names = sorted(await crawl.nodes())
        reports = await client.commands([("HGET", keys.nodes, name) for name in names])
        awaited = await _awaited_host(client, config.crawl.name, seen) if not seen.hosts_ready else None
    nodes = {name: json.loads(report or b"{}") for name, report in zip(names, reports, strict=True)}
    starts = [value.decode() for name, value in record.items() if name.startswith(b"start:")]
    facts = Facts(
        seen,
        nodes,
        finished=b"finished" in record,
        importing=IMPORTING.encode() in record,
        starting=tuple(value.partition("\n")[0] for value in starts if not value.startswith("done")),
        paused=frozenset(speed["paused"]),
        has_speed=0 not in (speed["pages_per_s"], speed["bytes_per_s"]),
        speed_by_hand=speed["by_hand"] is not None,
        pages_max=config.crawl.pages_max,
        awaited=awaited,
    )
    why, done = standstill(facts), done_in_s(facts)
    status = _status(config, seen, nodes, finished=facts.finished)
    return {**status, "awaited_host": awaited, "standstill": why, "done_in_s": done}


async def _awaited_host(client: RedisClient, crawl: str, seen: Survey) -> dict[str, Any] | None:
    """Return the host that is due first while none is due now; None if no URL waits for a host."""
    if not seen.hosts_waiting:
        return None
    partitions = [partition_keys(crawl, number) for number in range(seen.partitions)]
    heads = await client.commands([("ZRANGE", keys.ready, 0, 0, "WITHSCORES") for keys in partitions])
    rows = [(row[0], keys) for reply, keys in zip(heads, partitions, strict=True) if (row := scores_of(reply))]
    if not rows:
        return None  # the last one was taken or ended since the survey
    (host, due_ms), keys = min(rows, key=lambda row: row[0][1])
    failures, why = await client.command("HMGET", keys.host + host, "failures", "why")
    due_in_s = max(0.0, round((due_ms - client.now_ms()) / 1000, 1))
    return {"host": host, "due_in_s": due_in_s, "failures": int(failures or 0), "why": (why or b"").decode() or None}


def _status(config: Config, seen: Survey, nodes: dict[str, dict[str, Any]], *, finished: bool) -> dict[str, Any]:
    return {
        "crawl": config.crawl.name,
        "finished": finished,
        "nodes": {
            name: {
                "partitions": seen.owners[name],
                "held": report.get("held", 0),
                "fetches_max": report.get("fetches_max", 0),
                "outbox": report.get("outbox", 0),
                "pages_per_s": report.get("rate", 0.0),
            }
            for name, report in nodes.items()
        },
        "partitions": {"all": seen.partitions, "owned": seen.owned, "damaged": seen.counts["damaged"]},
        "rejected": {
            "entries": seen.counts["rejected"],
            "below": [str(config.crawl.crawl_dir / f"p{number:04d}" / REJECTED) for number in seen.rejected_in],
        },
        "hosts": {
            "ready": seen.hosts_ready,
            "waiting": seen.hosts_waiting,
            "busy": seen.hosts_busy,
            "snoozed": seen.hosts_snoozed,
            "retired": seen.hosts_retired,
        },
        "urls": {
            "inbox": seen.urls_inbox,
            "disk": seen.urls_disk,
            "withheld": seen.counts["withheld"],
            "queued": seen.urls_queued,
            "taken": seen.urls_taken,
            "damaged": seen.urls_damaged,
            "lost": seen.counts["lost"],
            "ended": seen.counts["ended"],
            "seen": seen.counts["seen"],
            "dead": seen.counts["dead"],
        },
        "pages": seen.pages,
        "bytes": seen.counts["bytes"],
        "pages_per_s": round(sum(report.get("rate", 0.0) for report in nodes.values()), 1),
        "outcomes": {name: count for name, count in sorted(seen.counts.items()) if ":" in name},
    }


def status_text(status: dict[str, Any]) -> str:
    """Return the status as text."""
    urls, hosts = status["urls"], status["hosts"]
    lines = [
        f"crawl {status['crawl']}{': finished' if status['finished'] else ''}",
        (
            f"pages       {status['pages']:,} ({status['bytes'] / 1e6:,.1f} MB), {status['pages_per_s']:.1f} a second"
            f"{_done_text(status['done_in_s'])}"
        ),
        (
            f"hosts       {hosts['ready']:,} ready, {hosts['waiting']:,} waiting, {hosts['busy']:,} busy; "
            f"{hosts['snoozed']:,} snoozed, {hosts['retired']:,} retired"
        ),
        (
            f"URLs        {urls['inbox']:,} in inboxes, {urls['disk']:,} on disk, {urls['queued']:,} in Redis, "
            f"{urls['taken']:,} taken, {urls['ended']:,} ended, {urls['withheld']:,} withheld; {urls['seen']:,} seen"
        ),
        f"partitions  {status['partitions']['owned']} of {status['partitions']['all']} owned",
    ]
    lines[1:1] = [f"standstill  {reason}" for reason in status["standstill"]]
    if damaged := status["partitions"]["damaged"]:
        lines.append(
            f"damaged     {damaged} partitions, where {urls['damaged']:,} URLs wait: see scrapy frontier verify"
        )
    if rejected := status["rejected"]["entries"]:
        first, *others = status["rejected"]["below"]
        more = f" and {len(others)} more" if others else ""
        lines.append(
            f"rejected    {rejected:,} inbox entries could not be read; they lie below {first}{more}: "
            f"see scrapy frontier rejected"
        )
    if urls["lost"]:
        lines.append(f"lost        {urls['lost']:,} URLs by a Redis that forgot them; see BIGCRAWL_REDIS_LOSS_SECONDS")
    if urls["dead"]:
        lines.append(f"dead        {urls['dead']:,} URLs kill or hang their node; `scrapy frontier dead` lists them")
    for name, node in status["nodes"].items():
        lines.append(
            f"node        {name}: {node['partitions']} partitions, {node['held']} URLs held, "
            f"{node['fetches_max']} fetches at a time, {node['pages_per_s']:.1f} pages/s"
        )
    if not status["nodes"]:
        lines.append("node        none runs")
    lines += [f"  {name:<24}{count:>12,}" for name, count in status["outcomes"].items()]
    return "\n".join(lines)


def _done_text(seconds: float | None) -> str:
    """What waits is done in this time, if no more is found."""
    if seconds is None:
        return ""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"; what waits now takes {seconds / length:,.0f} {unit}"
    return f"; what waits now takes {seconds:,.0f} s"
