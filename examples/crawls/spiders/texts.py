"""The main texts of stored pages, for search, statistics or language models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import scrapy
from scrapy.http import HtmlResponse

from crawls.texts import main_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Response


class TextsSpider(scrapy.Spider):
    """`-s BIGCRAWL_SOURCE=warc`: title, date and text of every stored HTML page that has a text."""

    name = "texts"
    custom_settings = {"BIGCRAWL_SOURCE_PAGES": "all"}  # noqa: RUF012 - Scrapy's own way

    def parse(self, response: Response) -> Iterator[Any]:
        """Yield the page's text."""
        if isinstance(response, HtmlResponse) and (found := main_text(response)).text:
            yield {"url": response.url, **found._asdict()}
