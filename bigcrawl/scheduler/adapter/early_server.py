"""Starts the crawl's embedded server while Scrapy makes its components, and releases it at exit.

A process may end by an error or a second signal without closing its crawl. Before Scrapy has set its SIGTERM handler no
server is started, because after a SIGTERM nothing would end it.
"""

from __future__ import annotations

import atexit
import signal
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.redisdb.embedded import STOP_MS_MAX, EmbeddedServer

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from bigcrawl.config import CrawlConfig

LOOK_S = 0.1

_planned: WeakKeyDictionary[Crawler, CrawlServer] = WeakKeyDictionary()
_begun: WeakKeyDictionary[Crawler, CrawlServer] = WeakKeyDictionary()


class CrawlServer(EmbeddedServer):
    def __init__(self, crawl: CrawlConfig) -> None:
        super().__init__(crawl.crawl_dir / "redis")
        self._early: Thread | None = None
        atexit.register(self.leave)

    def begin(self) -> None:
        self._early = Thread(target=self._start_early, name="bigcrawl-server", daemon=True)
        self._early.start()

    def _start_early(self) -> None:
        with suppress(BigcrawlError):
            self.start()

    def leave(self, within_ms: int = STOP_MS_MAX) -> None:
        while self._early is not None and self._early.is_alive():  # only a start that has begun can be interrupted
            super().leave(within_ms)
            self._early.join(LOOK_S)
        super().leave(within_ms)
        atexit.unregister(self.leave)


def plan_server(crawler: Crawler, crawl: CrawlConfig) -> None:
    _planned[crawler] = CrawlServer(crawl)


def begin_server(crawler: Crawler) -> None:
    server = _planned.pop(crawler, None)
    if server is not None and signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        _begun[crawler] = server
        server.begin()


def begun_server(crawler: Crawler) -> CrawlServer | None:
    """Hand over the server begun for the crawler, if any; the caller must call its `leave`."""
    return _begun.pop(crawler, None)


def end_server(crawler: Crawler) -> None:
    server = begun_server(crawler)
    if server is not None:
        server.leave()
