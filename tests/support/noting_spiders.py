"""Spiders whose items say all that a callback is given: `-s SPIDER_MODULES=tests.support.noting_spiders`."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.spiders import CrawlSpider, Rule

from bigcrawl.spiders.broad import BroadSpider
from bigcrawl.spiders.focused import FocusedSpider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response

_SENT = ("depth", "redirect_urls", "redirect_reasons", "link_text", "rule")


def noted(response: Response, **more: Any) -> dict[str, Any]:
    """A response and its request, as far as the next run gives them again."""
    request = response.request
    assert request is not None
    return {
        "url": response.url,
        "status": response.status,
        "class": type(response).__name__,
        "body": hashlib.sha1(response.body, usedforsecurity=False).hexdigest(),
        "headers": [[str(name), list(map(str, values))] for name, values in dict.items(response.headers)],
        "flags": [flag for flag in response.flags if flag != "partial"],
        "ip": str(response.ip_address),
        "protocol": response.protocol,
        "meta": {name: response.meta[name] for name in _SENT if name in response.meta},
        "cb_kwargs": {name: str(value) for name, value in response.cb_kwargs.items()},
        "priority": request.priority,
        "referer": str(request.headers.get("Referer")),
        **more,
    }


class NotingSpider(BroadSpider):
    name = "noting"

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        yield noted(response)
        async for output in super().parse(response, **kwargs):
            yield output


class NotingRedis(NotingSpider):
    """It looks as if it took URLs from a list."""

    name = "noting_redis"
    redis_key = "noting:start_urls"


class NotingFocused(FocusedSpider):
    """Its links carry what their page has scored."""

    name = "noting_focused"

    async def parse(self, response: Response, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        async for output in super().parse(response, *args, **kwargs):
            yield noted(response, **output) if isinstance(output, dict) else output


class NotingRules(CrawlSpider):
    """Scrapy's own, with Requests that carry their rule."""

    name = "noting_rules"
    seeds = ""
    custom_settings = {"HTTPERROR_ALLOW_ALL": True}  # noqa: RUF012 - Scrapy's own way
    rules = (Rule(callback="parse_page", errback="failed", follow=True, cb_kwargs={"by": "rule"}),)

    async def start(self) -> AsyncIterator[Any]:
        with open(self.seeds) as file:  # noqa: ASYNC230, PTH123 - of a test
            for line in file:
                yield Request(line.strip(), self.parse_page, errback=self.failed, cb_kwargs={"by": "start"})

    def parse_page(self, response: Response, by: str) -> Iterator[Any]:
        yield noted(response, by=by)
        if by == "start":
            yield from self._requests_to_follow(response)

    def failed(self, failure: Any) -> None:
        """Know of it."""


class NotingInline(Spider):
    """Its callback fetches another page by itself, and its `start` waits for the first one."""

    name = "noting_inline"
    seeds = ""

    async def start(self) -> AsyncIterator[Any]:
        self.has_come = asyncio.Event()
        with open(self.seeds) as file:  # noqa: ASYNC230, PTH123 - of a test
            urls = file.read().split()
        yield Request(urls[0])
        await self.has_come.wait()
        yield Request(urls[1])

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        self.has_come.set()
        robots = await self.crawler.engine.download_async(Request(response.urljoin("/robots.txt")))
        missing = None
        try:
            await self.crawler.engine.download_async(Request(response.urljoin("/nobody/has/fetched/this")))
        except IgnoreRequest as error:
            missing = type(error).__name__
        yield noted(response, robots=len(robots.body), missing=missing)
