"""Scrapy's downloader with two promises added: a hard end to every fetch, and a word on how each one went.

The `DOWNLOADER` setting is Scrapy's public place for it; the download handlers stay the project's own. A
fetch ends after BIGCRAWL_FETCH_DEADLINE whatever the server does, because a host whose node died is left
alone for just that long; and it can be given up, because SIGTERM must not wait for a slow server.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy.core.downloader import Downloader as ScrapyDownloader
from scrapy.exceptions import DownloadTimeoutError

from bigcrawl.scheduler.outcome import FetchAbortedError
from bigcrawl.scheduler.registry import frontier_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.core.downloader.handlers import DownloadHandlers
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from bigcrawl.scheduler.scheduler import Scheduler


class Downloader(ScrapyDownloader):
    """See the module; everything else is Scrapy's."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.handlers: Any = WatchedHandlers(crawler, self.handlers)

    def abort(self) -> int:
        """Give up all running fetches; return how many there were."""
        return self.handlers.abort()  # type: ignore[no-any-return]


class WatchedHandlers:
    """The download handlers, with a deadline, an abort, and a report to the frontier."""

    def __init__(self, crawler: Crawler, handlers: DownloadHandlers) -> None:
        self._crawler = crawler
        self._handlers = handlers
        self._running: set[asyncio.Task[Response]] = set()
        self._aborted = False

    async def download_request_async(self, request: Request) -> Response:
        """Download, unless the frontier refused it, and tell the frontier how it went."""
        frontier = frontier_of(self._crawler)
        if frontier is None:
            return await self._handlers.download_request_async(request)
        started = monotonic()
        try:
            response = await self._fetch(frontier, request)
        except BaseException as error:
            frontier.note_failure(request, error, round((monotonic() - started) * 1000))
            raise
        frontier.note_response(request, response, round((monotonic() - started) * 1000))
        return response

    async def _fetch(self, frontier: Scheduler, request: Request) -> Response:
        refusal = frontier.refusal_of(request)
        if refusal is not None:
            raise refusal
        return await self._limited(request, frontier.config.politeness.fetch_deadline_ms / 1000)

    async def _limited(self, request: Request, deadline_s: float) -> Response:
        if self._aborted:
            raise FetchAbortedError("the node stops")
        task = asyncio.ensure_future(self._handlers.download_request_async(request))
        self._running.add(task)
        try:
            done, _ = await asyncio.wait((task,), timeout=deadline_s)
            if not done:
                task.cancel()
                raise DownloadTimeoutError(f"{request.url} ran into BIGCRAWL_FETCH_DEADLINE, {deadline_s:g} s")
            if task.cancelled():
                raise FetchAbortedError("the node stops")
            return task.result()
        finally:
            self._running.discard(task)

    def abort(self) -> int:
        """Give up all running fetches, and refuse new ones."""
        self._aborted = True
        running = list(self._running)
        for task in running:
            task.cancel()
        return len(running)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handlers, name)
