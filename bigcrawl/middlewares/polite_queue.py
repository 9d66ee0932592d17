"""A priority queue for Scrapy's own scheduler that hands out only requests of due hosts.

    SCHEDULER_PRIORITY_QUEUE = "bigcrawl.middlewares.polite_queue.PoliteQueue"

ThrottleMiddleware says which host has been due longest. If none is due, the queue wakes the engine once one is.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from scrapy.pqueues import DownloaderAwarePriorityQueue, DownloaderInterface
from scrapy.utils.asyncio import call_later
from scrapy.utils.misc import load_object

from bigcrawl.exceptions import ConfigError
from bigcrawl.middlewares.standalone import host_of_url, throttle_of
from bigcrawl.politeness.due_order import DueOrder
from bigcrawl.scheduler.adapter.engine_probe import EngineProbe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.utils.asyncio import CallLaterResult

    from bigcrawl.middlewares.standalone import Throttle


class PoliteQueue(DownloaderAwarePriorityQueue):
    """Hands out requests of the host that has been due longest.

    On disk it has the format of Scrapy's queue, so a job may switch between them. Cost: O(log hosts) per request;
    Scrapy's queue inspects every host.
    """

    def __init__(self, crawler: Crawler, *args: Any, **kwargs: Any) -> None:
        super().__init__(crawler, *args, **kwargs)
        throttle = throttle_of(crawler)
        if throttle is None:
            raise ConfigError(
                "SCHEDULER_PRIORITY_QUEUE is PoliteQueue, which needs ThrottleMiddleware; add "
                "'bigcrawl.middlewares.throttle.ThrottleMiddleware': 950 to DOWNLOADER_MIDDLEWARES"
            )
        self._throttle = throttle
        self._order = DueOrder(throttle.due_ms)
        self._downloader_interface: OneHostDownloader = OneHostDownloader(crawler, throttle, self._order)
        for host in self.pqueues:  # from an earlier run of the job
            self._order.add(host)
        self._probe = EngineProbe(crawler)
        self._alarm: CallLaterResult | None = None
        self._alarm_ms = 0

    def push(self, request: Request) -> None:
        super().push(request)
        self._order.add(self._downloader_interface.get_slot_key(request))

    def pop(self) -> Request | None:
        request = super().pop()
        host = self._downloader_interface.chosen
        if host is None:
            self._wake_when_due()
        elif host not in self.pqueues:
            self._order.remove(host)
        return request

    def close(self) -> dict[str, list[int]]:
        self._cancel_alarm()
        return super().close()

    def _wake_when_due(self) -> None:
        first_ms = self._order.next_ms
        if first_ms is None or (self._alarm is not None and self._alarm_ms <= first_ms):
            return
        self._cancel_alarm()
        self._alarm_ms = first_ms
        self._alarm = call_later(max(0, first_ms - self._throttle.now_ms()) / 1000, self._wake_engine)

    def _wake_engine(self) -> None:
        self._alarm = None
        self._probe.wake()

    def _cancel_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None


class OneHostDownloader(DownloaderInterface):
    """Shows Scrapy's queue only the host whose turn it is."""

    def __init__(self, crawler: Crawler, throttle: Throttle, order: DueOrder) -> None:
        super().__init__(crawler)
        self._throttle = throttle
        self._order = order
        self.chosen: str | None = None

    def stats(self, possible_slots: Iterable[str]) -> list[tuple[int, str]]:
        """Return (0, host), as Scrapy's queue expects, for the host that has been due longest; [] if none is due."""
        # The downloader also holds requests without a turn, such as those waiting for robots.txt.
        active = Counter(map(self.get_slot_key, self.downloader.active))
        connections = self._throttle.connections
        self.chosen = self._order.first_due(self._throttle.now_ms(), lambda host: active[host] < connections)
        return [] if self.chosen is None else [(0, self.chosen)]

    def get_slot_key(self, request: Request) -> str:
        return host_of_url(request.url) or super().get_slot_key(request)


def has_polite_queue(crawler: Crawler) -> bool:
    return issubclass(load_object(crawler.settings["SCHEDULER_PRIORITY_QUEUE"]), PoliteQueue)
