"""A node without Scrapy: its engine is the test, its Redis the test run's own, its clock stands still."""

from __future__ import annotations

import asyncio
import itertools
import socket
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from bigcrawl.clock import ManualClock
from bigcrawl.config import read_config
from bigcrawl.exceptions import BigcrawlError
from bigcrawl.links import Links
from bigcrawl.politeness.dns_cache import DnsCache
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.keys import CRAWLS, PartitionKeys, gate_prefix
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.crawl.survey import survey
from bigcrawl.scheduler.gates.interfaces import FetchedBody
from bigcrawl.scheduler.handout.engine_side import EngineSide
from bigcrawl.scheduler.node.assembly import Parts
from bigcrawl.scheduler.node.node import Node
from bigcrawl.scheduler.rules.callbacks import ANY_CALLBACKS, Callbacks
from bigcrawl.views.opened_crawl import OpenedCrawl, open_crawl
from tests.support.keys import url_key
from tests.support.redis_servers.one_clock import OneClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from bigcrawl.config import Config
    from bigcrawl.scheduler.records.at_gates import Space
    from bigcrawl.scheduler.records.held import HeldUrl
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

P = ParamSpec("P")
T = TypeVar("T")

QUIET = {
    "BIGCRAWL_PARTITIONS": 4,
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_BACKOFF": 0,
    "BIGCRAWL_SERVER_DELAY": 0,
    "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": True,
    "BIGCRAWL_ROBOTS": "ignore-i-own-these-hosts",
    "BIGCRAWL_WARC_DIR": "",
    "BIGCRAWL_FETCHES_MIN": 0,
}


def make_config(tmp_path: Path, crawl: str, redis_url: str | None = None, **settings: Any) -> Config:
    """A configuration of a small, impatient crawl; `settings` without their BIGCRAWL_, or Scrapy's in capitals."""
    chosen = {name if name.isupper() else f"BIGCRAWL_{name.upper()}": value for name, value in settings.items()}
    state = {"BIGCRAWL_CRAWL": crawl, "BIGCRAWL_STATE_DIR": str(tmp_path), "BIGCRAWL_REDIS_URL": redis_url}
    return read_config({**QUIET, **state, **chosen})


async def viewed(
    config: Config, view: Callable[Concatenate[OpenedCrawl, P], Awaitable[T]], *args: P.args, **options: P.kwargs
) -> T:
    """What a view of a crawl in a Redis says, asked as from another process."""
    assert config.crawl.redis_url is not None
    async with open_crawl(config, config.crawl.redis_url) as crawl:
        return await view(crawl, *args, **options)


def queued(*urls: str) -> list[QueuedUrl]:
    """URLs as a batch of links brings them."""
    encode = links_encoder(Links(()), 0)
    return [encode(url_key(url), url) for url in urls]


_open_worlds: list[World] = []

ADDRESS = "192.0.2.1"


class Web:
    """Answers to robots.txt fetches, by URL; 404 where nothing is said."""

    def __init__(self, answers: dict[str, FetchedBody | Exception] | None = None) -> None:
        self.answers = answers or {}
        self.asked: list[str] = []
        self.was_asked = asyncio.Event()
        self.gate: asyncio.Event | None = None  # when there is one, fetches wait for it

    async def __call__(
        self, url: str, method: str = "GET", gaps: tuple[Space, ...] = (), like: bytes = b""
    ) -> FetchedBody:
        url = url if method == "GET" else f"{method} {url}"
        self.asked.append(url)
        self.was_asked.set()
        if self.gate is not None:
            await self.gate.wait()
        answer = self.answers.get(url, FetchedBody(404))
        if isinstance(answer, Exception):
            raise answer
        return answer


async def resolve(host: str) -> list[str]:
    """Every name has an address; those of no.example do not exist, and for those of slow.example DNS is silent."""
    if host.endswith("no.example"):
        raise socket.gaierror(socket.EAI_NONAME, f"no address for {host}")
    if host.endswith("slow.example"):
        raise TimeoutError(host)
    return [ADDRESS]


@asynccontextmanager
async def connected(redis_url: str) -> AsyncIterator[RedisClient]:
    """A client that is closed whatever becomes of the test."""
    client = RedisClient(redis_url)
    try:
        yield client
    finally:
        await client.close()


class AnyEngine(EngineSide):
    """An engine that answers as its test has it."""

    def __init__(self, **answers: Any) -> None:
        vars(self).update(answers)


class World:
    """Nodes of one crawl, and what the test wants to know of it."""

    def __init__(
        self, tmp_path: Path, crawl: str, redis_url: str, settings: dict[str, Any], clock: ManualClock | None = None
    ) -> None:
        self.config = make_config(tmp_path, crawl, redis_url, **settings)
        self.clock = clock or ManualClock()
        self._is_one_clock = clock is not None
        self.web = Web()
        self.fatal: list[BigcrawlError] = []
        self.clients: list[RedisClient] = []
        self.nodes: list[Node] = []
        self._numbers = itertools.count(1)
        self.client = self.new_client()

    def new_client(self) -> RedisClient:
        assert self.config.crawl.redis_url is not None
        crawl_clock = OneClock(self.clock) if self._is_one_clock else None
        client = RedisClient(self.config.crawl.redis_url, crawl_clock=crawl_clock)
        self.clients.append(client)
        return client

    def new_node(
        self,
        *,
        may_acknowledge: Callable[[], bool] = lambda: True,
        is_paused: Callable[[], bool] = lambda: False,
        revive_server: Callable[[], object] = lambda: None,
        callbacks: Callbacks = ANY_CALLBACKS,
        sent_bytes: Callable[[], int] = lambda: 0,
    ) -> Node:
        engine = AnyEngine(
            may_acknowledge=may_acknowledge,
            is_paused=is_paused,
            on_fatal=self.fatal.append,
            revive_server=revive_server,
            callbacks=callbacks,
            sent_bytes=sent_bytes,
        )
        dns = DnsCache(resolve, self.clock)
        name = f"node{next(self._numbers)}"  # who owns what is the same in each run
        node = Node(Parts(self.config, self.new_client(), dns, self.clock, self.web, engine, name))
        self.nodes.append(node)
        return node

    async def joined(self, **options: Any) -> Node:
        """A node that has joined the crawl; its loops run only when the test turns them."""
        node = self.new_node(**options)
        await node.arrival.join()
        return node

    async def check_counts(self) -> None:
        """Each URL that was seen is in one place, by what all partitions have published at this moment."""
        seen = await survey(self.client, self.config.crawl.name, self.config.crawl.partitions)
        assert not seen.urls_uncounted, seen

    async def turn(self, node: Node, turns: int = 4) -> None:
        """Let a node's loops run a few rounds, half a second apart by its clock."""
        for _ in range(turns):
            self.clock.advance(500)
            await node.pump.turn()
            await node.fold.turn()
            await node.beat.turn()
            await node.watch.turn()
            await self.check_counts()

    async def take(self, node: Node, turns: int = 6) -> list[HeldUrl]:
        """Turn the loops and hand out what becomes ready."""
        started = []
        for _ in range(turns):
            await self.turn(node, 1)
            await asyncio.gather(*node.parts.gates.gatekeeper._tasks)
            while (held := node.handout.buffer.pop()) is not None:
                started.append(held)
        return started

    def end(self, node: Node, held: HeldUrl, outcome: str = "status:200") -> None:
        """The engine is done with a URL."""
        held.outcome = outcome
        node.handout.fetches.end(held)

    def keys(self, node: Node, host: str) -> PartitionKeys:
        return PartitionKeys(self.config.crawl.name, node.crawl.partition_of_host(host))

    async def expire_leases(self, *partitions: int) -> None:
        """The leases of these partitions run out by Redis' clock, and those of their blocks."""
        for keys in (PartitionKeys(self.config.crawl.name, partition) for partition in partitions):
            await self.client.commands([("HSET", keys.owner, "lease_ms", 0), ("DEL", keys.leases)])

    async def close(self) -> None:
        with suppress(BigcrawlError):  # the crawls of later tests on this Redis wait for no node of this one
            await self.client.command(
                "HDEL", CRAWLS, "", *(f"{self.config.crawl.name}/{node.node_id}" for node in self.nodes)
            )
        for node in self.nodes:
            await node.parts.gates.gatekeeper.close()
            await node.parts.ownership.close(wait=True)
            node.membership.unlock()
        for client in self.clients:
            await client.close()


@asynccontextmanager
async def world(tmp_path: Path, crawl: str, redis_url: str, **settings: Any) -> AsyncIterator[World]:
    async with _opened(World(tmp_path, crawl, redis_url, settings)) as made:
        yield made


@asynccontextmanager
async def world_of_one_clock(
    clock: ManualClock, tmp_path: Path, crawl: str, redis_url: str, **settings: Any
) -> AsyncIterator[World]:
    """A world in which Redis goes by the test's clock too, as far as it is told the time."""
    async with _opened(World(tmp_path, crawl, redis_url, settings, clock)) as made:
        yield made


@asynccontextmanager
async def _opened(made: World) -> AsyncIterator[World]:
    if not _open_worlds:  # nor for nodes of tests that ended otherwise; nor do starts of other tests keep a gate closed
        with suppress(BigcrawlError):
            await made.client.command("DEL", CRAWLS)
            await made.client.command("DEL", gate_prefix(ADDRESS) + ADDRESS)
    _open_worlds.append(made)
    try:
        yield made
    finally:
        _open_worlds.remove(made)
        await made.close()
