"""Reports download errors that are not the host's fault, such as that of a handler that cannot be loaded."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import StopDownload

from bigcrawl.scheduler.adapter.fetch_errors import is_own
from bigcrawl.stats_buffer import StatsBuffer

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

KINDS_MAX = 100


class OwnErrors:
    def __init__(self, crawler: Crawler) -> None:
        self._stats_buffer = StatsBuffer(crawler)
        self._counts: Counter[str] = Counter()
        crawler.signals.connect(self.spider_closed, signals.spider_closed)

    def count_error(self, error: BaseException, request: Request) -> None:
        if not is_own(error) or isinstance(error, StopDownload):
            return  # a host's error, or a stop by the project's signal
        self._stats_buffer.inc_value("bigcrawl/handler_errors")
        kind = f"{type(error).__module__}.{type(error).__qualname__}"
        if kind not in self._counts and len(self._counts) < KINDS_MAX:
            logger.error(
                "the download handler for %(url)s raised %(kind)s: %(error)s. It does not count against the host. "
                "Further ones are counted as bigcrawl/handler_errors",
                {"url": request.url, "kind": kind, "error": error},
                exc_info=error,
            )
        if kind in self._counts or len(self._counts) < KINDS_MAX:
            self._counts[kind] += 1

    def spider_closed(self) -> None:
        for kind, count in self._counts.items():
            if count > 1:
                logger.error("%(count)d downloads failed by %(kind)s", {"count": count, "kind": kind})
