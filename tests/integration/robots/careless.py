"""A spider whose author tried everything that switches robots.txt off elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import scrapy

from bigcrawl.links import Links

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response


class CarelessSpider(scrapy.Spider):
    name = "careless"
    custom_settings = {  # noqa: RUF012 - Scrapy's own way
        "ROBOTSTXT_OBEY": False,
        "ROBOTSTXT_PARSER": "no.such.parser",
        "ROBOTSTXT_USER_AGENT": "nobody",
        "DOWNLOADER_MIDDLEWARES": {"scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None},
    }
    obey_robotstxt = False

    def __init__(self, origin: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.origin = origin

    async def start(self) -> AsyncIterator[Any]:
        yield scrapy.Request(f"{self.origin}/ok", meta={"dont_obey_robotstxt": True})
        yield scrapy.Request(f"{self.origin}/no/1", meta={"dont_obey_robotstxt": True}, dont_filter=True)
        yield scrapy.Request(f"{self.origin}/a/../no/2", meta={"verbatim_url": True})
        yield scrapy.Request(f"{self.origin}/leads-there")
        yield Links([f"{self.origin}/no/3"], meta={"dont_obey_robotstxt": True, "handle_httpstatus_all": True})

    def parse(self, response: Response) -> Any:
        if "/no/" not in response.url:
            yield response.follow("/no/4", dont_filter=True)
        yield {"url": response.url}
