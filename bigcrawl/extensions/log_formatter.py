"""What Scrapy logs of single pages: one that cannot be fetched is an outcome, and no error of the crawl."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.logformatter import LogFormatter as ScrapysFormatter

from bigcrawl.scheduler.adapter.fetch_errors import error_outcome

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure


class LogFormatter(ScrapysFormatter):
    """Scrapy's, but for downloads that failed: they are counted and kept as outcomes, and logged at DEBUG.

    What is no failure of host or network, an exception of a middleware for instance, stays an ERROR.
    """

    def download_error(
        self, failure: Failure, request: Request, spider: Spider, errmsg: str | None = None
    ) -> LogFormatterResult:
        said = super().download_error(failure, request, spider, errmsg)
        if failure.value is not None and error_outcome(failure.value) != "error:other":
            said["level"] = logging.DEBUG
        return said
