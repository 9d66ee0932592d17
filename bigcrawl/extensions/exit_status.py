"""A crawl that ended because of an error must not look like one that was finished: exit status 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import signals

from bigcrawl.scheduler.registry import has_failed

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


class ExitStatus:
    """Tells Scrapy's command that the crawl failed.

    Scrapy counts a crawl as failed when its crawler has no spider at the end; there is no public way.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        crawler.signals.connect(self.engine_stopped, signals.engine_stopped)
        crawler.signals.connect(self.engine_stopped, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def engine_stopped(self) -> None:
        """Leave the mark that Scrapy reads."""
        if has_failed(self._crawler):
            self._crawler.spider = None
