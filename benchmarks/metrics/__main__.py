"""`make bench-metrics`: what it costs a node to be watched, with many hosts in Redis. Five minutes with a million.

A node, its loops and a Redis are real. Nothing is fetched, so that all CPU of a scrape is the scrape's own:

    text      writing all metrics, in OpenMetrics
    answer    the same with the request's way through the server, whose text is not kept from one to the next
    sums      summing what the beat has asked Redis about the owned partitions, once a beat
    page      the counts and times that are taken for each page
    status    what `scrapy frontier top` or a dashboard asks Redis for, with the CPU of both sides

The share is that of one core when the node is scraped every second, and its beat is as fast.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from unittest.mock import Mock

from twisted.internet.testing import StringTransport

from benchmarks.frontier.ours import make_node
from bigcrawl.clock import SystemClock
from bigcrawl.histogram import Histogram
from bigcrawl.metrics.source import DiskSpaceLeft, MetricsSource, OwnedSums
from bigcrawl.metrics.text import MetricsText, metrics_site
from bigcrawl.politeness.dns_cache import DnsCache
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.views.opened_crawl import open_crawl
from bigcrawl.views.status import status_of
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.unit.scheduler.world import queued, resolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.config import Config
    from bigcrawl.scheduler.node.node import Node

SCRAPES: Final = 200
STATUSES: Final = 100
PAGES: Final = 200_000
FILL_S_MAX: Final = 1_200.0
REQUEST: Final = (
    b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9410\r\nAccept: application/openmetrics-text;version=1.0.0\r\n\r\n"
)


class StatusCost(NamedTuple):
    """Of one status: commands that Redis is sent, and the CPU that it and who asks spend."""

    commands: float
    redis_ms: float
    asker_ms: float

    def __str__(self) -> str:
        return f"a status: {self.commands:.1f} commands, {self.redis_ms:.1f} ms of Redis, {self.asker_ms:.1f} ms to ask"


class Watching(NamedTuple):
    """CPU of each part, Redis commands for all scrapes together, and what a scrape shows."""

    hosts: int
    text_ms: float
    answer_ms: float
    sums_ms: float
    page_us: float
    commands: int
    text_bytes: int
    series: int
    status: StatusCost

    @property
    def share(self) -> float:
        """Of a core, with one scrape and one beat a second."""
        return (self.answer_ms + self.sums_ms) / 1000

    def __str__(self) -> str:
        return (
            f"{self.hosts:,} hosts: text {self.text_ms:.2f} ms, answer {self.answer_ms:.2f} ms, sums "
            f"{self.sums_ms:.2f} ms; {self.share:.2%} of a core when scraped every second; {self.commands} Redis "
            f"commands in {2 * SCRAPES} scrapes; {self.series} series, {self.text_bytes / 1000:.0f} kB; "
            f"{self.page_us:.2f} us a page; {self.status}"
        )


async def watch(hosts: int, partitions: int, directory: Path, redis: PrivateRedis) -> Watching:
    """Fill a node with hosts of one URL each, and measure what watching it costs."""
    client = RedisClient(redis.url)
    settings = {
        "BIGCRAWL_REDIS_URL": redis.url,
        "BIGCRAWL_STATE_DIR": str(directory),
        "BIGCRAWL_PARTITIONS": partitions,
        "BIGCRAWL_HOT_URLS": max(1_000, 4 * hosts),
        "BIGCRAWL_OUTBOX_URLS_MAX": 10_000_000,
        "BIGCRAWL_DURABLE_SECONDS": 600,
    }
    node = make_node(client, DnsCache(resolve, SystemClock()), settings, lambda: False)
    sums = OwnedSums()
    try:
        await node.start()
        node.beat.leases.tell_views_to(sums.add_up_views)
        await fill(node, hosts)
        calls = [scripts.look_partition(partition_keys("bench", number)) for number in range(partitions)]
        views = await client.run(calls)
        source = MetricsSource(node.parts, lambda key: 0, sums, DiskSpaceLeft({}))
        text = MetricsText(source, "bench")
        before = commands_of(redis)
        # No await from here to there: whatever Redis gets, it gets for the scrapes.
        text_ms = cpu_ms(lambda: text.write("application/openmetrics-text;version=1.0.0"))
        answer_ms = cpu_ms(lambda: answered(metrics_site(text.write)))
        commands = commands_of(redis) - before
        written = text.write("application/openmetrics-text;version=1.0.0")[0]
        series = sum(not line.startswith(b"#") for line in written.splitlines())
        sums_ms = cpu_ms(lambda: sums.add_up_views(views))
        assert sum(sums.hosts.values()) == hosts, "all hosts are in the figures"
        await node.runner.stop()
        status = await status_cost(node.config, redis, hosts)
        return Watching(hosts, text_ms, answer_ms, sums_ms, page_us(), commands, len(written), series, status)
    finally:
        await node.departure.close()
        await client.close()


async def status_cost(config: Config, redis: PrivateRedis, hosts: int) -> StatusCost:
    """Ask for the status a second apart by the clock of who asks, so that it asks for the time each time, too.

    The node's loops stand still meanwhile.
    """
    async with open_crawl(config, redis.url) as crawl:
        found = await status_of(crawl)
        assert sum(found["hosts"][state] for state in ("ready", "waiting", "busy")) == hosts, "all are in the figures"
        sent = 0
        talk = crawl.client._servers.connections.send_commands

        async def counted(rows: Any) -> Any:
            nonlocal sent
            sent += len(rows)
            return await talk(rows)

        crawl.client._servers.connections.send_commands = counted  # type: ignore[method-assign]
        redis_ms, asker_ms = server_ms(redis), 1000 * time.thread_time()
        for _ in range(STATUSES):
            crawl.client._crawl_clock._ask_ms = 0
            await status_of(crawl)
        redis_ms = server_ms(redis) - redis_ms
        return StatusCost(sent / STATUSES, redis_ms / STATUSES, (1000 * time.thread_time() - asker_ms) / STATUSES)


def server_ms(redis: PrivateRedis) -> float:
    """CPU that Redis has spent, in steps of 10 ms."""
    fields = Path(f"/proc/{redis.pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def fill(node: Node, hosts: int) -> None:
    """Offer one URL of each host, and wait until all are in Redis.

    Raises:
        RuntimeError: they are not after twenty minutes.
    """
    deadline = time.monotonic() + FILL_S_MAX
    for start in range(0, hosts, 1_000):
        for url in queued(*(f"http://www.example{host}.com/" for host in range(start, min(start + 1_000, hosts)))):
            node.offer(url)
        await asyncio.sleep(0)
    while True:
        seen = await node.progress.survey()
        if seen.urls_queued >= hosts:
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"{hosts} hosts are not in Redis: {seen}")
        await asyncio.sleep(0.5)


def answered(site: Any) -> None:
    """Answer one request on a connection in memory."""
    protocol, transport = site.buildProtocol(Mock()), StringTransport()
    protocol.makeConnection(transport)
    protocol.dataReceived(REQUEST)
    assert transport.value().startswith(b"HTTP/1.1 200"), transport.value()[:200]
    protocol.setTimeout(None)  # the reactor does not run
    protocol.connectionLost()


def commands_of(redis: PrivateRedis) -> int:
    """Commands that Redis was sent, without those of this look and of the one before."""
    info: dict[str, Any] = redis.client.info("commandstats")
    return sum(row["calls"] for name, row in info.items() if name != "cmdstat_info")


def cpu_ms(work: Callable[[], object]) -> float:
    """Median CPU of a piece of work, of this process."""
    spent = []
    for _ in range(SCRAPES):
        since = time.process_time()
        work()
        spent.append(time.process_time() - since)
    return 1000 * statistics.median(spent)


def page_us() -> float:
    """CPU of what is counted for a page: its end, and three times."""
    histograms = [Histogram() for _ in range(3)]
    ends: dict[str, int] = {}
    since = time.process_time()
    for page in range(PAGES):
        for histogram in histograms:
            histogram.count_ms(page & 4_095)
        ends["status:200"] = ends.get("status:200", 0) + 1
    return 1e6 * (time.process_time() - since) / PAGES


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[1_000, 1_000_000])
    parser.add_argument("--partitions", type=int, default=256)
    chosen = parser.parse_args()
    for hosts in chosen.hosts:
        with tempfile.TemporaryDirectory() as directory, PrivateRedis(aof=False) as redis:
            found = asyncio.run(watch(hosts, chosen.partitions, Path(directory), redis))
        sys.stdout.write(f"{found}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
