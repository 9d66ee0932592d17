"""`python -m benchmarks.backlog.node REDIS_URL STATE_DIR`: the node; it says when it is open, runs until killed.

On its standard output: a line `open`, when the first URL is handed out, and then each second a line of JSON with the
pages ended, the URLs it has offered, and its resident bytes.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import uvloop

from benchmarks.backlog.state import HOSTS_A_PLD, PLDS
from benchmarks.crawl import procfs
from benchmarks.frontier.ours import Engine, make_node
from bigcrawl.clock import SystemClock
from bigcrawl.links import Links
from bigcrawl.politeness.dns_cache import DnsCache
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.node.loops.memory import tame_memory
from bigcrawl.url.key import HASH_SEED
from tests.unit.scheduler.world import resolve

if TYPE_CHECKING:
    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.held import HeldUrl

LINKS_A_PAGE: Final = 60
NEW_LINKS: Final = 6  # of them
PAGES_A_ROUND: Final = 500
CROWDED_S: Final = 0.05


class Spider:
    """Offers each page's links: one in ten leads to a URL nobody has seen, the others to what waits already."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._encode = links_encoder(Links(()), 4)
        self._numbers = itertools.count(time.time_ns())  # no other run has had them
        self._dice = random.Random(4)
        self.offered = 0

    def find_links(self, held: HeldUrl) -> None:
        """Offer the links of a page."""
        hosts = [f"h{self._draw(HOSTS_A_PLD)}.d{self._draw(PLDS)}.com" for _ in range(LINKS_A_PAGE)]
        texts = [f"http://{host}/new/page-{next(self._numbers)}.html" for host in hosts[:NEW_LINKS]]
        texts += [f"http://{host}/archive/2024/page-{self._draw(1000)}.html" for host in hosts[NEW_LINKS:]]
        texts = list(dict.fromkeys(texts))
        keys = self._node.crawl.keys
        if self._node.link_graph is not None:
            self._node.link_graph.note(held.url, texts)
        for at in self._node.outbox.remember_each(keys.signed_marks_of(texts)):
            self._node.offer(self._encode(keys.of_url(texts[at]), texts[at]))
            self.offered += 1

    def _draw(self, count: int) -> int:
        return int(self._dice.random() * count)


def main() -> None:
    """Run until killed."""
    url, directory = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        tame_memory()
        runner.run(_run(url, directory))


async def _run(url: str, directory: str) -> None:
    client = RedisClient(url)
    settings: dict[str, Any] = {"BIGCRAWL_REDIS_URL": url, "BIGCRAWL_STATE_DIR": directory}
    node = make_node(client, DnsCache(resolve, SystemClock()), settings, lambda: not node.workload.is_crowded)
    # The keys on disk, made before the crawl, are those of one without a secret.
    await client.command("HSETNX", CrawlKeys(node.config.crawl.name).crawl, "hash_seed", HASH_SEED)
    await node.start()
    spider = Spider(node)
    engine = Engine(node, spider.find_links)
    pages = await engine.run(1)
    _say("open")
    said_s = time.monotonic()
    while True:
        pages += await engine.run(PAGES_A_ROUND)
        while node.workload.is_crowded:  # noqa: ASYNC110 - as the spider middleware waits
            await asyncio.sleep(CROWDED_S)
        if time.monotonic() - said_s >= 1:
            said_s = time.monotonic()
            rss = procfs.rss_bytes(os.getpid())
            _say(json.dumps({"pages": pages, "offered": spider.offered, "rss": rss}))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
