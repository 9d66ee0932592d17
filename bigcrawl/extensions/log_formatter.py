"""How Scrapy logs single pages: a page that cannot be fetched is an outcome, not an error of the crawl."""

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
    """Scrapy's, except that failed downloads, which are counted and kept as outcomes, are logged at DEBUG.

    Failures other than those of host or network, an exception of a middleware for instance, remain ERRORs.
    """

    def download_error(
        self, failure: Failure, request: Request, spider: Spider, errmsg: str | None = None
    ) -> LogFormatterResult:
        entry = super().download_error(failure, request, spider, errmsg)
        if failure.value is not None and error_outcome(failure.value) != "error:other":
            entry["level"] = logging.DEBUG
        return entry
