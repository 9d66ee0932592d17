from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.logformatter import LogFormatter as ScrapysFormatter
from scrapy.utils.log import get_scrapy_root_handler

from bigcrawl.logs.installed import INSTALLED
from bigcrawl.logs.plain import make_plain
from bigcrawl.logs.repeats import RepeatFilter
from bigcrawl.scheduler.adapter.fetch_errors import error_outcome
from bigcrawl.scheduler.adapter.registry import frontier_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure


_of_pages = logging.getLogger("scrapy.core.engine")
_of_items = logging.getLogger("scrapy.core.scraper")


class LogFormatter(ScrapysFormatter):
    """Logs failures of host or network at RETRY_GIVE_UP_LOG_LEVEL, others as ERROR; skips unread DEBUG lines."""

    _given_up_level = logging.ERROR

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        level = crawler.settings["RETRY_GIVE_UP_LOG_LEVEL"]
        formatter = super().from_crawler(crawler)
        formatter._given_up_level = level if isinstance(level, int) else logging.getLevelNamesMapping()[level]
        return formatter

    def crawled(self, request: Request, response: Response, spider: Spider) -> LogFormatterResult:
        # Scrapy's callers take None, which its types do not say.
        if self._is_unheard(_of_pages):
            return None  # type: ignore[return-value]
        return super().crawled(request, response, spider)

    def scraped(self, item: Any, response: Response | Failure | None, spider: Spider) -> LogFormatterResult:
        if self._is_unheard(_of_items):
            return None  # type: ignore[return-value]
        return super().scraped(item, response, spider)

    def download_error(
        self, failure: Failure, request: Request, spider: Spider, errmsg: str | None = None
    ) -> LogFormatterResult:
        entry = super().download_error(failure, request, spider, errmsg)
        if failure.value is not None and error_outcome(failure.value) != "error:other":
            entry["level"] = self._given_up_level
        return entry

    def _is_unheard(self, logger: logging.Logger) -> bool:
        return type(self) is LogFormatter and not is_heard(logger, logging.DEBUG)


def is_heard(logger: logging.Logger, level: int) -> bool:
    """Return whether a handler of the logger, or of one above it, accepts records of a level."""
    if not logger.isEnabledFor(level):
        return False
    at: logging.Logger | None = logger
    while at is not None:
        for handler in at.handlers:
            if handler.level <= level:
                return True
        at = at.parent if at.propagate else None
    return False


class LogLines:
    """Makes log lines plain, logs a repeated problem once, and names the crawl in JSON lines; see `bigcrawl.logs`."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._repeats = RepeatFilter()
        self._handler: logging.Handler | None = None
        crawler.signals.connect(self.spider_opened, signals.spider_opened)
        crawler.signals.connect(self.engine_stopped, signals.engine_stopped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def spider_opened(self, spider: Spider) -> None:
        make_plain(get_scrapy_root_handler())
        self._handler = INSTALLED.handler or get_scrapy_root_handler()
        if self._handler is not None:
            self._handler.addFilter(self._repeats)
        frontier = frontier_of(self._crawler)
        if frontier is not None and frontier.node is not None:
            INSTALLED.record_crawl(frontier.config.crawl.name, spider.name, frontier.node.node_id)

    def engine_stopped(self) -> None:
        self._repeats.flush()
        if self._handler is not None:
            self._handler.removeFilter(self._repeats)
