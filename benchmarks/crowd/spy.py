"""What a crawling process sees of its own fetches, for each a line: when it ended, limit, ms it took, whether answered.

An extension, so that the time of a fetch is the client's: a server has sent what is still in the network's queues.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from scrapy import signals

from bigcrawl.scheduler.adapter.registry import frontier_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler

SETTING = "CROWD_SPY_LOG"


class Line(NamedTuple):
    """A fetch that ended, and the limit then."""

    end_ms: int
    limit: int
    took_ms: int
    is_answered: bool


class Spy:
    """Writes the lines."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._file = Path(crawler.settings[SETTING]).open("w", buffering=1 << 16)  # noqa: SIM115 - closed with the spider
        self._began: dict[Request, float] = {}
        self._answered: set[Request] = set()
        for handler in (self.request_reached_downloader, self.response_downloaded, self.request_left_downloader):
            crawler.signals.connect(handler, getattr(signals, handler.__name__))
        crawler.signals.connect(self.spider_closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def spider_closed(self) -> None:
        self._file.close()

    def request_reached_downloader(self, request: Request) -> None:
        self._began[request] = time.time()

    def response_downloaded(self, request: Request) -> None:
        self._answered.add(request)

    def request_left_downloader(self, request: Request) -> None:
        frontier = frontier_of(self._crawler)
        now, began = time.time(), self._began.pop(request)
        is_answered = request in self._answered
        self._answered.discard(request)
        if frontier is not None and frontier.node is not None and not request.url.endswith("/robots.txt"):
            limit = frontier.node.handout.crowd.limit
            print(round(1000 * now), limit, round(1000 * (now - began)), int(is_answered), file=self._file)


def lines_of(log: Path) -> Iterator[Line]:
    """Read what was written."""
    for text in log.read_text().splitlines():
        end_ms, limit, took_ms, is_answered = map(int, text.split())
        yield Line(end_ms, limit, took_ms, bool(is_answered))
