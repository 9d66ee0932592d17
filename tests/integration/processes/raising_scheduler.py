"""A scheduler that cannot be made."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from bigcrawl.scheduler.scheduler import Scheduler

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class RaisingScheduler(Scheduler):
    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NoReturn:
        raise RuntimeError(f"no scheduler for {crawler.spidercls.name}")
