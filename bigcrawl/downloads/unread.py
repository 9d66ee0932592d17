from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, ref

from scrapy import signals

from bigcrawl.scheduler.adapter.registry import frontier_of
from bigcrawl.stats_buffer import StatsBuffer

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


class UnreadPages:
    """Counts a crawler's unread pages by reason. Logs the first page of each reason, and the counts at the end."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._stats_buffer = StatsBuffer(crawler)
        self._counts: dict[str, int] = {}
        crawler.signals.connect(self._sum_up, signals.spider_closed)

    def record_unread(self, request: Request | None, reason: str) -> None:
        """Record that an answer is not read, or only in part, for a `reason` in the stat `bigcrawl/limits`."""
        self._stats_buffer.inc_value(f"bigcrawl/limits/{reason}")
        if request is None:
            return
        self._counts[reason] = self._counts.get(reason, 0) + 1
        if self._counts[reason] == 1:
            message = "%(url)s is not read, or only in part, by the limit %(reason)s; further pages are counted"
            logger.info(message, {"url": request.url, "reason": reason})
        frontier = frontier_of(self._crawler)
        if frontier is not None:
            frontier.started.record_unread_page(request, reason)

    def _sum_up(self) -> None:
        if self._counts:
            counts = sorted(self._counts.items(), key=lambda row: (-row[1], row[0]))
            written = ", ".join(f"{reason} {count:,}" for reason, count in counts)
            logger.info("not read, or only in part, by limit: %(counts)s", {"counts": written})


_of_crawlers: WeakKeyDictionary[Crawler, ref[UnreadPages]] = WeakKeyDictionary()


def unread_of(crawler: Crawler) -> UnreadPages:
    """Return the crawler's `UnreadPages`, which exists while a user keeps it."""
    kept = _of_crawlers.get(crawler)
    found = kept() if kept is not None else None
    if found is None:
        found = UnreadPages(crawler)
        _of_crawlers[crawler] = ref(found)
    return found
