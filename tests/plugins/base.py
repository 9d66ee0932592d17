"""The spider that all plug-ins have: a page, a retry that leads to a redirect, a URL given up, a closed port."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import scrapy
from scrapy import signals
from scrapy.utils.serialize import ScrapyJSONEncoder

from tests.integration.stock.spiders import Base

FLAKY, REDIRECTED, LANDED = "/flaky/1/page", "/redirect/cross", "/landed/cross"


class PluginSpider(Base):
    """A plug-in says what its requests hold, and what of an answer shows that it was at work."""

    name = "plugin"

    def new_meta(self) -> dict[str, Any]:
        return {}

    def work_of(self, response) -> dict[str, Any]:
        """What of a response is the plug-in's."""
        return {}

    def request(self, url, callback=None):
        return scrapy.Request(url, callback, meta=self.new_meta(), errback=self.failed)

    async def start(self):
        yield self.request(f"{self.site}/page/1")
        yield self.request(f"{self.others[0]}{FLAKY}", self.parse_flaky)
        yield self.request(f"{self.others[1]}/flaky/9/never")
        yield self.request(f"{self.refusing}/")

    def parse(self, response):
        yield self.told(response, retries=response.meta.get("retry_times"), **self.work_of(response))

    def parse_flaky(self, response):
        yield from self.parse(response)
        yield self.request(f"{self.site}{REDIRECTED}")


class ItemLines:
    """An extension that writes each item as a line, at once, so that a kill loses none that a pipeline has let go."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._encoder = ScrapyJSONEncoder(sort_keys=True)

    @classmethod
    def from_crawler(cls, crawler: Any) -> ItemLines:
        lines = cls(Path(crawler.settings["ITEM_LINES"]))
        crawler.signals.connect(lines.item_scraped, signals.item_scraped)
        return lines

    def item_scraped(self, item: Any) -> None:
        os.write(self._file, self._encoder.encode(item).encode() + b"\n")
