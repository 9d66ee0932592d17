"""The records behind the search forms of sites, and their titles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.http import HtmlResponse

from bigcrawl.links import page_title
from bigcrawl_forms.spider import FormsSpider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response


class RecordsSpider(FormsSpider):
    """`-a seeds=FILE -a queries=100`: the rest as for bigcrawl's spider `forms`."""

    name = "records"

    async def parse_record(self, response: Response, form: str = "", **more: Any) -> AsyncIterator[Any]:
        if response.status == 200 and isinstance(response, HtmlResponse):
            yield {"url": response.url, "title": page_title(response)}
        async for output in super().parse_record(response, form, **more):
            yield output
