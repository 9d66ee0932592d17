"""The texts of pages, and which are gone, for the index of `crawls.search`: each page is visited once in a cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.http import HtmlResponse

from bigcrawl.links import page_text
from bigcrawl.spiders.recrawl import RecrawlSpider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response


class SearchedSpider(RecrawlSpider):
    """`-a seeds="URL URL" -a cycles=02:00`: an item for each page that was added, has changed or is gone."""

    name = "searched"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "changes": "1"})

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        """Add title and text to the items of `recrawl`."""
        async for output in super().parse(response, **kwargs):
            if isinstance(output, dict) and isinstance(response, HtmlResponse):
                output |= {"title": response.css("title::text").get(""), "text": page_text(response)}
            yield output
