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

_planned: WeakKeyDictionary[Crawler, EmbeddedServer] = WeakKeyDictionary()
_begun: WeakKeyDictionary[Crawler, EmbeddedServer] = WeakKeyDictionary()


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
        _begun[crawler] = server
        atexit.register(server.leave)
        Thread(target=_start, args=(server,), name="bigcrawl-server", daemon=True).start()


def begun_server(crawler: Crawler) -> EmbeddedServer | None:
    """Hand over the server that was begun for the crawler; None if none was. The caller leaves it."""
    server = _begun.pop(crawler, None)
    if server is not None:
        atexit.unregister(server.leave)
    return server


def _start(server: EmbeddedServer) -> None:
    with suppress(BigcrawlError):
        server.start()
