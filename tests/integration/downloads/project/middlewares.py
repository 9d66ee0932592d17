"""Downloader middlewares of five kinds that note each call in `meta["trace"]` and act where `meta["act"]` says so.

The kinds are those that Scrapy 2.19 still runs: plain functions, coroutines, either
with a `spider` argument, Deferreds.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy.exceptions import DownloadFailedError, IgnoreRequest
from scrapy.http import HtmlResponse
from twisted.internet.defer import Deferred, fail, succeed

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class _Acting:
    kind = ""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def _act(self, method: str, request: Request, given: Any) -> Any:
        """Note the call; return None, or what the request's `act` wants of this method."""
        assert self._crawler.spider is not None
        request.meta.setdefault("trace", []).append(f"{self.kind} {method} {given}")
        if request.meta.get("act", [])[:2] != [self.kind, method]:
            return None
        what = request.meta["act"][2]
        if what == "response":
            return HtmlResponse(request.url, body=b"<p>made here</p>", headers={"X-Made": self.kind}, request=request)
        if what == "request":
            url = self._crawler.settings["DOWNLOADS_PLACES"]["plain"] + urlsplit(request.url).path + "again"
            return request.replace(url=url, meta={**request.meta, "act": []})
        if what == "ignore":
            raise IgnoreRequest("as told")
        if what == "error":
            raise LookupError("as told")
        if what == "lost":
            raise DownloadFailedError("as told")
        if what == "rubbish":
            return 17
        return self._change(request, given)

    def _change(self, request: Request, given: Any) -> Any:
        """`change`: the request gets a header, the response a body."""
        if hasattr(given, "replace"):
            return given.replace(body=b"<p>changed</p>")
        request.headers["X-Changed"] = self.kind
        return None


class Plain(_Acting):
    kind = "plain"

    def process_request(self, request: Request) -> Any:
        return self._act("request", request, "")

    def process_response(self, request: Request, response: Response) -> Any:
        return _or(self._act("response", request, response), response)

    def process_exception(self, request: Request, exception: Exception) -> Any:
        return self._act("exception", request, type(exception).__name__)


class Async(_Acting):
    kind = "async"

    async def process_request(self, request: Request) -> Any:
        await _a_while()
        return self._act("request", request, "")

    async def process_response(self, request: Request, response: Response) -> Any:
        await _a_while()
        return _or(self._act("response", request, response), response)

    async def process_exception(self, request: Request, exception: Exception) -> Any:
        await _a_while()
        return self._act("exception", request, type(exception).__name__)


class WithSpider(_Acting):
    kind = "spider"

    def process_request(self, request: Request, spider: Spider) -> Any:
        assert spider is self._crawler.spider
        return self._act("request", request, spider.name)

    def process_response(self, request: Request, response: Response, spider: Spider) -> Any:
        assert spider is self._crawler.spider
        return _or(self._act("response", request, response), response)

    def process_exception(self, request: Request, exception: Exception, spider: Spider) -> Any:
        assert spider is self._crawler.spider
        return self._act("exception", request, type(exception).__name__)


class AsyncWithSpider(_Acting):
    kind = "async-spider"

    async def process_request(self, request: Request, spider: Spider) -> Any:
        await _a_while()
        return self._act("request", request, spider.name)

    async def process_response(self, request: Request, response: Response, spider: Spider) -> Any:
        await _a_while()
        return _or(self._act("response", request, response), response)

    async def process_exception(self, request: Request, exception: Exception, spider: Spider) -> Any:
        await _a_while()
        return self._act("exception", request, type(exception).__name__)


class Deferreds(_Acting):
    kind = "deferred"

    def process_request(self, request: Request) -> Deferred[Any]:
        return self._later("request", request, "")

    def process_response(self, request: Request, response: Response) -> Deferred[Any]:
        return self._later("response", request, response).addCallback(lambda result: _or(result, response))

    def process_exception(self, request: Request, exception: Exception) -> Deferred[Any]:
        return self._later("exception", request, type(exception).__name__)

    def _later(self, method: str, request: Request, given: Any) -> Deferred[Any]:
        try:
            return succeed(self._act(method, request, given))
        except Exception:  # noqa: BLE001 - whatever it is becomes the Deferred's failure
            return fail()


class RequestOnly:
    """Has one method, and no from_crawler."""

    def process_request(self, request: Request) -> None:
        request.meta.setdefault("trace", []).append("one request")


def _or(result: Any, response: Response) -> Any:
    return response if result is None else result


async def _a_while() -> None:
    """Let the event loop do something else."""
    await asyncio.sleep(0)
