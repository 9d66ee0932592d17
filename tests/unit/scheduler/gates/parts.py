"""The parts of a node's gates, made without a node."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from bigcrawl.politeness.dns_cache import DnsCache
from bigcrawl.scheduler.crawl.joined_crawl import Arrivals
from bigcrawl.scheduler.gates.address_check import AddressCheck, LookupLimits
from bigcrawl.scheduler.gates.delays import HostDelays
from bigcrawl.scheduler.gates.heads import HeadFirst
from bigcrawl.scheduler.gates.passages import HostGates, PolitenessSpaces
from bigcrawl.scheduler.gates.robots import RobotsGate
from bigcrawl.scheduler.gates.robots_redirects import RobotsRedirects
from bigcrawl.scheduler.gates.shared_hosts import SharedHosts
from bigcrawl.scheduler.gates.starts import FetchStarts, HostLoans
from bigcrawl.scheduler.handout.host_gaps import HostGaps
from bigcrawl.scheduler.node.set_aside import Aside
from bigcrawl.scheduler.records.held_urls import HeldUrls
from bigcrawl.scheduler.rules.page_rules import HeadRules
from tests.unit.scheduler.world import World, resolve

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.exceptions import ConfigError
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.gates.interfaces import Fetch
    from bigcrawl.scheduler.records.at_gates import Space


RULES = b"User-agent: *\nDisallow: /x\n"
HOST, ELSEWHERE = "a.example", "b.example"
FILE = f"http://{HOST}/robots.txt"


class Gates:
    """What a gatekeeper asks; hosts answer as the world has it, no other crawl is met, nothing is on the blacklist."""

    def __init__(
        self,
        config: Config,
        client: RedisClient,
        clock: Clock,
        dns: DnsCache | None = None,
        lookups: LookupLimits | None = None,
        resolves_here: Callable[[str], bool] = lambda host: True,
    ) -> None:
        self.config = config
        self.client = client
        self.clock = clock
        self.unidentified: list[ConfigError] = []
        nothing_owned: Any = SimpleNamespace(owned={})
        urls, paces = HeldUrls(), HostDelays(config)
        self.paces = paces
        self.answers: list[tuple[int | None, int]] = []  # to requests for robots.txt
        self.aside = Aside(client, urls, nothing_owned, 1)
        self.shared_hosts = SharedHosts(config, "node", client, clock, paces, urls)
        self.addresses = AddressCheck(
            config.politeness,
            dns or DnsCache(resolve, clock),
            lookups or LookupLimits(config, clock, str, _budget_of),
            self.aside,
            resolves_here,
            self.unidentified.append,
        )
        spaces = PolitenessSpaces(config.pace, paces, lambda host: host)
        self.passages = HostGates("node", client, clock, paces, spaces, config.crawl.name)

    def starts(self, try_start: Callable[[tuple[Space, ...], int], int] = lambda gaps, until_ms: 0) -> FetchStarts:
        """When fetches may start; the speed is not limited."""
        return FetchStarts(self.addresses, self.passages, self.shared_hosts, self.clock, _at_once, try_start)

    def robots(
        self,
        fetch: Fetch,
        *,
        host_fails: Callable[[str], bool] = lambda host: True,
        try_start: Callable[[tuple[Space, ...], int], int] = lambda gaps, until_ms: 0,
    ) -> RobotsGate:
        """The rules of one more node of the crawl."""
        starts = self.starts(try_start)
        redirects = self.redirects(fetch, starts)
        return RobotsGate(self.config, self.client, self.clock, starts, redirects, self.paces, host_fails)

    def heads(self, fetch: Fetch) -> HeadFirst:
        """What is asked by HEAD first, by the world's settings."""
        starts = self.starts()
        gaps, longest_ms = HostGaps(self.clock, self.paces, 1), self.config.politeness.retry_after_max_ms
        return HeadFirst(HeadRules(self.config), starts, fetch, gaps, longest_ms)

    def redirects(self, fetch: Fetch, starts: FetchStarts) -> RobotsRedirects:
        """All hosts are of partition 0."""
        gaps = HostGaps(self.clock, self.paces, 1)
        crawl: Any = SimpleNamespace(
            config=self.config,
            client=self.client,
            clock=self.clock,
            arrivals=Arrivals(self.client, self.config.crawl.name),
            partition_of_host=lambda host: 0,
        )
        loans = HostLoans(crawl, starts)
        return RobotsRedirects(crawl, starts, loans, fetch, gaps, lambda *answer: self.answers.append(answer))


async def _at_once() -> None:
    """No robots.txt has to wait for the crawl's speed."""


async def _budget_of(host: str) -> int:
    return 1


@asynccontextmanager
async def obeying(tmp_path: Path, name: str, redis_url: str, **settings: Any) -> AsyncIterator[World]:
    """A world whose crawl asks for robots.txt."""
    made = World(tmp_path, name, redis_url, {"robots": "obey", **settings})
    try:
        yield made
    finally:
        await made.close()


def gates_of(w: World) -> Gates:
    """Of one more node of the crawl."""
    return Gates(w.config, w.client, w.clock)


def rules_of(w: World, **options: Any) -> RobotsGate:
    """The rules of one more node of the crawl."""
    return gates_of(w).robots(w.web, **options)
