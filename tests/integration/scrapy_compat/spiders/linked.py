"""A spider of a project that has bigcrawl: links as batches, with callbacks and what goes with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider

from bigcrawl.links import Links

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response
    from twisted.python.failure import Failure


class LinkedSpider(Spider):
    name = "linked"
    allowed_domains = ["127.83.0.1", "127.83.0.2"]  # noqa: RUF012 - Scrapy's way

    def __init__(self, origins: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.site, self.other, self.foreign, *_ = origins.split(",")

    async def start(self) -> AsyncIterator[Any]:
        yield Links([f"{self.site}/", f"{self.site}/#same", "no url", f"{self.site}/shop/"])

    def parse(self, response: Response) -> Iterator[Any]:
        yield self.item(response)
        fields: dict[str, Any] = {
            "callback": self.parse_page,
            "cb_kwargs": {"pair": (1, 2)},
            "meta": {"tag": {"set"}},
        }
        yield Links.from_page(response, **fields)
        yield Links(["/page/7", "page/8"], base=response.url, callback="parse_page", cb_kwargs={"pair": ()})
        yield Links([f"{self.other}/status/404", f"{self.foreign}/page/1"], errback=self.failed)
        yield Request(f"{self.other}/page/beside", self.parse_page, cb_kwargs={"pair": ("request",)})

    def parse_page(self, response: Response, pair: tuple[Any, ...]) -> Iterator[Any]:
        yield self.item(response, pair=[type(pair).__name__, *pair], tag=repr(response.meta.get("tag")))

    def failed(self, failure: Failure) -> Iterator[Any]:
        yield {"kind": "errback", "url": failure.request.url}  # type: ignore[attr-defined]

    def item(self, response: Response, **fields: Any) -> dict[str, Any]:
        return {"kind": "page", "url": response.url, "depth": response.meta["depth"], **fields}
