"""Sitemaps: the pages that sites list themselves, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.spiders.broad import BroadSpider, is_html, is_seed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from os import PathLike

    from scrapy.http import Response


class SitemapSpider(BroadSpider):
    """`scrapy crawl sitemap -a seeds="https://a.example/ https://b.example/sitemap.xml.gz"`.

    A seed is a sitemap, or a page of a site, whose robots.txt names its sitemaps; so do the robots.txt of all other
    hosts that are met. Indexes are followed, and every listed page is fetched; links on pages are not followed. A
    site's `lastmod` and `priority` raise pages among others (`bigcrawl.spiders.hints`). A subclass makes items in
    `parse`. All else is as in `BroadSpider`.
    """

    name = "sitemap"

    def __init__(self, seeds: str | PathLike[str] | Iterable[str] = "", **kwargs: Any) -> None:
        super().__init__(seeds, **{**kwargs, "sitemaps": True})

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        """Follow a sitemap among the seeds; a page leads nowhere."""
        if is_seed(response) and not is_html(response):
            async for links in self.parse_sitemap(response):
                yield links
