"""A CrawlSpider and a SitemapSpider, from Scrapy's documentation but for the names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request
    from scrapy.http import Response
    from twisted.python.failure import Failure


class ShopSpider(CrawlSpider):
    name = "shop-rules"
    rules = (
        Rule(LinkExtractor(allow=r"/category/"), process_request="stamp"),
        Rule(LinkExtractor(allow=r"/product/"), callback="parse_product", cb_kwargs={"by": "rule"}, follow=True),
        Rule(LinkExtractor(allow=r"/private/"), callback="parse_product", errback="failed"),
    )

    def __init__(self, origins: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [f"{origins.split(',', 1)[0]}/shop/"]

    def stamp(self, request: Request, response: Response) -> Request:
        return request.replace(meta={**request.meta, "stamp": "category"})

    def parse_start_url(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield {"kind": "start", "url": response.url}

    def parse_product(self, response: Any, by: str = "?") -> Iterator[Any]:
        title = response.css("title::text").get()
        yield {"kind": "product", "title": title, "by": by, "text": response.meta["link_text"]}

    def failed(self, failure: Failure) -> Iterator[Any]:
        yield {"kind": "failed", "url": failure.request.url}  # type: ignore[attr-defined]


class MapSpider(SitemapSpider):
    name = "map"
    sitemap_rules = [(r"/page/[0-3]$", "parse_low"), (r"/page/", "parse_high")]  # noqa: RUF012 - Scrapy's way

    def __init__(self, origins: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sitemap_urls = [f"{origins.split(',', 1)[0]}/robots.txt"]

    def parse_low(self, response: Response) -> Iterator[Any]:
        yield {"kind": "low", "url": response.url}

    def parse_high(self, response: Response) -> Iterator[Any]:
        yield {"kind": "high", "url": response.url}
