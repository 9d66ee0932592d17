"""Two crawls on one Redis that meet on hosts: one connection a host, and both delays, over both."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from bigcrawl.clock import SystemClock
from bigcrawl.redisdb.keys import host_prefix
from bigcrawl.scheduler.gates.interfaces import Closed, FetchedBody
from bigcrawl.url.canonical import host_of
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.unit.scheduler.world import World, queued, world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.at_gates import Space
    from bigcrawl.scheduler.records.held import HeldUrl

HOSTS = 4
DELAY_MS = 200
FETCH_S = 0.03
MEETING: dict[str, Any] = {"partitions": 2, "host_delay": DELAY_MS / 1000, "robots": "obey"}


class Visit(NamedTuple):
    host: str
    crawl: str
    start_ms: float
    end_ms: float
    what: str


class Origin:
    """What the servers see: every fetch of every crawl, robots.txt too."""

    def __init__(self) -> None:
        self.visits: list[Visit] = []

    async def visit(self, crawl: str, url: str) -> None:
        loop = asyncio.get_running_loop()
        start_ms = 1000 * loop.time()
        await asyncio.sleep(FETCH_S)
        self.visits.append(Visit(host_of(url), crawl, start_ms, 1000 * loop.time(), url))

    def gaps(self) -> list[tuple[Visit, Visit, float]]:
        """Neighbours at a host, and the ms from the end of one to the start of the other."""
        found = []
        for host in {visit.host for visit in self.visits}:
            line = sorted(visit for visit in self.visits if visit.host == host)
            line.sort(key=lambda visit: visit.start_ms)
            found += [(one, two, two.start_ms - one.end_ms) for one, two in itertools.pairwise(line)]
        return found


class Crawler:
    """One node of a crawl whose loops turn, and an engine that fetches from an origin."""

    def __init__(self, made: World, origin: Origin) -> None:
        self.world = made
        made.clock = SystemClock()  # type: ignore[assignment]  # time passes for all of them alike
        made.web = self._robots  # type: ignore[assignment]
        self.name = made.config.crawl.name
        self.pages = 0
        self._origin = origin
        self._fetches: set[asyncio.Task[None]] = set()

    async def _robots(
        self, url: str, method: str = "GET", gaps: tuple[Space, ...] = (), like: bytes = b""
    ) -> FetchedBody:
        await self._origin.visit(self.name, url)
        return FetchedBody(404)

    async def join(self) -> Node:
        self.node = await self.world.joined()
        return self.node

    async def run(self) -> None:
        while True:
            await self.node.pump.turn()
            await self.node.fold.turn()
            while (held := self.node.handout.buffer.pop()) is not None:
                task = asyncio.create_task(self._fetch(held))
                self._fetches.add(task)
                task.add_done_callback(self._fetches.discard)
            await asyncio.sleep(0.005)

    async def beat(self) -> None:
        while True:
            await self.node.beat.turn()
            await asyncio.sleep(0.1)

    async def _fetch(self, held: HeldUrl) -> None:
        await self._origin.visit(self.name, held.url)
        self.world.end(self.node, held)
        self.pages += 1

    def offer(self, pages: int) -> None:
        for url in queued(*(f"http://127.0.0.{host}/{page}" for page in range(pages) for host in range(1, HOSTS + 1))):
            self.node.offer(url)


@pytest.fixture(scope="module")
def own_server() -> Iterator[PrivateRedis]:
    with PrivateRedis(aof=False) as server:
        yield server


@asynccontextmanager
async def crawler(tmp_path: Path, origin: Origin, name: str, url: str, **settings: Any) -> AsyncIterator[Crawler]:
    async with world(tmp_path / name, name, url, **{**MEETING, **settings}) as made:
        yield Crawler(made, origin)


async def until(*crawlers: Crawler, pages: int) -> None:
    """Let them run until each has fetched so many pages."""
    tasks = [asyncio.create_task(work()) for each in crawlers for work in (each.run, each.beat)]
    try:
        async with asyncio.timeout(300):
            while min(each.pages for each in crawlers) < pages:
                await asyncio.sleep(0.02)
                for task in tasks:
                    if task.done():
                        await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def is_free(node: Node, host: str) -> bool:
    try:
        await node.parts.gates.shared_hosts.hold_host(host)
    except Closed:
        return False
    return True


def apart(one: Crawler, two: Crawler) -> int:
    """By how many ms two nodes differ over the time of the crawls."""
    return abs(one.world.client.now_ms() - two.world.client.now_ms())


def test_newcomer_takes_nothing_before_the_nodes_of_others_hold_their_hosts(
    tmp_path: Path, own_server: PrivateRedis, crawl_name: str
) -> None:
    """What they had begun alone is held nowhere: the newcomer waits until they have heard of it and said so."""

    async def work() -> None:
        async with (
            world(tmp_path / "one", f"{crawl_name}a", own_server.url) as one,
            world(tmp_path / "two", f"{crawl_name}b", own_server.url) as two,
        ):
            first, second = await one.joined(), await two.joined()
            for url in queued("http://a.example/"):
                second.offer(url)
            assert await two.take(second) == []
            await first.beat.turn()
            assert await two.take(second) == []
            await first.beat.turn()
            assert len(await two.take(second)) == 1

    asyncio.run(work())


def test_redis_that_forgot_who_holds_a_host_is_told_again(
    tmp_path: Path, own_server: PrivateRedis, crawl_name: str
) -> None:
    """After a restart, with the next sign of life: of a fetch under way, and of one that has just ended."""
    fetched, ended = "fetched.example", "ended.example"

    async def work() -> None:
        async with (
            world(tmp_path / "one", f"{crawl_name}a", own_server.url, host_delay=60) as one,
            world(tmp_path / "two", f"{crawl_name}b", own_server.url, host_delay=60) as two,
        ):
            first, second = await one.joined(), await two.joined()
            for url in queued(f"http://{fetched}/", f"http://{ended}/"):
                first.offer(url)
            for held in await one.take(first):
                if held.host == ended:
                    one.end(first, held)
            await one.turn(first)
            assert [held.host for held in first.handout.held] == [fetched]
            await second.beat.turn()
            assert not await is_free(second, fetched)
            assert not await is_free(second, ended)

            own_server.client.delete(*(host_prefix(host) + host for host in (fetched, ended)))
            first.parts.troubles.record_restart()
            await first.pump.turn()
            await first.beat.turn()
            assert not await is_free(second, fetched)
            assert not await is_free(second, ended)

    asyncio.run(work())


def test_hosts_of_a_crawl_that_has_left_rest(tmp_path: Path, own_server: PrivateRedis, crawl_name: str) -> None:
    """The crawl that stays asks as long as they do, and no longer."""

    async def work() -> None:
        async with (
            world(tmp_path / "one", f"{crawl_name}a", own_server.url, host_delay=1) as one,
            world(tmp_path / "two", f"{crawl_name}b", own_server.url, host_delay=10) as two,
        ):
            first, second = await one.joined(), await two.joined()
            second.offer(*queued("http://left.example/"))
            taken: list[HeldUrl] = []
            while not taken:  # until each knows of the other
                await first.beat.turn()
                taken = await two.take(second)
            two.end(second, taken[0])
            await second.parts.gates.shared_hosts.leave()
            await first.beat.turn()
            assert first.parts.gates.shared_hosts.are_kept
            assert not await is_free(first, "left.example")

    asyncio.run(work())


def test_two_crawls_that_meet_keep_the_delay_of_a_host(
    tmp_path: Path, own_server: PrivateRedis, crawl_name: str
) -> None:
    """From the end of any fetch to the start of the next, whosoever: the second comes while the first is under way."""
    origin = Origin()
    apart_ms: list[int] = []

    async def work() -> None:
        async with (
            crawler(tmp_path, origin, f"{crawl_name}a", own_server.url) as one,
            crawler(tmp_path, origin, f"{crawl_name}b", own_server.url) as two,
        ):
            await one.join()
            one.offer(30)
            await until(one, pages=2 * HOSTS)
            await two.join()
            apart_ms.append(apart(one, two))
            two.offer(30)
            await until(one, two, pages=9 * HOSTS)
            apart_ms.append(apart(one, two))

    asyncio.run(work())
    meetings = [gap for before, after, gap in origin.gaps() if before.crawl != after.crawl]
    assert len(meetings) > 4 * HOSTS
    # A node knows the time of the crawls no better than Redis' answers are quick.
    short = [gap for _, _, gap in origin.gaps() if gap < DELAY_MS - 5 - max(apart_ms)]
    assert not short, f"{len(short)} of {len(origin.gaps())}: {short[:5]}"
