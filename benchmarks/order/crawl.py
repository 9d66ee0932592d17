"""A crawl of the web through the real frontier: a node, its loops, its files and a Redis; fetching takes no time."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import uvloop

from benchmarks.crawl import procfs
from benchmarks.frontier.ours import Engine, make_node
from bigcrawl.clock import SystemClock
from bigcrawl.features.whole_hosts.settings import WholeHostConfig
from bigcrawl.features.whole_hosts.spider_middlewares import depth_of_links, raised_priority
from bigcrawl.links import Links
from bigcrawl.politeness.dns_cache import DnsCache
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.node.loops.memory import tame_memory
from bigcrawl.url.canonical import host_of
from tests.support.redis_servers.redis_server import PrivateRedis

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.order.web import LinkedPages
    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.held import HeldUrl

SETTINGS: Final[dict[str, Any]] = {
    "BIGCRAWL_HOT_URLS": 1_000,
    "BIGCRAWL_BUDGET_POLICY": "none",
}


class Crawled(NamedTuple):
    """What came of a crawl: the pages in the order in which they were fetched, and CPU a page in microseconds."""

    order: list[int]
    node_us: float
    redis_us: float


def crawled(pages: LinkedPages, seeds: list[int], count: int, state: Path, settings: dict[str, Any]) -> Crawled:
    """Fetch so many pages from the seeds, and return their order."""
    with PrivateRedis() as redis, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        chosen = {**SETTINGS, "BIGCRAWL_REDIS_URL": redis.url, "BIGCRAWL_STATE_DIR": str(state), **settings}
        return runner.run(_run(RedisClient(redis.url), redis, pages, seeds, count, chosen))


async def _run(
    client: RedisClient,
    redis: PrivateRedis,
    pages: LinkedPages,
    seeds: list[int],
    count: int,
    settings: dict[str, Any],
) -> Crawled:
    tame_memory()
    addresses = {host_of(url): str(ipaddress.IPv4Address("198.18.0.0") + at) for at, url in enumerate(pages.urls)}

    async def resolve(host: str) -> list[str]:
        return [addresses[host]]

    node = make_node(client, DnsCache(resolve, SystemClock()), settings, lambda: True)
    spider = _Spider(node, pages)
    try:
        await node.start()
        spider.offer(seeds, depth=0)
        began, redis_began = time.process_time(), procfs.cpu_seconds(redis.pid)
        await Engine(node, spider.parse).run(count)
        spent, redis_spent = time.process_time() - began, procfs.cpu_seconds(redis.pid) - redis_began
        return Crawled(spider.fetched[:count], spent / count * 1e6, redis_spent / count * 1e6)
    finally:
        await node.departure.close()
        await client.close()


class _Spider:
    """Offers each page's links to its node, as the spider middleware does."""

    def __init__(self, node: Node, pages: LinkedPages) -> None:
        self._node = node
        self._pages = pages
        self._numbers = {url: page for page, url in enumerate(pages.urls)}
        self._depths: dict[int, int] = {}  # in their hosts, of pages that were found and not fetched
        self.fetched: list[int] = []

    def parse(self, held: HeldUrl) -> None:
        """A page was fetched: offer its links."""
        page = self._numbers[held.url]
        self.fetched.append(page)
        urls = self._offer_links(page)
        if self._node.link_graph is not None:
            self._node.link_graph.note(held.url, urls)
        for noted in self._node.observers.links_of(held):
            noted.add(urls, 0)
            noted.end()

    def _offer_links(self, page: int) -> list[str]:
        links, config = self._pages.links(page), self._node.crawl.config.feature_config(WholeHostConfig)
        depth = depth_of_links(self._depths.pop(page, 0), config.depth) if config.at_once else 0
        if not depth:
            return self.offer(links, depth=1)
        hosts = self._pages.hosts
        inside = [target for target in links if hosts[target] == hosts[page]]
        for target in inside:
            self._depths.setdefault(target, depth)
        others = [target for target in links if hosts[target] != hosts[page]]
        return self.offer(inside, depth=1, priority=raised_priority(0)) + self.offer(others, depth=1)

    def offer(self, targets: list[int], depth: int, priority: int = 0) -> list[str]:
        """Offer pages, and return their URLs."""
        urls = [self._pages.urls[target] for target in targets]
        keys, encode = self._node.crawl.keys, links_encoder(Links((), priority=priority), depth)
        for at in self._node.outbox.remember_each(keys.signed_marks_of(urls)):
            self._node.offer(encode(keys.of_url(urls[at]), urls[at]))
        return urls
