"""The titles of all pages that sites list in their sitemaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.http import HtmlResponse

from bigcrawl.spiders.sitemap import SitemapSpider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response


class ListedSpider(SitemapSpider):
    """`-a seeds="URL URL"`: of sites, or of sitemaps; the rest as for bigcrawl's spider `sitemap`."""

    name = "listed"

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        """Yield a page's title, and follow sitemaps as `sitemap` does."""
        if isinstance(response, HtmlResponse):
            yield {"url": response.url, "title": response.css("title::text").get()}
        async for output in super().parse(response, **kwargs):
            yield output
