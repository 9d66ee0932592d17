"""The titles of whole sites: each host breadth-first, with a bound on its pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.http import HtmlResponse

from bigcrawl.spiders.site import SiteSpider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response


class TitlesSpider(SiteSpider):
    """`-a seeds="URL URL" -a pages=100`: seeds, scope and bounds are those of the spider `site`."""

    name = "titles"

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        """Yield the page's title, and follow its links as `site` does."""
        if isinstance(response, HtmlResponse):
            yield {"url": response.url, "depth": response.meta["depth"], "title": response.css("title::text").get()}
        async for output in super().parse(response, **kwargs):
            yield output
