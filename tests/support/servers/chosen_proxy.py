"""A downloader middleware as projects have them: it chooses the proxy of every request."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler


class ChosenProxy:
    """Sends everything through the proxy of the setting CHOSEN_PROXY."""

    def __init__(self, proxy: str) -> None:
        self._proxy = proxy

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler.settings["CHOSEN_PROXY"])

    def process_request(self, request: Request) -> None:
        request.meta["proxy"] = self._proxy
