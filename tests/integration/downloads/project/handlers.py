"""Download handlers that a project might have: one of today's kind, one of the old kind, one that cannot start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.exceptions import NotConfigured
from scrapy.http import TextResponse
from twisted.internet.defer import Deferred, succeed

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class Own(BaseDownloadHandler):
    """Asks nobody; tells what it was asked for."""

    async def download_request(self, request: Request) -> Response:
        told = {name.decode("latin-1"): request.headers.getlist(name)[0].decode() for name in request.headers}
        body = f"{request.method} {request.url} {sorted(told.items())} ".encode() + request.body
        return TextResponse(request.url, body=body, headers={"X-Handler": "own"}, flags=["own"], encoding="utf-8")


class Old:
    """Has no `lazy`, no `close`, a `spider` argument, and returns a Deferred: Scrapy 2.19 still takes it."""

    def download_request(self, request: Request, spider: Spider) -> Deferred[Response]:
        return succeed(TextResponse(request.url, body=spider.name.encode(), headers={"X-Handler": "old"}))


class Failing(BaseDownloadHandler):
    def __init__(self, crawler: Crawler) -> None:
        raise NotConfigured("as told")

    async def download_request(self, request: Request) -> Response:
        raise AssertionError("unreachable")
