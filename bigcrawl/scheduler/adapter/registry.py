"""Where a crawler's components find each other, because Scrapy discourages attributes on a Crawler."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary, ref

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from bigcrawl.scheduler.adapter.frontier import Frontier
    from bigcrawl.scheduler.records.held_urls import Feeds, PageStorage


PROXIES_KEPT = 10_000


class PageNotes(Protocol):
    def record_page(self, request: Request, fields: Mapping[str, str]) -> None: ...

    def record_conversion(self, request: Request, content_type: str, body: bytes) -> None: ...

    def original_of(self, request: Request) -> str:
        """Return the URL of a page with the same status and body, if known."""


class PageJudge(Protocol):
    def eliminates(self, request: Request, response: Response) -> bool:
        """Return whether an answer, as it was downloaded, is to leave no trace."""


_frontiers: WeakKeyDictionary[Crawler, ref[Frontier]] = WeakKeyDictionary()
_last: tuple[ref[Crawler], ref[Frontier]] | None = None  # registered; asked for ten times a page
_storages: WeakKeyDictionary[Crawler, ref[PageStorage]] = WeakKeyDictionary()
_notes: WeakKeyDictionary[Crawler, ref[PageNotes]] = WeakKeyDictionary()
_feeds: WeakKeyDictionary[Crawler, ref[Feeds]] = WeakKeyDictionary()
_judges: WeakKeyDictionary[Crawler, ref[PageJudge]] = WeakKeyDictionary()
_proxies: OrderedDict[str, None] = OrderedDict()
_failed: WeakKeyDictionary[Crawler, bool] = WeakKeyDictionary()


def register(crawler: Crawler, frontier: Frontier) -> None:
    global _last  # noqa: PLW0603 - a look into the dictionary takes eight times as long
    _frontiers[crawler] = ref(frontier)
    _last = ref(crawler), _frontiers[crawler]


def frontier_of(crawler: Crawler) -> Frontier | None:
    if _last is not None and _last[0]() is crawler:
        return _last[1]()
    found = _frontiers.get(crawler)
    return found() if found else None


def is_crawling() -> bool:
    """Return whether a crawler of this process runs on a frontier; false in `scrapy shell`."""
    return len(_frontiers) > 0


def record_proxy(host: str) -> None:
    _proxies[host] = None
    if len(_proxies) > PROXIES_KEPT:
        _proxies.popitem(last=False)


def is_proxy(host: str) -> bool:
    return host in _proxies


def connection_refusal(found: Sequence[str]) -> str | None:
    """Return why a frontier of this process refuses a connection to these addresses, if one does."""
    for held in list(_frontiers.values()):
        frontier = held()
        reason = frontier.guard.refusal(found) if frontier is not None else None
        if reason is not None:
            return reason
    return None


def register_storage(crawler: Crawler, storage: PageStorage) -> None:
    _storages[crawler] = ref(storage)


def storage_of(crawler: Crawler) -> PageStorage | None:
    found = _storages.get(crawler)
    return found() if found else None


def register_notes(crawler: Crawler, notes: PageNotes) -> None:
    _notes[crawler] = ref(notes)


def notes_of(crawler: Crawler) -> PageNotes | None:
    found = _notes.get(crawler)
    return found() if found else None


def register_feeds(crawler: Crawler, feeds: Feeds) -> None:
    _feeds[crawler] = ref(feeds)


def feeds_of(crawler: Crawler) -> Feeds | None:
    found = _feeds.get(crawler)
    return found() if found else None


def register_judge(crawler: Crawler, judge: PageJudge) -> None:
    _judges[crawler] = ref(judge)


def judge_of(crawler: Crawler) -> PageJudge | None:
    found = _judges.get(crawler)
    return found() if found else None


def mark_failed(crawler: Crawler) -> None:
    _failed[crawler] = True


def has_failed(crawler: Crawler) -> bool:
    return _failed.get(crawler, False)
