"""A crawler as far as downloads need one, and its handler in the test's own event loop."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from scrapy import Spider
from scrapy.utils.test import get_crawler

from bigcrawl.downloads.http import HttpDownloadHandler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.crawler import Crawler


def new_crawler(**settings: Any) -> Crawler:
    """A crawler with a spider and Scrapy's default settings; loopback servers may be fetched from."""
    crawler = get_crawler(Spider, {"BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": True, **settings})
    crawler.spider = crawler._create_spider("downloads")
    return crawler


@asynccontextmanager
async def handling(crawler: Crawler | None = None) -> AsyncIterator[HttpDownloadHandler]:
    made = HttpDownloadHandler.from_crawler(crawler or new_crawler())
    try:
        yield made
    finally:
        await made.close()
