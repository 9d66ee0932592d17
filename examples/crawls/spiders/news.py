"""What feeds announce, and how long each announced page is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.http import HtmlResponse

from bigcrawl.links import page_text
from bigcrawl.spiders.feeds import FeedsSpider

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Response


class NewsSpider(FeedsSpider):
    """`-a seeds="URL URL"`: of feeds, or of pages that name them; the rest as for bigcrawl's spider `feeds`."""

    name = "news"

    def parse_entry(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        """Yield the number of words of an announced page, beside the items that feeds give."""
        if isinstance(response, HtmlResponse):
            yield {"url": response.url, "words": len(page_text(response).split())}
