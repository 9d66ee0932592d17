"""`python -m benchmarks.first_page`: time from a host's entry into Redis to its first page. Options: --help.

A node that is behind: more hosts are due than it can fetch from. Hosts that nobody has asked yet enter meanwhile, one
after the other. Node, loops and Redis are real; a look-up, a robots.txt and a page take a set time and no network.
Run with BIGCRAWL_ROBOTS_HEAD_START off and on. Known answer: off, a new host waits twice behind all due hosts, on,
once.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import uvloop

from benchmarks.crawl.machine import describe_machine
from benchmarks.crawl.report import aligned, say
from benchmarks.frontier.ours import NO_REST
from bigcrawl.clock import SystemClock
from bigcrawl.config import read_config
from bigcrawl.politeness.dns_cache import DnsCache
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.scheduler.gates.interfaces import FetchedBody
from bigcrawl.scheduler.node.assembly import Parts
from bigcrawl.scheduler.node.node import Node
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.unit.scheduler.world import AnyEngine, queued

if TYPE_CHECKING:
    from bigcrawl.scheduler.records.at_gates import Space
    from bigcrawl.scheduler.records.held import HeldUrl

SLOTS: Final = 8
PAGE_S: Final = 0.08
ROUND_TRIP_S: Final = 0.05  # of a look-up and of a robots.txt
NEW_EVERY_S: Final = 0.25
WARM_UP_TURNS: Final = 3  # pages of each old host: by then all robots.txt are known
STALL_S_MAX: Final = 60.0


class Found(NamedTuple):
    """Seconds from the entry to the first page of each new host, and pages a second meanwhile."""

    waits_s: list[float]
    pages_per_s: float


def main() -> None:
    """Run both ways, print the table."""
    options = _parser().parse_args()
    say(f"{describe_machine()}")
    rows = [("head start, s", "pages/s", "to the first page, s: median", "longest")]
    for head_start_s in (0, options.head_start):
        with PrivateRedis() as redis, tempfile.TemporaryDirectory(prefix="bigcrawl-bench-") as directory:
            settings = {
                **NO_REST,
                "BIGCRAWL_REDIS_URL": redis.url,
                "BIGCRAWL_STATE_DIR": directory,
                "BIGCRAWL_ROBOTS": "obey",
                "BIGCRAWL_PARTITIONS": 16,
                "BIGCRAWL_HOST_DELAY": 1,
                "BIGCRAWL_ROBOTS_HEAD_START": head_start_s,
                "CONCURRENT_REQUESTS": SLOTS,
                "BIGCRAWL_IN_PROCESS_MAX": 4 * SLOTS,
            }
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                found = runner.run(_measure(redis.url, settings, options))
        waits = found.waits_s
        rows.append(
            (f"{head_start_s}", f"{found.pages_per_s:.0f}", f"{statistics.median(waits):.2f}", f"{max(waits):.2f}")
        )
    say(*aligned(rows))


async def _measure(redis_url: str, settings: dict[str, Any], options: argparse.Namespace) -> Found:
    client, clock = RedisClient(redis_url), SystemClock()
    engine = AnyEngine(on_fatal=_fail)
    node = Node(Parts(read_config(settings), client, DnsCache(_resolve, clock), clock, _fetch, engine))
    await node.start()
    try:
        for page in range(options.pages):
            _offer(node, [f"http://old{host}.example/{page}" for host in range(options.hosts)])
        crawl = _Crawl(node)
        await crawl.run(lambda: crawl.pages >= WARM_UP_TURNS * options.hosts)
        since_s, before = time.monotonic(), crawl.pages
        names = [f"new{number}.example" for number in range(options.new)]
        await crawl.run(lambda: len(crawl.waits_s) == len(names), names)
        return Found(crawl.waits_s, (crawl.pages - before) / (time.monotonic() - since_s))
    finally:
        await node.departure.close()
        await client.close()


class _Crawl:
    """The engine's side: so many slots, each busy for a page's time."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._in_flight: list[tuple[float, HeldUrl]] = []
        self._wake = asyncio.Event()
        node.handout.wake_engine = self._wake.set
        self._entered_s: dict[str, float] = {}
        self.pages = 0
        self.waits_s: list[float] = []

    async def run(self, is_done: Any, names: list[str] | None = None) -> None:
        offered: list[str] = []
        names, next_s = list(names or ()), time.monotonic()
        stall_s = next_s + STALL_S_MAX
        while not is_done():
            self._wake.clear()
            now_s = time.monotonic()
            if names and now_s >= next_s:
                offered.append(names.pop())
                _offer(self._node, [f"http://{offered[-1]}/"])
                next_s = now_s + NEW_EVERY_S
            for host in offered:
                if host not in self._entered_s and self._is_hot(host):
                    self._entered_s[host] = now_s
            if self._turn(now_s):
                stall_s = now_s + STALL_S_MAX
            elif now_s > stall_s:
                raise RuntimeError(f"no page for {STALL_S_MAX} s: {self._node!r}")
            alarm = asyncio.get_running_loop().call_later(0.005, self._wake.set)
            await self._wake.wait()
            alarm.cancel()

    def _turn(self, now_s: float) -> int:
        ended = [held for end_s, held in self._in_flight if end_s <= now_s]
        self._in_flight = [(end_s, held) for end_s, held in self._in_flight if end_s > now_s]
        for held in ended:
            held.outcome = "status:200"
            self._node.handout.fetches.end(held)
        self.pages += len(ended)
        while len(self._in_flight) < SLOTS:
            popped = self._node.handout.buffer.pop()
            if popped is None:
                self._node.pump.wake()
                break
            if popped.host in self._entered_s:
                self.waits_s.append(now_s - self._entered_s[popped.host])
            self._in_flight.append((now_s + PAGE_S, popped))
        return len(ended)

    def _is_hot(self, host: str) -> bool:
        owned = self._node.parts.ownership.owned.get(self._node.crawl.partition_of_host(host))
        return owned is not None and owned.hot.by_host[host] > 0


def _offer(node: Node, texts: list[str]) -> None:
    for url in queued(*texts):
        node.offer(url)


async def _resolve(host: str) -> list[str]:
    await asyncio.sleep(ROUND_TRIP_S)
    return ["192.0.2.1"]


async def _fetch(url: str, method: str = "GET", gaps: tuple[Space, ...] = (), like: bytes = b"") -> FetchedBody:
    await asyncio.sleep(ROUND_TRIP_S)
    return FetchedBody(404)


def _fail(error: Exception) -> None:
    raise RuntimeError("the node gave up") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_page", description=__doc__)
    parser.add_argument("--hosts", type=int, default=400, help="that are due meanwhile; 100 pages a second are fetched")
    parser.add_argument("--pages", type=int, default=20, help="of each of these")
    parser.add_argument("--new", type=int, default=30, help="hosts that enter")
    parser.add_argument("--head-start", type=float, default=30.0, help="seconds; default 30")
    return parser


if __name__ == "__main__":
    main()
