"""Exit status 1 for a crawl that ended because of an error.

A crawl that cannot start is closed before it fetches anything. The component that found the error has logged it by
then: a wrong setting (the add-on), or an unusable Redis or state directory (the scheduler).
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
    """Tells Scrapy's command that the crawl failed.

    Scrapy counts a crawl as failed if its crawler has no spider at the end; there is no public API for this.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        crawler.signals.connect(self.spider_opened, signals.spider_opened)
        crawler.signals.connect(self.leave_mark, signals.engine_stopped)
        crawler.signals.connect(self.leave_mark, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def spider_opened(self) -> None:
        """Close a spider that cannot run.

        Doing so earlier, while Scrapy is still opening components, would leave some half open, and closing those
        raises errors.
        """
        if has_failed(self._crawler):
            raise CloseSpider("bigcrawl_cannot_start")

    def leave_mark(self) -> None:
        """Remove the spider, which Scrapy takes as failure."""
        if has_failed(self._crawler):
            self._crawler.spider = None
