"""An extension of both sides' projects, that writes down what each crawl of the process did."""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import urljoin

from scrapy import signals

_SIGNALS = (
    "engine_started",
    "engine_stopped",
    "spider_opened",
    "spider_closed",
    "spider_error",
    "item_scraped",
    "item_dropped",
    "item_error",
    "request_scheduled",
    "request_reached_downloader",
    "request_left_downloader",
    "response_received",
    "response_downloaded",
    "headers_received",
    "robots_parsed",
)


class Watch:
    """What one crawl did."""

    def __init__(self, crawler: Any) -> None:
        self.crawler = crawler
        self.items: list[Any] = []
        self.signals: Counter[str] = Counter()
        self.reason = ""
        self._handlers = [self._handler(name) for name in _SIGNALS]  # signals hold them weakly
        for name, handler in zip(_SIGNALS, self._handlers, strict=True):
            crawler.signals.connect(handler, getattr(signals, name))

    @classmethod
    def from_crawler(cls, crawler: Any) -> Watch:
        watch = cls(crawler)
        TOLD.append(watch)
        return watch

    def _handler(self, name: str) -> Any:
        def handle(**said: Any) -> None:
            request = said.get("request") or getattr(said.get("response"), "request", None)
            if request is not None and request.url.endswith("/robots.txt"):
                return
            if name == "robots_parsed" and request is not None:  # for which page of a host first, is nobody's promise
                request = request.replace(url=urljoin(request.url, "/"))
            self.signals[f"{name} {request.method} {request.url}" if request is not None else name] += 1
            if name == "item_scraped":
                self.items.append(said["item"])
            self.reason = said.get("reason", self.reason)

        return handle

    def told(self) -> dict[str, Any]:
        return {
            "items": self.items,
            "signals": dict(self.signals),
            "reason": self.reason,
            "stats": self.crawler.stats.get_stats(),
        }


TOLD: list[Watch] = []
