"""A crawl that ended because of an error must not look like one that was finished: exit status 1.

One that could not even begin is closed before anything is fetched. What found the error has said it in the
log by then: a wrong setting (the add-on), or a Redis or state directory that cannot be used (the scheduler).
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

    Scrapy counts a crawl as failed when its crawler has no spider at the end; there is no public way.
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
        """Close the spider that cannot run.

        Not sooner: a component that asks for the end while Scrapy is still opening the others leaves them
        half open, and their closing is a traceback.
        """
        if has_failed(self._crawler):
            raise CloseSpider("bigcrawl_cannot_start")

    def leave_mark(self) -> None:
        """Leave the mark that Scrapy reads."""
        if has_failed(self._crawler):
            self._crawler.spider = None
