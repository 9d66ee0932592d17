"""Where a crawler's components find each other; Scrapy discourages attributes added to a Crawler."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary, ref

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy import Request
    from scrapy.crawler import Crawler

    from bigcrawl.scheduler.scheduler import Scheduler


PROXIES_KEPT = 10_000


class PageStorage(Protocol):
    """What keeps the crawl's pages."""

    def is_flushed(self) -> bool:
        """Whether it takes pages; while it does not, nothing is fetched or acknowledged."""

    @property
    def pages(self) -> int:
        """How many pages, and notes of them, it was given so far."""

    @property
    def safe_pages(self) -> int:
        """How many of them are safe, the first ones; a URL is acknowledged when it has ended before that."""

    def note_page(self, request: Request, fields: Mapping[str, str]) -> None:
        """Keep what has been found out of the page that answered a request."""


class Feeds(Protocol):
    """What keeps the crawl's items."""

    @property
    def is_stuck(self) -> bool:
        """Whether it takes no more; while it does not, nothing is to be fetched."""

    def flush(self) -> bool:
        """Make safe what was given so far, before the pages it came from are acknowledged; False: they must not be."""


_frontiers: WeakKeyDictionary[Crawler, ref[Scheduler]] = WeakKeyDictionary()
_storages: WeakKeyDictionary[Crawler, ref[PageStorage]] = WeakKeyDictionary()
_feeds: WeakKeyDictionary[Crawler, ref[Feeds]] = WeakKeyDictionary()
_proxies: OrderedDict[str, None] = OrderedDict()
_failed: WeakKeyDictionary[Crawler, bool] = WeakKeyDictionary()


def register(crawler: Crawler, frontier: Scheduler) -> None:
    """Make `frontier` the crawler's."""
    _frontiers[crawler] = ref(frontier)


def frontier_of(crawler: Crawler) -> Scheduler | None:
    """The crawler's frontier; None when it runs on another scheduler."""
    found = _frontiers.get(crawler)
    return found() if found else None


def is_crawling() -> bool:
    """Whether any crawler of this process runs on a frontier, and not only `scrapy shell` and its like."""
    return len(_frontiers) > 0


def note_proxy(host: str) -> None:
    """Remember a proxy of the operator's: it may well stand inside the network that is closed to pages."""
    _proxies[host] = None
    if len(_proxies) > PROXIES_KEPT:
        _proxies.popitem(last=False)


def is_proxy(host: str) -> bool:
    """Whether a host was noted as a proxy."""
    return host in _proxies


def refusal(found: Sequence[str]) -> str | None:
    """Why a connection to a host with these addresses is refused, by the frontiers of this process; None if not."""
    for held in list(_frontiers.values()):
        frontier = held()
        reason = frontier.guard.refusal(found) if frontier is not None else None
        if reason is not None:
            return reason
    return None


def register_storage(crawler: Crawler, storage: PageStorage) -> None:
    """Make `storage` the keeper of the crawler's pages."""
    _storages[crawler] = ref(storage)


def storage_of(crawler: Crawler) -> PageStorage | None:
    """The crawler's page storage; None when it stores no pages."""
    found = _storages.get(crawler)
    return found() if found else None


def register_feeds(crawler: Crawler, feeds: Feeds) -> None:
    """Make `feeds` the keeper of the crawler's items."""
    _feeds[crawler] = ref(feeds)


def feeds_of(crawler: Crawler) -> Feeds | None:
    """The crawler's feeds; None when it has none."""
    found = _feeds.get(crawler)
    return found() if found else None


def mark_failed(crawler: Crawler) -> None:
    """Note that the crawl ends because of an error; `scrapy crawl` shall exit with 1."""
    _failed[crawler] = True


def has_failed(crawler: Crawler) -> bool:
    """Whether `mark_failed` was called."""
    return _failed.get(crawler, False)
