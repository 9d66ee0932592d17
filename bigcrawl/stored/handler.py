"""The download handler of stored pages, without connections, and the settings of a run over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from scrapy import signals
from scrapy.exceptions import IgnoreRequest, StopDownload
from twisted.python.failure import Failure

from bigcrawl.downloads.signalling import SignalSender
from bigcrawl.scheduler.adapter.registry import frontier_of
from bigcrawl.stored.responses import response_of
from bigcrawl.stored.scheduler import StoredScheduler

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from bigcrawl.stored.pages import StoredPage


class PageNotStoredError(IgnoreRequest):
    pass


class StoredPagesHandler:
    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._signalling = SignalSender(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def close(self) -> None:
        """Do nothing; the scheduler closes the files."""

    async def download_request(self, request: Request) -> Response:
        """Return the stored answer; raise PageNotStoredError, or StopDownload if a signal's receiver does."""
        frontier = frontier_of(self._crawler)
        page = frontier.page_of(request) if isinstance(frontier, StoredScheduler) else None
        if page is None:
            raise PageNotStoredError(f"{request.url} is not stored")
        request.meta["download_latency"] = page.took_ms / 1000
        response = response_of(page, request.url.partition("#")[0])
        return self._shown_to_signals(request, response, page)

    def _shown_to_signals(self, request: Request, response: Response, page: StoredPage) -> Response:
        fields: dict[str, Any] = {"request": request, "spider": self._crawler.spider}
        stop = self._send_signal(
            signals.headers_received, headers=response.headers, body_length=len(page.body), **fields
        )
        if stop is not None:
            response = response.replace(body=b"")
        elif page.body:
            stop = self._send_signal(signals.bytes_received, data=page.body, **fields)
        if stop is None:
            return response
        response.flags.append("download_stopped")
        if stop.fail:
            stop.response = response
            raise stop
        return response

    def _send_signal(self, signal: object, **fields: Any) -> StopDownload | None:
        for _, result in self._signalling.send(signal, **fields):
            if isinstance(result, Failure) and isinstance(result.value, StopDownload):
                return result.value
        return None


MORE_THAN_ENOUGH: Final = 1_000
"""Scrapy's concurrency; the stored pages' scheduler sets its own limit."""

_NETWORK: Final = ("http", "https", "ftp", "s3")
_INSTEAD: Final = {
    "SCHEDULER": StoredScheduler,
    "RETRY_ENABLED": False,  # the answer would be the same
    "HTTPCACHE_ENABLED": False,
}


def install(settings: BaseSettings) -> None:
    """Answer requests from stored pages instead of the network, also in place of the project's own handlers."""
    for name, value in _INSTEAD.items():
        settings.set(name, value, max(settings.getpriority(name) or 0, 15))
    handlers = settings["DOWNLOAD_HANDLERS"]
    priority = max(settings.getpriority("DOWNLOAD_HANDLERS") or 0, 15)
    if hasattr(handlers, "set"):
        for scheme in _NETWORK:
            handlers.set(scheme, StoredPagesHandler if scheme.startswith("http") else None, priority)
    settings.set("CONCURRENT_REQUESTS", MORE_THAN_ENOUGH, max(settings.getpriority("CONCURRENT_REQUESTS") or 0, 15))
