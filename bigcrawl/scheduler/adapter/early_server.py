"""Starts the embedded server while Scrapy still makes its components."""

from __future__ import annotations

import atexit
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.redisdb.embedded import EmbeddedServer

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from bigcrawl.config import CrawlConfig

LOOK_S = 0.1

_planned: WeakKeyDictionary[Crawler, EmbeddedServer] = WeakKeyDictionary()
_begun: WeakKeyDictionary[Crawler, _Start] = WeakKeyDictionary()


class _Start:
    """A server's start in a thread. It ends with the process, unless somebody takes the server."""

    def __init__(self, server: EmbeddedServer) -> None:
        self._server = server
        self._thread = Thread(target=self._run, name="bigcrawl-server", daemon=True)
        atexit.register(self._give_up)
        self._thread.start()

    def __repr__(self) -> str:
        return f"<_Start {self._server!r}>"

    def take(self) -> EmbeddedServer:
        atexit.unregister(self._give_up)
        return self._server

    def _run(self) -> None:
        with suppress(BigcrawlError):
            self._server.start()

    def _give_up(self) -> None:
        """Leave the server. Only a start that has begun can be interrupted, so this is done until the start is over."""
        while self._thread.is_alive():
            self._server.leave()
            self._thread.join(LOOK_S)
        self._server.leave()


def server_of(crawl: CrawlConfig) -> EmbeddedServer:
    """The use of the crawl's embedded server by this process, not begun yet."""
    return EmbeddedServer(crawl.crawl_dir / "redis")


def plan_server(crawler: Crawler, crawl: CrawlConfig) -> None:
    """The crawler needs the server as soon as it has an engine."""
    _planned[crawler] = server_of(crawl)


def begin_server(crawler: Crawler) -> None:
    """Start the server in a thread, if one was planned. The start that waits for it meets its error again.

    If the crawler never opens its scheduler, the server ends with the process.
    """
    server = _planned.pop(crawler, None)
    if server is not None:
        _begun[crawler] = _Start(server)


def begun_server(crawler: Crawler) -> EmbeddedServer | None:
    """Hand over the server that was begun for the crawler; None if none was. The caller leaves it."""
    start = _begun.pop(crawler, None)
    return start.take() if start is not None else None
