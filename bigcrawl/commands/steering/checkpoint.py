"""`scrapy frontier checkpoint`, for an operator who is about to copy, snapshot or switch off something."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Any

from bigcrawl.commands.result import Result
from bigcrawl.drum.files import store_errors
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.node.control import CHECKPOINT
from bigcrawl.store.objects import ObjectStore
from bigcrawl.store.series import PointSeries
from bigcrawl.views.opened_crawl import in_crawl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from bigcrawl.config import Config
    from bigcrawl.redisdb.scripts import PartitionView
    from bigcrawl.views.opened_crawl import OpenedCrawl

WAIT_S = 60.0
_LOOK_S = 0.3
_SHOWN_MAX = 20


def checkpoint_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout", type=float, default=WAIT_S, metavar="SECONDS", help=f"how long to wait; {WAIT_S:g} by default"
    )


def checkpoint(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Make all commits of the crawl durable now, and wait for that; the exit status is 1 if any is not.

    In a running crawl, every owner syncs its partitions to the disk, and to the store if there is one. If the crawl is
    stopped, the files of dead nodes are synced here, and the store is compared with their commits. Cost: a few fsyncs
    for each partition; two to four seconds, or as long as the store takes.
    """
    if not opts.timeout > 0:
        raise ConfigError(f"--timeout is {opts.timeout:g}; must be more than 0 seconds")
    data = in_crawl(config, _wait_for_checkpoint, opts.timeout)
    return Result(data, _checkpoint_text(data), 1 if data["missing"] else 0)


async def _wait_for_checkpoint(crawl: OpenedCrawl, wait_s: float) -> dict[str, Any]:
    began = time.monotonic()
    is_running = bool(await crawl.nodes())
    missing = (
        await _order_checkpoint(crawl, wait_s) if is_running else _partitions_with_data(await _read_partitions(crawl))
    )
    views = await _read_partitions(crawl)
    rows = [_missing_partition(number, views[number]) for number in missing]
    if not is_running:
        rows = await asyncio.to_thread(_make_durable, crawl.config, rows, views)
    seconds = round(time.monotonic() - began, 1)
    return {"running": is_running, "partitions": crawl.partitions, "missing": rows, "seconds": seconds}


async def _order_checkpoint(crawl: OpenedCrawl, wait_s: float) -> list[int]:
    """Order a checkpoint and wait for it. Return the partitions that have not carried it out.

    An order's number is the time, so it exceeds earlier ones. If Redis forgets the order, it is sent again.
    """
    client, control = crawl.client, crawl.crawl_keys.control
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


async def _read_partitions(crawl: OpenedCrawl) -> list[PartitionView]:
    return await crawl.client.run([scripts.look_partition(crawl.keys(number)) for number in range(crawl.partitions)])


def _missing_partition(number: int, view: PartitionView) -> dict[str, Any]:
    if view.count("damaged"):
        return {"partition": number, "node": None, "why": "damaged: see scrapy frontier verify"}
    if not view.node or view.lease_left_ms <= 0:
        return {"partition": number, "node": None, "why": "no owner"}
    return {"partition": number, "node": view.node, "why": "no answer"}


def _partitions_with_data(views: Sequence[PartitionView]) -> list[int]:
    return [number for number, view in enumerate(views) if view.count("manifest")]


def _make_durable(
    config: Config, rows: Sequence[dict[str, Any]], views: Sequence[PartitionView]
) -> list[dict[str, Any]]:
    """Sync the files that stopped nodes left behind. Return the partitions that are not durable, and why."""
    found = []
    objects = ObjectStore(config.store.url) if config.store.url else None
    try:
        for row in rows:
            view, name = views[row["partition"]], f"p{row['partition']:04d}"
            if objects is not None:
                why = _store_problem(PointSeries(objects, f"{config.crawl.name}/{name}"), view)
            elif view.node and (view.is_begun or (config.crawl.crawl_dir / name).is_dir()):
                why = _sync_directory(config.crawl.crawl_dir / name)  # a node that releases a partition has synced it
            else:
                why = ""
            if why:
                found.append({**row, "node": view.node or None, "why": why})
    finally:
        if objects is not None:
            objects.close()
    return found


def _store_problem(series: PointSeries, view: PartitionView) -> str:
    _, stored = series.last_place()
    committed = view.count("manifest")
    if stored >= committed:
        return ""
    return f"the store has manifest {stored} of {committed}; the rest is on the disk of its last node, and in Redis"


def _sync_directory(directory: Path) -> str:
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


def _checkpoint_text(data: dict[str, Any]) -> str:
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
