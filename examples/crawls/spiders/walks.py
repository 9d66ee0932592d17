"""Random walks that keep what one wants to know of a web: here, how long pages are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.http import HtmlResponse

from bigcrawl.links import page_text
from bigcrawl.spiders.sample import SampleSpider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response


class WalksSpider(SampleSpider):
    """`-a seeds=FILE -a walks=1000`: the rest as for bigcrawl's spider `sample`."""

    name = "walks"

    async def parse(self, response: Response, walk: int = 0, step: int = 0, **more: Any) -> AsyncIterator[Any]:
        """Yield each step with the number of words of its page, and the next step."""
        words = len(page_text(response).split()) if isinstance(response, HtmlResponse) else 0
        async for output in super().parse(response, walk, step, **more):
            yield {**output, "words": words} if isinstance(output, dict) else output
