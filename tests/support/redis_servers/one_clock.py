"""The time of the crawls on the test's own clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.redisdb.crawl_clock import CrawlClock

if TYPE_CHECKING:
    from bigcrawl.redisdb.client import RedisClient


class OneClock(CrawlClock):
    """The time of the crawls, told by Redis once: from then on it is the test's clock that goes on."""

    @property
    def is_due(self) -> bool:
        return False


def ask_no_more(client: RedisClient) -> None:
    """Have a client that knows the time not ask again: once a second is, on a busy machine, among any round trips."""
    client._crawl_clock._ask_ms += 10**9
