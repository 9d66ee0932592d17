"""The links that the simulated pages have: 60 a page, 13 of them to other hosts, 6 of them new to the crawl."""

from __future__ import annotations

import itertools
import random
import time
from typing import TYPE_CHECKING, Final

from bigcrawl.links import Links
from bigcrawl.scheduler.adapter.request_codec import links_encoder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.held import HeldUrl
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

HOSTS: Final = 4_000
PAGES_KNOWN: Final = 10  # of each host, that every page may link to
LINKS_HOME: Final = 47  # to pages of the page's own host
LINKS_AWAY: Final = 13  # lambda of UbiCrawler section 4.1: links to other sites a page
NEW_HOME, NEW_AWAY = 3, 3  # of these


def host_name(number: int) -> str:
    """Hosts are spread over the web's sites, so that the nodes own about the same share of them."""
    return f"www.site{number}.com"


async def resolve(host: str) -> list[str]:
    """An address for each host: no two hosts share a server."""
    number = int(host.removeprefix("www.site").removesuffix(".com"))
    return [f"198.18.{number >> 8}.{number & 255}"]


class Spider:
    """Offers each page's links to its node, as the spider middleware does.

    Attributes:
        sent, sent_away: URLs that the node has sent to Redis, and those of them for partitions of other nodes.
    """

    def __init__(self, node: Node, seed: int) -> None:
        self._node = node
        self._encode = links_encoder(Links(()), 4)
        self._numbers: Iterator[int] = itertools.count(time.time_ns())  # no other node has them
        self._dice = random.Random(seed)
        self.sent = self.sent_away = 0

    def offer_seeds(self) -> None:
        """Offer the root of every host."""
        self._offer([f"http://{host_name(number)}/" for number in range(HOSTS)])

    def find_links(self, held: HeldUrl) -> None:
        """Offer the links of a page."""
        home = held.host
        texts = [f"http://{home}/new/page-{next(self._numbers)}.html" for _ in range(NEW_HOME)]
        texts += [f"http://{home}/page-{self._draw(PAGES_KNOWN)}.html" for _ in range(LINKS_HOME - NEW_HOME)]
        away = [host_name(self._draw(HOSTS)) for _ in range(LINKS_AWAY)]
        texts += [f"http://{host}/new/page-{next(self._numbers)}.html" for host in away[:NEW_AWAY]]
        texts += [f"http://{host}/page-{self._draw(PAGES_KNOWN)}.html" for host in away[NEW_AWAY:]]
        texts = list(dict.fromkeys(texts))
        if self._node.link_graph is not None:
            self._node.link_graph.note(held.url, texts)
        self._offer(texts)

    def _offer(self, texts: list[str]) -> None:
        keys = self._node.crawl.keys
        for at in self._node.outbox.remember_each(keys.signed_marks_of(texts)):
            url = self._encode(keys.of_url(texts[at]), texts[at])
            self._count(url)
            self._node.offer(url)

    def _count(self, url: QueuedUrl) -> None:
        self.sent += 1
        self.sent_away += self._node.crawl.partition_of_host(url.host) not in self._node.ownership.owned

    def _draw(self, count: int) -> int:
        return int(self._dice.random() * count)
