"""One site in WARC files: its pages, and what a browser needs to show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import scrapy
from scrapy.http import HtmlResponse
from scrapy.utils.response import get_base_url

from bigcrawl.links import Links

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Response

SHOWN_WITH = "img::attr(src), script::attr(src), link[rel~=stylesheet]::attr(href), link[rel~=icon]::attr(href)"


class ArchiveSpider(scrapy.Spider):
    """`-a site=URL`: what is on that host and its subdomains; every answer is stored, whatever its status."""

    name = "archive"
    custom_settings = {  # noqa: RUF012 - Scrapy's own way
        "BIGCRAWL_BUDGET_POLICY": "none",  # there is nobody to share with
        "HTTPERROR_ALLOW_ALL": True,
    }

    def __init__(self, site: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [site]
        self.allowed_domains = [urlsplit(site).hostname or site]

    def parse(self, response: Response) -> Iterator[Any]:
        """Follow the page's links, and fetch what it is shown with before other pages."""
        if isinstance(response, HtmlResponse):
            shown_with = response.css(SHOWN_WITH).getall()
            yield Links(shown_with, base=get_base_url(response), priority=10, callback=self.keep)
            yield Links.from_page(response)

    def keep(self, response: Response) -> None:
        """Nothing to do: the WARC pipeline has stored it."""
