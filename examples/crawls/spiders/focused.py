"""A focused crawl: pages about a topic first, and what they link to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy.http import HtmlResponse

from bigcrawl.links import Links

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response

MUCH = 5  # words of the topic that make a page one about it


class FocusedSpider(scrapy.Spider):
    """`-a seeds="URL URL" -a topic="words"`: a page's links are worth what the page is worth."""

    name = "focused"
    custom_settings = {  # noqa: RUF012 - Scrapy's own way
        "BIGCRAWL_BUDGET_POLICY": "none",  # by priority alone
        "BIGCRAWL_PRIORITY_BIAS": 100,  # a priority level has 100 times as much as the one below it
        "BIGCRAWL_HOT_URLS": 1_000,  # what is in Redis already is not overtaken: little should be
    }

    def __init__(self, seeds: str, topic: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seeds = seeds
        self.words = re.compile(rf"\b({'|'.join(map(re.escape, topic.split()))})\b", re.IGNORECASE)

    async def start(self) -> AsyncIterator[Any]:
        yield Links(self.seeds.split())

    def parse(self, response: Response) -> Iterator[Any]:
        """Yield the page if it is about the topic, and its links with a priority level that says how much."""
        if not isinstance(response, HtmlResponse):
            return
        found = len(self.words.findall(response.text))
        if found:
            yield {"url": response.url, "found": found}
        yield Links.from_page(response, priority=100 if found >= MUCH else 10 if found else 0)
