"""How Scrapy logs single pages: a page that cannot be fetched is an outcome, not an error of the crawl.

Scrapy's loggers let every record through, and its handlers drop those below LOG_LEVEL. So for each page and item a
record would be made that nobody reads.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy.logformatter import LogFormatter as ScrapysFormatter

from bigcrawl.scheduler.adapter.fetch_errors import error_outcome

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure

_of_pages = logging.getLogger("scrapy.core.engine")
_of_items = logging.getLogger("scrapy.core.scraper")


class LogFormatter(ScrapysFormatter):
    """Scrapy's, except that failed downloads, which are counted and kept as outcomes, are logged at DEBUG.

    Failures other than those of host or network, an exception of a middleware for instance, remain ERRORs. There is no
    entry for a page or an item if no handler takes DEBUG. A class derived from this one always gets the entry, because
    it may raise the level.
    """

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
            entry["level"] = logging.DEBUG
        return entry

    def _is_unheard(self, logger: logging.Logger) -> bool:
        return type(self) is LogFormatter and not is_heard(logger, logging.DEBUG)


def is_heard(logger: logging.Logger, level: int) -> bool:
    """Whether a handler of the logger, or of those above it, takes records of a level. Cost: 1 us."""
    if not logger.isEnabledFor(level):
        return False
    at: logging.Logger | None = logger
    while at is not None:
        for handler in at.handlers:
            if handler.level <= level:
                return True
        at = at.parent if at.propagate else None
    return False
