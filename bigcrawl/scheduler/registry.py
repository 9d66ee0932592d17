"""Where a crawler's components find its frontier; Scrapy discourages attributes added to a Crawler."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, ref

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from bigcrawl.scheduler.scheduler import Scheduler

_frontiers: WeakKeyDictionary[Crawler, ref[Scheduler]] = WeakKeyDictionary()


def register(crawler: Crawler, frontier: Scheduler) -> None:
    """Make `frontier` the crawler's."""
    _frontiers[crawler] = ref(frontier)


def frontier_of(crawler: Crawler) -> Scheduler | None:
    """The crawler's frontier; None when it runs on another scheduler."""
    found = _frontiers.get(crawler)
    return found() if found else None


_failed: WeakKeyDictionary[Crawler, bool] = WeakKeyDictionary()


def mark_failed(crawler: Crawler) -> None:
    """Note that the crawl ends because of an error; `scrapy crawl` shall exit with 1."""
    _failed[crawler] = True


def has_failed(crawler: Crawler) -> bool:
    """Whether `mark_failed` was called."""
    return _failed.get(crawler, False)
