"""Fetches the pages in the sitemaps of sites, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.spiders.broad import BroadSpider, is_seed
from bigcrawl.spiders.sitemap_reading import may_be_sitemap

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from os import PathLike

    from scrapy.http import Response


class SitemapSpider(BroadSpider):
    """`scrapy crawl sitemap -a seeds="https://a.example/ https://b.example/sitemap.xml.gz"`.

    It fetches the pages in the sitemaps, and follows no links on pages: docs/guide/sitemap.md. A subclass makes items
    in `parse`. All else is as in `BroadSpider`.
    """

    name = "sitemap"

    def __init__(self, seeds: str | PathLike[str] | Iterable[str] = "", **kwargs: Any) -> None:
        super().__init__(seeds, **{**kwargs, "sitemaps": True})

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        if is_seed(response) and may_be_sitemap(response):
            async for links in self.parse_sitemap(response):
                yield links
