"""Where a crawler's components find each other, because Scrapy discourages adding attributes to a Crawler."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary, ref

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy import Request
    from scrapy.crawler import Crawler

    from bigcrawl.scheduler.adapter.frontier import Frontier
    from bigcrawl.scheduler.records.page_storage import Feeds, PageStorage


PROXIES_KEPT = 10_000


class PageNotes(Protocol):
    """Keeps findings about pages."""

    def note_page(self, request: Request, fields: Mapping[str, str]) -> None:
        """Keep findings about the page that answered a request."""

    def original_of(self, request: Request) -> str:
        """The URL of a page with the status and body of the answer to a request; empty if none is known."""


_frontiers: WeakKeyDictionary[Crawler, ref[Frontier]] = WeakKeyDictionary()
_storages: WeakKeyDictionary[Crawler, ref[PageStorage]] = WeakKeyDictionary()
_notes: WeakKeyDictionary[Crawler, ref[PageNotes]] = WeakKeyDictionary()
_feeds: WeakKeyDictionary[Crawler, ref[Feeds]] = WeakKeyDictionary()
_proxies: OrderedDict[str, None] = OrderedDict()
_failed: WeakKeyDictionary[Crawler, bool] = WeakKeyDictionary()


def register(crawler: Crawler, frontier: Frontier) -> None:
    """Register the crawler's frontier."""
    _frontiers[crawler] = ref(frontier)


def frontier_of(crawler: Crawler) -> Frontier | None:
    """The crawler's frontier; None if it runs on another scheduler."""
    found = _frontiers.get(crawler)
    return found() if found else None


def is_crawling() -> bool:
    """Whether a crawler of this process runs on a frontier; one of `scrapy shell` and the like does not."""
    return len(_frontiers) > 0


def note_proxy(host: str) -> None:
    """Remember a proxy of the operator's, which may be inside the network that is closed to pages."""
    _proxies[host] = None
    if len(_proxies) > PROXIES_KEPT:
        _proxies.popitem(last=False)


def is_proxy(host: str) -> bool:
    """Whether the host was noted as a proxy."""
    return host in _proxies


def refusal(found: Sequence[str]) -> str | None:
    """Why the frontiers of this process refuse a connection to a host with these addresses; None if they do not."""
    for held in list(_frontiers.values()):
        frontier = held()
        reason = frontier.guard.refusal(found) if frontier is not None else None
        if reason is not None:
            return reason
    return None


def register_storage(crawler: Crawler, storage: PageStorage) -> None:
    """Register the storage of the crawler's pages."""
    _storages[crawler] = ref(storage)


def storage_of(crawler: Crawler) -> PageStorage | None:
    """The crawler's page storage; None if it stores no pages."""
    found = _storages.get(crawler)
    return found() if found else None


def register_notes(crawler: Crawler, notes: PageNotes) -> None:
    """Register what keeps findings about the crawler's pages."""
    _notes[crawler] = ref(notes)


def notes_of(crawler: Crawler) -> PageNotes | None:
    """What keeps findings about the crawler's pages; None if nothing does."""
    found = _notes.get(crawler)
    return found() if found else None


def register_feeds(crawler: Crawler, feeds: Feeds) -> None:
    """Register the feeds for the crawler's items."""
    _feeds[crawler] = ref(feeds)


def feeds_of(crawler: Crawler) -> Feeds | None:
    """The crawler's feeds; None if it has none."""
    found = _feeds.get(crawler)
    return found() if found else None


def mark_failed(crawler: Crawler) -> None:
    """Note that the crawl ends because of an error, so that `scrapy crawl` exits with 1."""
    _failed[crawler] = True


def has_failed(crawler: Crawler) -> bool:
    """Whether `mark_failed` was called."""
    return _failed.get(crawler, False)
