"""A focused crawl: pages about a topic first, and what leads to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import scrapy
from scrapy.http import HtmlResponse

from bigcrawl.links import Links, page_text
from bigcrawl.scoring.scorers import KeywordScorer
from bigcrawl.scoring.scores import priority_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response

ENOUGH = 0.8  # the score of a page about the topic


class FocusedSpider(scrapy.Spider):
    """`-a seeds="URL URL" -a topic="words"`: a link is worth what its page and its anchor say of the topic."""

    name = "focused"
    custom_settings = {  # noqa: RUF012 - Scrapy's own way
        "BIGCRAWL_BUDGET_POLICY": "none",  # by priority alone
        "BIGCRAWL_PRIORITY_BIAS": 100,  # a priority level has 100 times as much as the one below it
        "BIGCRAWL_HOT_URLS": 1_000,  # what is in Redis already is not overtaken: little should be
    }

    def __init__(self, seeds: str, topic: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seeds = seeds.split()
        self.score = KeywordScorer(topic.split())

    async def start(self) -> AsyncIterator[Any]:
        yield Links(self.seeds)

    def parse(self, response: Response) -> Iterator[Any]:
        """Yield the page if it is about the topic, and its links by score."""
        if not isinstance(response, HtmlResponse):
            return
        [of_page] = self.score([page_text(response)])
        if of_page >= ENOUGH:
            yield {"url": response.url, "score": of_page}
        links = Links.from_page(response, with_anchors=True)
        scores = [0.4 * of_page + 0.6 * of_anchor for of_anchor in self.score(links.anchors)]
        yield from links.by_priority([priority_of(score) for score in scores])
