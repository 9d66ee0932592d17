from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.utils.log import get_scrapy_root_handler

from bigcrawl.logs.installed import INSTALLED
from bigcrawl.logs.plain import make_plain
from bigcrawl.logs.repeats import RepeatFilter
from bigcrawl.scheduler.adapter.registry import frontier_of

if TYPE_CHECKING:
    import logging
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler


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
