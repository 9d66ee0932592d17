"""`python -m benchmarks.best_first`: what a frontier of ten million waiting URLs hands out first.

256 partitions of real files hold the URLs, on 500,000 hosts. Priorities are drawn: one URL in a thousand is urgent
(from 100 on), one in a hundred high (10 to 99), one in ten raised (1 to 9), the others ordinary. One node hands them
out as fast as it can, without budgets, with a hot set of 64 URLs a partition; fetches take no time. Told is, after so
many pages, what share of each level is done, and how often a host was asked for a page before one of higher level.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvloop

from benchmarks.backlog.state import BATCH_URLS, PARTITIONS, STEP_URLS, hosts_of
from benchmarks.crawl.report import aligned, say
from benchmarks.frontier.ours import Engine, make_node
from bigcrawl.clock import SystemClock
from bigcrawl.links import Links
from bigcrawl.politeness.dns_cache import DnsCache
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.node.loops.memory import tame_memory
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.queues.front_queues import LEVELS, level_of
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.queued_url import encode_batch
from bigcrawl.url.key import PUBLIC_KEYS
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.unit.scheduler.world import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bigcrawl.scheduler.records.held import HeldUrl
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

_RANGES: Final = ((0, 0), (1, 9), (10, 99), (100, 999))
_SHARES: Final = (0.889, 0.1, 0.01, 0.001)
_NAMES: Final = ("below zero", "ordinary", "raised", "high", "urgent")
_MARKS: Final = (10_000, 20_000, 50_000, 100_000, 200_000, 500_000)

assert len(_NAMES) == LEVELS


def main() -> int:
    """Fill once, hand out with each bias, print a table of each."""
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="bigcrawl-best-first-", dir=options.directory) as directory:
        made = Path(directory) / "made"
        made.mkdir()
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            counts = pool.map(partial(_fill, made, int(options.waiting)), range(PARTITIONS))
            totals = [sum(of_level) for of_level in zip(*counts, strict=True)]
        say(
            f"{sum(totals):,} URLs wait: "
            + ", ".join(f"{n:,} {name}" for n, name in zip(totals, _NAMES, strict=True) if n)
        )
        for bias in options.bias:
            run = Path(directory) / f"run-{bias}"
            shutil.copytree(made, run / "bench", copy_function=os.link)
            _tell(bias, _handed_out(run, bias, int(options.pages)), totals)
            shutil.rmtree(run)
    return 0


def _fill(directory: Path, waiting: int, number: int) -> list[int]:
    """Write one partition with its share; how many URLs each level has."""
    partition = Partition.open(directory / f"p{number:04d}", 1, PartitionLimits())
    counts = [0] * LEVELS
    for step, urls in enumerate(_steps(hosts_of(number), waiting // PARTITIONS, random.Random(number)), 1):
        parts = [urls[at : at + BATCH_URLS] for at in range(0, len(urls), BATCH_URLS)]
        partition.step([InboxEntry(f"{step}-{at}", encode_batch(part)) for at, part in enumerate(parts)], 0, {})
        for url in urls:
            counts[level_of(url.priority)] += 1
    partition.committed.make_durable()
    return counts


def _steps(names: Sequence[str], count: int, dice: random.Random) -> Iterator[list[QueuedUrl]]:
    encode = links_encoder(Links(()), 3)
    for start in range(0, count, STEP_URLS):
        texts = [f"http://{dice.choice(names)}/page-{n}.html" for n in range(start, min(start + STEP_URLS, count))]
        ranges = dice.choices(_RANGES, _SHARES, k=len(texts))
        yield [
            encode(key, text)._replace(priority=dice.randint(*bounds))
            for key, text, bounds in zip(map(PUBLIC_KEYS.of_url, texts), texts, ranges, strict=True)
        ]


def _handed_out(state: Path, bias: int, pages: int) -> list[tuple[str, int]]:
    """Host and priority of the pages, in the order in which they were handed out."""
    with PrivateRedis() as redis, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        tame_memory()
        settings: dict[str, Any] = {
            "BIGCRAWL_REDIS_URL": redis.url,
            "BIGCRAWL_STATE_DIR": str(state),
            "BIGCRAWL_BUDGET_POLICY": "none",
            "BIGCRAWL_HOT_URLS": 1_000,
            "BIGCRAWL_PRIORITY_BIAS": bias,
        }
        return runner.run(_run(RedisClient(redis.url), settings, pages))


async def _run(client: RedisClient, settings: dict[str, Any], pages: int) -> list[tuple[str, int]]:
    order: list[tuple[str, int]] = []

    def note(held: HeldUrl) -> None:
        order.append((held.host, held.fields.priority))

    node = make_node(client, DnsCache(resolve, SystemClock()), settings, lambda: True)
    try:
        await node.start()
        await Engine(node, note).run(pages)
    finally:
        await node.departure.close()
        await client.close()
    return order


def _tell(bias: int, order: list[tuple[str, int]], totals: list[int]) -> None:
    levels = [level_of(priority) for _, priority in order]
    held = [level for level, total in enumerate(totals) if total]
    rows = [("pages", *(f"{_NAMES[level]}, done" for level in reversed(held)))]
    for mark in [mark for mark in _MARKS if mark < len(order)] + [len(order)]:
        done = [levels[:mark].count(level) for level in range(LEVELS)]
        rows.append(
            (f"{mark:,}", *(f"{done[level]:,} ({done[level] / totals[level]:.0%})" for level in reversed(held)))
        )
    pairs = misplaced = 0
    last: dict[str, int] = {}
    for (host, _), level in zip(order, levels, strict=True):
        if host in last:
            pairs += 1
            misplaced += level > last[host]
        last[host] = level
    say("", f"BIGCRAWL_PRIORITY_BIAS = {bias}", *aligned(rows))
    say(f"of {pairs:,} times that a host was asked again, {misplaced:,} brought a page of higher level than before")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.best_first", description=__doc__)
    add = parser.add_argument
    add("--waiting", type=float, default=1e7, help="URLs; default 1e7")
    add("--pages", type=float, default=2e5, help="handed out with each bias; default 2e5")
    add("--bias", type=int, nargs="+", default=[2, 100], help="default 2 100")
    add("--directory", type=Path, metavar="DIR", help="where to work: 1 GB; default: a temporary one")
    return parser


if __name__ == "__main__":
    sys.exit(main())
