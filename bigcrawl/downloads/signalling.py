from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydispatch.dispatcher import Any as AnySignal
from pydispatch.dispatcher import connections

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class SignalSender:
    """Sends a signal without receivers in 0.4 us; Scrapy takes 7 us."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @property
    def spider(self) -> Any:
        return self._crawler.spider

    def is_heard(self, signal: object) -> bool:
        for sender in (self._crawler, AnySignal):
            by_signal = connections.get(id(sender))
            if by_signal and (by_signal.get(signal) or by_signal.get(AnySignal)):
                return True
        return False

    def send(self, signal: object, **fields: Any) -> list[tuple[Any, Any]]:
        return self._crawler.signals.send_catch_log(signal, **fields) if self.is_heard(signal) else []
