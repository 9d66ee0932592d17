"""The time of the crawls on the test's own clock."""

from __future__ import annotations

from bigcrawl.redisdb.crawl_clock import CrawlClock


class OneClock(CrawlClock):
    """The time of the crawls, told by Redis once: from then on it is the test's clock that goes on."""

    @property
    def is_due(self) -> bool:
        return False
