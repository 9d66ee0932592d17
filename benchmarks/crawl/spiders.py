"""What the peers run: every link of every page, as Scrapy's documentation has it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy.linkextractors import LinkExtractor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response


class PeerSpider(scrapy.Spider):
    """Follows all links from the URLs of a file, one a line; counts them as `bench/links`."""

    name = "peer"

    def __init__(self, seeds: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seeds = seeds
        self.extractor = LinkExtractor()

    async def start(self) -> AsyncIterator[Any]:
        for url in Path(self.seeds).read_text().split():  # noqa: ASYNC240 - once, before anything else
            yield scrapy.Request(url)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[scrapy.Request]:
        links = self.extractor.extract_links(response)  # type: ignore[arg-type]  # all pages are HTML
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value("bench/links", len(links))
        for link in links:
            yield scrapy.Request(link.url)
