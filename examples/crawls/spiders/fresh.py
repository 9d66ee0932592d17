"""The titles of pages that are new or have changed: each page is visited again when it has probably changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.http import HtmlResponse

from bigcrawl.spiders.recrawl import RecrawlSpider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response


class FreshSpider(RecrawlSpider):
    """`-a seeds="URL URL" -a every=3600`: seeds, policy and waits are those of the spider `recrawl`."""

    name = "fresh"

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        """Yield the title of a page that is new or has changed, and follow its links as `recrawl` does."""
        change = response.meta.get("bigcrawl_visit", {}).get("change")
        if isinstance(response, HtmlResponse) and change in ("added", "changed"):
            yield {"url": response.url, "change": change, "title": response.css("title::text").get()}
        async for output in super().parse(response, **kwargs):
            yield output
