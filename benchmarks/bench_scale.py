"""Memory with 10^7 URLs seen and all of them waiting: node RSS and Redis, against the bounds of P4.

`pytest -m benchmark -s benchmarks/bench_scale.py`; BIGCRAWL_BENCH_URLS chooses another number. The URLs
are synthetic, 10^5 hosts of 2 x 10^4 pay-level domains; nothing is fetched, which is the worst case: what has
been seen still waits. Held fixed: 256 partitions and every default.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.clock import SystemClock
from bigcrawl.config import DnsConfig, read_config
from bigcrawl.links import Links
from bigcrawl.politeness.dns_cache import DnsCache
from bigcrawl.politeness.dns_resolver import DnsResolver
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.node.assembly import Parts
from bigcrawl.scheduler.node.node import Node
from bigcrawl.url.key import PUBLIC_KEYS
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.unit.scheduler.world import AnyEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bigcrawl.scheduler.gates.interfaces import FetchedBody

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]

URLS = int(os.environ.get("BIGCRAWL_BENCH_URLS", "10_000_000"))
HOSTS = 100_000
PLDS = 20_000
LINKS_A_PAGE = 60  # as they come from a page
RSS_MB_MAX = 300
REDIS_MB_MAX = 128


def pages() -> Iterator[list[str]]:
    for start in range(0, URLS, LINKS_A_PAGE):
        numbers = range(start, min(start + LINKS_A_PAGE, URLS))
        yield [f"http://h{n % HOSTS}.d{n % PLDS}.example/dir{n % 97}/page-{n}.html" for n in numbers]


def rss_mb() -> float:
    pages_resident = int(Path("/proc/self/statm").read_text().split()[1])
    return pages_resident * os.sysconf("SC_PAGE_SIZE") / 1e6


async def fetch_nothing(url: str, method: str = "GET", gaps: object = (), like: bytes = b"") -> FetchedBody:
    raise AssertionError(f"{url} must not be fetched: nothing is taken here")


async def fill(url: str, state: Path) -> tuple[float, float, dict[str, Any]]:
    """Offer all URLs to a node and wait until they are folded; (peak RSS in MB, seconds, counts)."""
    config = read_config({"BIGCRAWL_REDIS_URL": url, "BIGCRAWL_STATE_DIR": str(state), "BIGCRAWL_CRAWL": "scale"})
    clock = SystemClock()
    client = RedisClient(url)
    engine = AnyEngine(may_take=lambda: False, on_fatal=lambda error: pytest.fail(str(error)))
    dns = DnsCache(DnsResolver(DnsConfig()), clock)
    node = Node(Parts(config, client, dns, clock, fetch_nothing, engine))
    await node.start()
    started, peak = time.perf_counter(), rss_mb()
    for urls in pages():
        encode = links_encoder(Links(urls, canonical=True), 1)
        for canonical in urls:
            node.offer(encode(PUBLIC_KEYS.of_url(canonical), canonical))
        while node.workload.is_crowded:  # noqa: ASYNC110 - as the spider middleware waits
            await asyncio.sleep(0.01)
        peak = max(peak, rss_mb())
        await asyncio.sleep(0)
    while True:
        seen = await node.progress.survey()
        peak = max(peak, rss_mb())
        if seen.counts["seen"] >= URLS:
            break
        await asyncio.sleep(0.5)
    seconds = time.perf_counter() - started
    counts = {"seen": seen.counts["seen"], "disk": seen.urls_disk, "redis": seen.urls_queued}
    await node.departure.close()
    await client.close()
    return peak, seconds, counts


def test_ten_million_urls_stay_within_the_bounds(tmp_path: Path) -> None:
    """10^7 seen and waiting: node RSS <= 300 MB, Redis <= 128 MB."""
    before = rss_mb()
    with PrivateRedis() as server:
        peak, seconds, counts = asyncio.run(fill(server.url, tmp_path / "state"))
        memory = server.client.info("memory")
    used, used_peak = memory["used_memory"] / 1e6, memory["used_memory_peak"] / 1e6
    disk = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()) / 1e6
    print(  # noqa: T201
        f"\n{URLS:,} URLs in {seconds:.0f} s ({URLS / seconds:,.0f}/s): node RSS {peak:.0f} MB at its peak "
        f"({before:.0f} MB before), Redis {used:.0f} MB ({used_peak:.0f} MB peak), disk {disk:.0f} MB; {counts}"
    )
    assert counts["seen"] == URLS
    assert peak <= RSS_MB_MAX
    assert used_peak <= REDIS_MB_MAX
