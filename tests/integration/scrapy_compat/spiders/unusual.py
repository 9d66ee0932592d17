"""Spiders that do what spiders do now and then: end early, ask again when idle, fail, ask too much."""

from __future__ import annotations

import asyncio
import io
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider, signals
from scrapy.exceptions import CloseSpider, DontCloseSpider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure


class _SiteSpider(Spider):
    def __init__(self, origins: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.site, *self.others = origins.split(",")

    async def start(self) -> AsyncIterator[Any]:
        yield Request(f"{self.site}/")

    def item(self, response: Response, **fields: Any) -> dict[str, Any]:
        return {"kind": "page", "url": response.url.removeprefix(self.site), **fields}

    def parse(self, response: Response) -> Iterator[Any]:
        yield self.item(response)


class PagesSpider(_SiteSpider):
    """`-a pages=5`: those pages of the site; items too from `start`."""

    name = "pages"
    pages: str

    async def start(self) -> AsyncIterator[Any]:
        yield {"kind": "start", "url": None}
        for number in range(int(self.pages)):
            yield Request(f"{self.site}/page/{number}")


class PrioritySpider(_SiteSpider):
    """Asks for pages of a host that is busy until all of them wait, and the site lets it go on."""

    name = "priority"

    def parse(self, response: Response) -> Iterator[Any]:
        yield self.item(response)
        yield Request(f"{self.site}/hold", self.parse_page)
        yield Request(f"{self.others[0]}/", self.parse_other)

    def parse_page(self, response: Response) -> Iterator[Any]:
        yield self.item(response)

    def parse_other(self, response: Response) -> Iterator[Any]:
        for priority in (0, 5, -3, 9, 1, -8, 5):
            url = f"{self.site}/page/priority/{priority}"
            yield Request(url, self.parse_page, priority=priority, dont_filter=True)


class ClosingSpider(_SiteSpider):
    """Ends with its own reason at the page that `-a at` names; the rest stays for the next run."""

    name = "closing"

    def parse(self, response: Response) -> Iterator[Any]:
        yield self.item(response)
        for number in range(6):
            yield Request(f"{self.site}/page/{number}", self.parse_page)

    def parse_page(self, response: Response) -> Iterator[Any]:
        yield self.item(response)
        if response.url.endswith("/page/2") and self.crawler.settings.getbool("CLOSE_AT_TWO"):
            raise CloseSpider("enough")


class IdleSpider(_SiteSpider):
    """Has more to do whenever it is idle, twice: once kept open by force, once only by what it asks for."""

    name = "idle"
    rounds = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.idle, signals.spider_idle)
        return spider

    def idle(self) -> None:
        self.rounds += 1
        if self.rounds > 2:
            return
        for number in range(3):
            self.crawler.engine.crawl(Request(f"{self.site}/page/{self.rounds}-{number}"))
        if self.rounds == 1:
            raise DontCloseSpider


class BrokenStartSpider(_SiteSpider):
    """Its start fails after two requests, until the project has mended it."""

    name = "broken-start"

    async def start(self) -> AsyncIterator[Any]:
        yield Request(f"{self.site}/page/1")
        yield Request(f"{self.site}/page/2")
        if not self.crawler.settings.getbool("START_IS_MENDED"):
            raise ValueError("a start of somebody's that fails")
        yield Request(f"{self.site}/page/3")


def _nothing(response: Response) -> None:
    """A callback that is no method of a spider."""


class ImpossibleSpider(_SiteSpider):
    """Asks for what cannot be kept or fetched, and for something that can."""

    name = "impossible"

    def parse(self, response: Response) -> Iterator[Any]:
        for number in range(2):
            yield Request(f"{self.site}/page/open-file-{number}", meta={"shelf": {"files": [1, io.StringIO()]}})
        yield Request(f"{self.site}/page/function", callback=_nothing)
        yield Request(f"{self.site}/page/kwargs", cb_kwargs={"spider": self})
        yield Request("ftp://127.0.0.1/file")
        yield Request(f"{self.site}/page/fine", self.parse_fine)

    def parse_fine(self, response: Response) -> Iterator[Any]:
        yield self.item(response)


class ItemsSpider(_SiteSpider):
    """Items through slow pipelines, some of them dropped; pages fetched by callbacks themselves."""

    name = "items"
    custom_settings = {  # noqa: RUF012 - Scrapy's way
        "ITEM_PIPELINES": {"shop.pipelines.SlowPipeline": 100, "shop.pipelines.DroppingPipeline": 200}
    }

    async def parse(self, response: Response) -> AsyncIterator[Any]:  # type: ignore[override]
        for number in range(5):
            yield {**self.item(response, number=number), "unwanted": number == 3}
        await asyncio.sleep(0.01)
        inline = await self.crawler.engine.download_async(Request(f"{self.site}/echo/inline"))
        yield self.item(inline, number=None)


class RefusedSpider(_SiteSpider):
    """Asks a host where nobody listens, and tells what its errback heard."""

    name = "refused"
    refusing: str

    async def start(self) -> AsyncIterator[Any]:
        yield Request(f"{self.refusing}/page/1", errback=self.failed, meta={"dont_retry": True})

    def failed(self, failure: Failure) -> Iterator[Any]:
        yield {"kind": "errback", "error": type(failure.value).__name__}
