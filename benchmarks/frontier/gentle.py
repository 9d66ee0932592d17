"""`python -m benchmarks.frontier.gentle`: pages a second of a broad crawl that is gentle. Options: --help.

10^5 hosts wait on disk, each with a few URLs one after the other, as a crawl finds them; a host is asked every 30
seconds. All other settings have their defaults, and fetching takes no time: what is measured is how many hosts the
frontier keeps ready (PolyBot §3.5: more than speed times delay). The first delay, in which hosts are asked for the
first time, is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import uvloop

from benchmarks.crawl import procfs
from benchmarks.crawl.report import say
from benchmarks.frontier.ours import NO_REST, Engine, make_node
from bigcrawl.clock import SystemClock
from bigcrawl.links import Links
from bigcrawl.politeness.dns_cache import DnsCache
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.queued_url import encode_batch
from bigcrawl.url.key import HASH_SEED, PUBLIC_KEYS
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.unit.scheduler.world import resolve

PARTITIONS: Final = 256
CRAWL: Final = str(NO_REST["BIGCRAWL_CRAWL"])
PAGES_A_ROUND: Final = 32


def main() -> None:
    """Fill, run, say."""
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="bigcrawl-gentle-") as directory, PrivateRedis() as redis:
        _fill(Path(directory, CRAWL), options.hosts, options.urls)
        settings: dict[str, Any] = {"BIGCRAWL_STATE_DIR": directory, "BIGCRAWL_HOST_DELAY": options.delay}
        settings |= dict(pair.split("=", 1) for pair in options.set)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_measure(redis, settings, options))


def _fill(directory: Path, hosts: int, urls_each: int) -> None:
    by_partition: list[list[str]] = [[] for _ in range(PARTITIONS)]
    for host in (f"www.site{number}.com" for number in range(hosts)):
        by_partition[PUBLIC_KEYS.partition_of(host.removeprefix("www."), PARTITIONS)].append(host)
    encode = links_encoder(Links(()), 3)
    for number, names in enumerate(by_partition):
        texts = [f"http://{host}/page-{page}.html" for host in names for page in range(urls_each)]
        batch = encode_batch([encode(PUBLIC_KEYS.of_url(text), text) for text in texts])
        partition = Partition.open(directory / f"p{number:04d}", 1, PartitionLimits())
        partition.step([InboxEntry("1-1", batch)], 0, {})
        partition.committed.make_durable()


async def _measure(redis: PrivateRedis, settings: dict[str, Any], options: argparse.Namespace) -> None:
    client = RedisClient(redis.url)
    # The keys on disk, made before the crawl, are those of one without a secret.
    await client.command("HSETNX", CrawlKeys(CRAWL).crawl, "hash_seed", HASH_SEED)
    dns = DnsCache(resolve, SystemClock())
    node = make_node(client, dns, {"BIGCRAWL_REDIS_URL": redis.url, **settings}, lambda: True)
    await node.start()
    try:
        engine, began_s, pages, skipped = Engine(node), time.monotonic(), 0, 0
        since_s, cpu_s = began_s, 0.0
        while (now_s := time.monotonic()) < began_s + options.delay + options.seconds:
            if not skipped and now_s >= began_s + options.delay:
                skipped, since_s, cpu_s = pages, now_s, time.process_time()
            pages += await engine.run(PAGES_A_ROUND)
        passed_s = time.monotonic() - since_s
        say(
            f"{options.hosts:,} hosts, {options.delay:g} s between fetches of one: "
            f"{(pages - skipped) / passed_s:,.0f} pages/s (the hosts allow {options.hosts / options.delay:,.0f}), "
            f"{(time.process_time() - cpu_s) / (pages - skipped) * 1e6:.0f} us of CPU a page, "
            f"Redis {procfs.rss_bytes(redis.pid) / 1e6:.0f} MB, node {procfs.rss_bytes(os.getpid()) / 1e6:.0f} MB"
        )
    finally:
        await node.departure.close()
        await client.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="pages a second of a broad crawl that is gentle")
    parser.add_argument("--hosts", type=int, default=102_400)
    parser.add_argument("--urls", type=int, default=8, help="of each host")
    parser.add_argument("--delay", type=float, default=30.0, help="seconds between fetches of a host")
    parser.add_argument("--seconds", type=float, default=30.0, help="measured, after a first delay")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the crawl")
    return parser


if __name__ == "__main__":
    main()
