"""Exit status 1 for a crawl that ended because of an error.

A crawl that cannot start is closed before it fetches anything, and the component that found the error logs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import CloseSpider

from bigcrawl.scheduler.adapter.registry import has_failed

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


class ExitStatus:
    """Makes Scrapy's command report failure: it takes a crawler without a spider at the end as failed."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        crawler.signals.connect(self.spider_opened, signals.spider_opened)
        crawler.signals.connect(self.leave_mark, signals.engine_stopped)
        crawler.signals.connect(self.leave_mark, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def spider_opened(self) -> None:
        """Close a spider that cannot run. Earlier, while components are being opened, closing would raise errors."""
        if has_failed(self._crawler):
            raise CloseSpider("bigcrawl_cannot_start")

    def leave_mark(self) -> None:
        if has_failed(self._crawler):
            self._crawler.spider = None
