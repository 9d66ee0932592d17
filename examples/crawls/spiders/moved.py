"""A CrawlSpider from before bigcrawl: nothing in it was changed, and it takes both schedulers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Response


class MovedSpider(CrawlSpider):
    """`-a start=URL`: the quotes of a site, by way of its pages."""

    name = "moved"
    rules = (
        Rule(LinkExtractor(allow=r"/page/")),
        Rule(LinkExtractor(allow=r"/author/"), callback="parse_author", cb_kwargs={"source": "a link"}),
    )

    def __init__(self, start: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [start]

    def parse_author(self, response: Response, source: str) -> Iterator[dict[str, str | None]]:
        """Yield who it is; arguments of callbacks travel through the frontier."""
        yield {"author": response.css("h1::text").get(), "source": source}
