"""`scrapy frontier checkpoint`: have every partition made durable now, and wait until it is.

A crawl makes its partitions durable by itself, every BIGCRAWL_DURABLE_SECONDS, and every BIGCRAWL_STORE_SECONDS in its
store. This is for an operator who is about to copy, snapshot or switch off something. Nodes go on fetching meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Any

from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.drum.files import store_errors
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.node.control import CHECKPOINT
from bigcrawl.store.objects import Objects
from bigcrawl.store.series import PointSeries

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from bigcrawl.commands.opened_crawl import OpenedCrawl
    from bigcrawl.config import Config
    from bigcrawl.redisdb.scripts import PartitionView

WAIT_S = 60.0
_LOOK_S = 0.3
_SHOWN_MAX = 20


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the time to wait."""
    parser.add_argument(
        "--timeout", type=float, default=WAIT_S, metavar="SECONDS", help=f"how long to wait; {WAIT_S:g} by default"
    )


def checkpoint(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Make what the crawl has committed durable now, and wait for it; what is not makes the exit status 1.

    On a running crawl every owner forces its partitions to the disk, and to the store if there is one. On a stopped one
    the files of nodes that died are forced to the disk here, and the store is compared with what they had committed.

    Cost: a few fsyncs for each partition, on its owner; two to four seconds, or what the store takes.

    Raises:
        ConfigError: the crawl does not exist.
        TransientStoreError: Redis, disk or store does not answer; partitions may have been made durable.
    """
    if not opts.timeout > 0:
        raise ConfigError(f"--timeout is {opts.timeout:g}; must be more than 0 seconds")
    with server_of(config) as server:
        data = asyncio.run(_checkpoint(config, server, opts.timeout))
    return Result(data, _text(data), 1 if data["missing"] else 0)


async def _checkpoint(config: Config, server: str, wait_s: float) -> dict[str, Any]:
    began = time.monotonic()
    async with opened(config, server) as crawl:
        is_running = bool(await crawl.nodes())
        missing = await _order(crawl, wait_s) if is_running else _begun(await _views(crawl))
        views = await _views(crawl)
        rows = [_missing(number, views[number]) for number in missing]
        if not is_running:
            rows = await asyncio.to_thread(_make_durable, config, rows, views)
        seconds = round(time.monotonic() - began, 1)
        return {"running": is_running, "partitions": crawl.partitions, "missing": rows, "seconds": seconds}


async def _order(crawl: OpenedCrawl, wait_s: float) -> list[int]:
    """Give the order and wait for it. Return the partitions that have not carried it out.

    The order is the time, so it is above all earlier ones. It is given again if Redis forgets it.
    """
    client, control = crawl.client, CrawlKeys(crawl.config.crawl.name).control
    order = client.now_ms()
    missing = list(range(crawl.partitions))
    until = time.monotonic() + wait_s
    while missing and time.monotonic() < until:
        if int(await client.command("HGET", control, CHECKPOINT) or 0) < order:
            await client.command("HSET", control, CHECKPOINT, str(order))
        await asyncio.sleep(_LOOK_S)
        made = await client.commands([("HGET", crawl.keys(number).state, CHECKPOINT) for number in missing])
        missing = [number for number, order_made in zip(missing, made, strict=True) if int(order_made or 0) < order]
    return missing


async def _views(crawl: OpenedCrawl) -> list[PartitionView]:
    return await crawl.client.run([scripts.look_partition(crawl.keys(number)) for number in range(crawl.partitions)])


def _missing(number: int, view: PartitionView) -> dict[str, Any]:
    if view.count("damaged"):
        return {"partition": number, "node": None, "why": "damaged: see scrapy frontier verify"}
    if not view.node or view.lease_left_ms <= 0:
        return {"partition": number, "node": None, "why": "no owner"}
    return {"partition": number, "node": view.node, "why": "no answer"}


# --- a crawl that is stopped


def _begun(views: Sequence[PartitionView]) -> list[int]:
    """The partitions that have been begun."""
    return [number for number, view in enumerate(views) if view.count("manifest")]


def _make_durable(
    config: Config, rows: Sequence[dict[str, Any]], views: Sequence[PartitionView]
) -> list[dict[str, Any]]:
    """Make durable what nodes left behind. Return what is not durable, and why."""
    found = []
    objects = Objects(config.store.url) if config.store.url else None
    try:
        for row in rows:
            view, name = views[row["partition"]], f"p{row['partition']:04d}"
            if objects is not None:
                why = _lack_of_store(PointSeries(objects, f"{config.crawl.name}/{name}"), view)
            elif view.node:  # whoever releases a partition has forced its files to the disk
                why = _sync(config.crawl.crawl_dir / name)
            else:
                why = ""
            if why:
                found.append({**row, "node": view.node or None, "why": why})
    finally:
        if objects is not None:
            objects.close()
    return found


def _lack_of_store(series: PointSeries, view: PartitionView) -> str:
    """What the store lacks of the last commit that Redis knows of."""
    _, stored = series.last_place()
    committed = view.count("manifest")
    if stored >= committed:
        return ""
    return f"the store has manifest {stored} of {committed}; the rest is on the disk of its last node, and in Redis"


def _sync(directory: Path) -> str:
    """Force all files of a partition to the disk."""
    if not directory.is_dir():
        return f"its node died, and {directory} is not here: run this on that node's machine, or start the crawl"
    with store_errors(directory):
        for path in (directory, *sorted(directory.rglob("*"))):
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    return ""


def _text(data: dict[str, Any]) -> str:
    missing = data["missing"]
    if not missing:
        how = "are durable now" if data["running"] else "are durable; no node runs"
        return f"all {data['partitions']:,} partitions {how} ({data['seconds']:.1f} s)"
    lines = [f"{len(missing):,} of {data['partitions']:,} partitions are not durable after {data['seconds']:.1f} s:"]
    for row in missing[:_SHOWN_MAX]:
        at = f" at node {row['node']}" if row["node"] else ""
        lines.append(f"  partition {row['partition']}{at}: {row['why']}")
    if left := len(missing) - _SHOWN_MAX:
        lines += [f"  and {left:,} more; --json has all"] if left > 0 else []
    return "\n".join(lines)
