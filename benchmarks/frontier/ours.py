"""bigcrawl's own frontier: a node, its loops and a Redis are real; fetching and parsing take no time."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import uvloop

from benchmarks.crawl import procfs
from bigcrawl.clock import SystemClock
from bigcrawl.config import read_config
from bigcrawl.politeness.dns_cache import DnsCache
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.scheduler.node.assembly import Parts
from bigcrawl.scheduler.node.loops.memory import tame_memory
from bigcrawl.scheduler.node.node import Node
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.unit.scheduler.world import AnyEngine, Web, queued, resolve

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.crawl.profiler import Sampler
    from bigcrawl.exceptions import BigcrawlError
    from bigcrawl.scheduler.records.held import HeldUrl

IN_FLIGHT: Final = 64
WARM_UP_PAGES: Final = 2_000
FILL_S_MAX: Final = 300.0
STALL_S_MAX: Final = 20.0
NO_REST: Final = {
    "BIGCRAWL_CRAWL": "bench",
    "BIGCRAWL_WARC_DIR": "",
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_SERVER_DELAY": 0,
    "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": True,
    "BIGCRAWL_ROBOTS": "ignore-i-own-these-hosts",
    "CONCURRENT_REQUESTS": IN_FLIGHT,
    "BIGCRAWL_FETCHES_MIN": 0,  # all at a time from the start: the limit that adapts takes seconds to count up
}
REST_S: Final = 0.01  # the engine looks again, when nothing wakes it sooner


class Cost(NamedTuple):
    """Of one scheduled page: CPU in microseconds, of the client and of Redis; round trips."""

    client_us: float
    redis_us: float = 0.0
    round_trips: float = 0.0


def measure(hosts: int, pages: int, rounds: int, directory: Path, sampler: Sampler | None = None) -> list[Cost]:
    """Schedule so many pages of so many hosts in each round; return what each cost.

    `directory` holds the node's state, `sampler` sees what is measured.
    """
    with PrivateRedis() as redis:
        procfs.pin(redis.pid, procfs.ORIGIN_CORE)
        # The loop and the collector of a crawl, as add-on and scheduler set them.
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_measure(hosts, pages, rounds, directory, redis, sampler))


async def _measure(
    hosts: int, pages: int, rounds: int, directory: Path, redis: PrivateRedis, sampler: Sampler | None
) -> list[Cost]:
    tame_memory()
    client = RedisClient(redis.url)
    is_filled = asyncio.Event()  # nothing is taken before: a node with enough to do leaves the rest on disk
    # More than are ended: to the end every host has URLs, or few hosts would be left for many fetches.
    urls = max(hosts, (rounds * pages + WARM_UP_PAGES) * 3 // 2)
    names = [f"www.example{host}.com" for host in range(hosts)]
    dns = DnsCache(resolve, SystemClock())
    node = _node(client, dns, redis.url, directory, urls, is_filled)
    engine = Engine(node)

    def spent() -> Cost:
        return Cost(time.process_time() * 1e6, procfs.cpu_seconds(redis.pid) * 1e6, client.round_trips)

    try:
        await node.start()
        await asyncio.gather(*map(dns.lookup, names))
        await _fill(node, names, urls)
        is_filled.set()
        await engine.run(WARM_UP_PAGES)
        if sampler:
            sampler.start()
        found = []
        for _ in range(rounds):
            before = spent()
            ended = await engine.run(pages)
            found.append(Cost(*((now - then) / ended for now, then in zip(spent(), before, strict=True))))
        if sampler:
            sampler.stop()
        return found
    finally:
        await node.departure.close()
        await client.close()


def _node(client: RedisClient, dns: DnsCache, url: str, directory: Path, urls: int, is_filled: asyncio.Event) -> Node:
    settings = {
        "BIGCRAWL_REDIS_URL": url,
        "BIGCRAWL_STATE_DIR": str(directory),
        # All of them hot: what comes from disk is the links' way.
        "BIGCRAWL_HOT_URLS": 100 * urls,
        "BIGCRAWL_HOST_HOT_URLS": min(urls, 100_000),
        "BIGCRAWL_OUTBOX_URLS_MAX": 10_000_000,
        "BIGCRAWL_DURABLE_SECONDS": 600,
    }
    return make_node(client, dns, settings, is_filled.is_set)


def make_node(client: RedisClient, dns: DnsCache, settings: dict[str, Any], may_take: Callable[[], bool]) -> Node:
    """A node of an own crawl whose hosts need no rest and whose fetches cost nothing."""
    clock = SystemClock()
    engine = AnyEngine(may_take=may_take, on_fatal=_fail)
    return Node(Parts(read_config({**NO_REST, **settings}), client, dns, clock, Web(), engine))


def _fail(error: BigcrawlError) -> None:
    raise RuntimeError("the node gave up") from error


async def _fill(node: Node, hosts: list[str], urls: int) -> None:
    """Let the frontier learn the URLs, host after host, and wait until all of them are hot."""
    for start in range(0, urls, 1_000):
        texts = [
            f"http://{hosts[number % len(hosts)]}/page/{number}" for number in range(start, min(start + 1_000, urls))
        ]
        for url in queued(*texts):
            node.offer(url)
        await asyncio.sleep(0)
    deadline = time.monotonic() + FILL_S_MAX
    while True:
        seen = await node.progress.survey()
        if seen.counts.get("seen", 0) >= urls and not seen.urls_disk and not node.outbox.waiting:
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"{urls} URLs were not queued within {FILL_S_MAX} s: {seen}")
        await asyncio.sleep(0.2)


class Engine:
    """Scrapy's engine as the frontier knows it: it pops, and after a while says that a URL has ended."""

    def __init__(self, node: Node, on_end: Callable[[HeldUrl], None] | None = None) -> None:
        self._node = node
        self._on_end = on_end
        self._in_flight: deque[HeldUrl] = deque()
        self._wake = asyncio.Event()
        node.handout.wake_engine = self._wake.set

    async def run(self, pages: int) -> int:
        """End so many pages, oldest first, half of what is in flight at a time; return how many ended."""
        ended = 0
        deadline = time.monotonic() + STALL_S_MAX
        while ended < pages:
            self._wake.clear()
            done = min(len(self._in_flight), IN_FLIGHT // 2)
            for _ in range(done):
                held = self._in_flight.popleft()
                held.outcome = "status:200"
                if self._on_end is not None:
                    self._on_end(held)
                self._node.handout.fetches.end(held)
            ended += done
            if self._take() or done:
                deadline = time.monotonic() + STALL_S_MAX
            elif time.monotonic() > deadline:
                raise RuntimeError(f"nothing to fetch for {STALL_S_MAX} s: {self._node!r}")
            await self._rest()
        return ended

    def _take(self) -> int:
        """Fill up; as Scrapy's face of the frontier does, wake the node when there is nothing."""
        taken = 0
        while len(self._in_flight) < IN_FLIGHT:
            held = self._node.handout.buffer.pop()
            if held is None:
                self._node.pump.wake()
                break
            self._in_flight.append(held)
            taken += 1
        return taken

    async def _rest(self) -> None:
        alarm = asyncio.get_running_loop().call_later(REST_S, self._wake.set)
        await self._wake.wait()
        alarm.cancel()
