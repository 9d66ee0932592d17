"""Download handlers that fail in ways of their own, and one that reaches its site by a key of meta only."""

from __future__ import annotations

import scrapy
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.exceptions import DownloadFailedError

from tests.integration.stock.spiders import Base


class OwnError(Exception):
    """As a library raises it."""


class RaisingHandler(HTTP11DownloadHandler):
    async def download_request(self, request):
        raise OwnError(request.url)


class UnmadeHandler(HTTP11DownloadHandler):
    def __init__(self, crawler):
        raise ValueError("it needs a service that is not there")


class ImpersonatingHandler(HTTP11DownloadHandler):
    """As of a site that breaks off the connection of every client but one."""

    async def download_request(self, request):
        if not request.meta.get("impersonate"):
            raise DownloadFailedError("the connection was reset")
        return await super().download_request(request)


class FailingSpider(Base):
    """Two pages of a host, so that the second one would wait for it."""

    name = "failing"

    async def start(self):
        for number in range(2):
            yield scrapy.Request(f"{self.others[0]}/page/{number}", errback=self.failed, meta={"impersonate": "chrome"})

    def parse(self, response):
        yield self.told(response)

    def failed(self, failure):
        said = str(failure.value).partition(":")[0]
        yield {"url": failure.request.url, "failed": repr(failure.type), "said": said}


class UnpackedSpider(FailingSpider):
    """A body that is not packed as it says."""

    name = "unpacked"

    async def start(self):
        yield scrapy.Request(f"{self.site}/unpacked/a", errback=self.failed)


SPIDERS = {spider.name: spider for spider in (FailingSpider, UnpackedSpider)}
