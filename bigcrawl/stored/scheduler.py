"""Scrapy's scheduler for stored pages, which the middlewares also see as the frontier.

Pages are given in the order of the crawl. The next page waits until the engine has finished the one before (or the
oldest of BIGCRAWL_SOURCE_CONCURRENCY), because only then are all links of that page known. So each page goes to the
same request as in the crawl. Where pages were parsed together, the order of their links was chance. So among requests
made at about the same time, the one is chosen whose URL, depth and Referer are stored with the page.

No page is given while the spider makes its start requests, unless it makes none for a second: it might be waiting for a
page. Nothing is saved: a stopped run starts again from the beginning.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.core.scheduler import BaseScheduler
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.reactor import is_reactor_installed

from bigcrawl.config import read_config
from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.politeness.addresses import AddressGuard
from bigcrawl.scan import CODE
from bigcrawl.scheduler.adapter.drops import DroppedRequests
from bigcrawl.scheduler.adapter.engine_probe import EngineProbe
from bigcrawl.scheduler.adapter.live_requests import LiveRequests
from bigcrawl.scheduler.adapter.registry import feeds_of, mark_failed, register, register_notes
from bigcrawl.scheduler.adapter.request_codec import with_url
from bigcrawl.scheduler.adapter.shutdown import Shutdown
from bigcrawl.scheduler.adapter.spider_flow import SpiderFlow
from bigcrawl.scheduler.adapter.values.vocabulary import values_of
from bigcrawl.scheduler.node.loops.memory import tame_memory, untrack_async_generators
from bigcrawl.stats_buffer import StatsBuffer
from bigcrawl.stored.catalogue import URL_BYTES_MAX, read_catalogue
from bigcrawl.stored.files import source_files
from bigcrawl.stored.intake import SITEMAPS, GivenRequests, SitemapPassing, StoredIntake, StoredStart
from bigcrawl.stored.pages import PageReader, UnreadablePageError
from bigcrawl.stored.wanted import RequestedPages
from bigcrawl.url.canonical import UrlError, canonicalize
from bigcrawl.url.domain import PublicSuffixes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

    from bigcrawl.scheduler.adapter.spider_intake import SpiderIntake
    from bigcrawl.scheduler.adapter.spider_start import SpiderStart
    from bigcrawl.scheduler.adapter.started_requests import StartedRequests
    from bigcrawl.scheduler.crawl.survey import Survey
    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.stored.catalogue import PageCatalogue
    from bigcrawl.stored.pages import StoredPage
    from bigcrawl.stored.wanted import RequestedPage


class StoredCopies:
    def __init__(self) -> None:
        self._originals: WeakKeyDictionary[Request, str] = WeakKeyDictionary()

    def record_original(self, request: Request, page: StoredPage) -> None:
        if page.original_url:
            self._originals[request] = page.original_url

    def record_page(self, request: Request, fields: Mapping[str, str]) -> None:
        """Do nothing: the notes are in the crawl's files."""

    def record_conversion(self, request: Request, content_type: str, body: bytes) -> None:
        """Do nothing: the conversions are in the crawl's files."""

    def original_of(self, request: Request) -> str:
        """Return the URL of the page whose body answers this request; empty if the answer is not a copy."""
        return self._originals.get(request, "")


logger = logging.getLogger(__name__)

START_PATIENCE_S: Final = 1.0
UNASKED: Final = b""
_BODY: Final = b"\x93"  # the first byte of a request's body, which no template without a URL has


class StoredScheduler(BaseScheduler):
    node: Node | None = None
    last_survey: Survey | None = None
    is_resumed = False

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self.config = config = read_config(crawler.settings)
        self.guard = AddressGuard(config.politeness.allow_private_addresses, config.politeness.allow_addresses)
        self._probe = EngineProbe(crawler)
        self._shutdown = Shutdown(crawler, self._probe, 0, partial(mark_failed, crawler))
        self._drops = DroppedRequests(crawler, obeys_robots=False)
        self._limit = config.source.concurrency
        self._pages_max = config.crawl.pages_max or 1 << 62
        self._patience: asyncio.TimerHandle | None = None
        self._bytes_max = crawler.settings.getint("DOWNLOAD_MAXSIZE")
        self._stats_buffer = StatsBuffer(crawler)
        self._engines = GivenRequests(self._probe)
        self.flow = SpiderFlow(self._shutdown)
        self._start = StoredStart(self.flow, self._shutdown, has_all=config.source.has_all)
        self.start: SpiderStart = self._start
        self._asked = StoredIntake(config, self._engines, self._drops, self._start, crawler)
        self.started: StartedRequests = self._engines
        self.intake: SpiderIntake = self._asked
        self.copies = StoredCopies()
        self._telling = SitemapPassing(crawler, config.politeness.agent, self._probe.wake)
        self._suffixes: PublicSuffixes | None = None
        self._catalogue: PageCatalogue | None = None
        self._reader: PageReader | None = None
        self._live: LiveRequests | None = None
        self._wanted = RequestedPages(0)
        self._pages: WeakKeyDictionary[Request, StoredPage] = WeakKeyDictionary()
        self._reported: set[str] = set()
        self._unread: Counter[str] = Counter()
        self._given = 0
        self._began = monotonic()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        frontier = cls(crawler)
        register(crawler, frontier)
        register_notes(crawler, frontier.copies)
        return frontier

    @property
    def is_open(self) -> bool:
        return self._catalogue is not None

    def open(self, spider: Spider) -> Deferred[None]:
        return deferred_from_coro(self._open(spider))

    async def _open(self, spider: Spider) -> None:
        logger.info("links are read in %(code)s", {"code": CODE})
        source = self.config.source
        try:
            if hasattr(spider, "redis_key") and not source.has_all:
                raise ConfigError(
                    f"the spider {spider.name} takes its URLs from Redis, and BIGCRAWL_SOURCE is read without it: give "
                    "them as start_urls, or set BIGCRAWL_SOURCE_PAGES to all"
                )
            paths = source_files(source.pattern)
            self._catalogue = await asyncio.to_thread(read_catalogue, paths, source.until)
            self._suffixes = PublicSuffixes.bundled(private=self.config.crawl.private_suffixes)
            values = values_of(self.config, spider)
        except BigcrawlError as error:
            self.fail(error)
            return
        if self._catalogue.skipped:
            self._unread["skipped"] = self._catalogue.skipped
            self._stats_buffer.inc_value("bigcrawl/source/skipped", self._catalogue.skipped)
        self._reader = PageReader(self._catalogue, self._bytes_max)
        self._wanted = RequestedPages(len(self._catalogue))
        if source.has_all:
            self._wanted.request_all(self._catalogue.pages_but_robots(), UNASKED)
        assert self._crawler.stats is not None
        keeps = self.config.frontier.keeps_in_memory
        self._live = LiveRequests(spider, values, self._crawler.stats, keeps=keeps)
        self._engines.open(self._live)
        self._asked.open(self._catalogue, self._wanted, self._live)
        self._start.begin()
        logger.info(
            "%(pages)d stored pages in %(files)d files; nothing is fetched",
            {"pages": len(self._catalogue), "files": len(paths)},
        )
        tame_memory()
        if is_reactor_installed():
            untrack_async_generators()
        self._began = monotonic()

    def close(self, reason: str) -> Deferred[None]:
        return deferred_from_coro(self._close())

    async def _close(self) -> None:
        self._shutdown.end()
        self._telling.stop()
        if self._patience is not None:
            self._patience.cancel()
        if self._reader is None or self._catalogue is None:
            return
        self._reader.close()
        seconds = monotonic() - self._began
        logger.info(
            "%(given)d of %(pages)d stored pages were given to the spider in %(seconds).1f s, %(rate).0f pages/s"
            "%(unread)s",
            {
                "given": self._given,
                "pages": len(self._catalogue),
                "seconds": seconds,
                "rate": self._given / max(seconds, 1e-3),
                "unread": "".join(f"; not read, {reason}: {count:,}" for reason, count in sorted(self._unread.items())),
            },
        )
        if not len(self._catalogue) and not self._shutdown.has_failed:
            until = self.config.source.until
            logger.warning(
                "the files of BIGCRAWL_SOURCE have no page%(until)s; `scrapy frontier warc verify` checks them",
                {"until": f" from before the end of {until} (BIGCRAWL_SOURCE_TIME)" if until else ""},
            )
        elif not self._given and not self._shutdown.has_failed:
            logger.warning(
                "no page that the spider requested is stored: its start requests must be stored pages, or set "
                "BIGCRAWL_SOURCE_PAGES to all"
            )

    def fail(self, error: BigcrawlError) -> None:
        self._shutdown.fail(error)

    def pld_of(self, host: str) -> str:
        assert self._suffixes is not None, "it is open"
        return self._suffixes.pld(host)

    def has_pending_requests(self) -> bool:
        if not self.is_open or self._shutdown.has_failed:
            return False
        is_more_to_come = self._given < self._pages_max and (bool(self._wanted) or self._telling.is_under_way)
        return is_more_to_come or bool(self._engines) or self._engines.has_unqueued or self._is_stuck()

    def enqueue_request(self, request: Request) -> bool:
        return self.intake.enqueue(request)

    def next_request(self) -> Request | None:
        try:
            return self._next_stored()
        except Exception:
            logger.exception("bigcrawl could not pass a request to Scrapy's engine")
            return None

    def _next_stored(self) -> Request | None:
        self._engines.forget_ended()
        if (refused := self._engines.next_unqueued()) is not None:
            return refused
        if len(self._engines) >= self._limit or self._telling.is_under_way or self._probe.is_closing():
            return None
        if self._given >= self._pages_max or self._waits_for_start() or self._is_stuck():
            return None
        while (wanted := self._wanted.pop_first()) is not None:
            if wanted.template == SITEMAPS:
                if self._tell_sitemaps(wanted):
                    return None
                continue
            request = self._request_of(wanted)
            if request is not None:
                self._engines.record_handed_out(request)
                self._given += 1
                self._stats_buffer.inc_value("bigcrawl/source/pages")
                return request
        return None

    def _waits_for_start(self) -> bool:
        """Return whether the spider is still making start requests; if so, wake the engine in time."""
        left_s = self._asked.asked_at + START_PATIENCE_S - monotonic()
        if not self._start.is_under_way or left_s <= 0:
            return False
        if self._patience is None or self._patience.when() < asyncio.get_running_loop().time():
            self._patience = asyncio.get_running_loop().call_later(left_s, self._probe.wake)
        return True

    def _is_stuck(self) -> bool:
        """Return whether items wait in memory because the disk is full. Then no page is given."""
        feeds = feeds_of(self._crawler)
        return feeds is not None and feeds.is_stuck and not feeds.flush()

    def page_of(self, request: Request) -> StoredPage | None:
        page = self._pages.pop(request, None)
        if page is not None or self._catalogue is None:
            return page
        with suppress(UrlError):
            rank = self._catalogue.rank_of(canonicalize(request.url, URL_BYTES_MAX))
            page = self._read_page(rank) if rank >= 0 else None
            return self._that_answers(request, page) if page is not None else None
        return None

    def _request_of(self, wanted: RequestedPage) -> Request | None:
        page, live = self._read_page(wanted.rank), self._live
        if page is None or live is None:
            return None
        try:
            request = _request_for_page(wanted.template, page, live)
            if wanted.others and not is_for_page(request, page):
                others = (_request_for_page(template, page, live) for template in wanted.others)
                request = next((other for other in others if is_for_page(other, page)), request)
        except Exception as error:  # noqa: BLE001 - a spider's class or methods may raise anything
            self._drops.report_once("undecodable", f"{page.url} cannot be run by this spider: {error}")
            return None
        answer = self._that_answers(request, page)
        if answer is None:
            self._stats_buffer.inc_value("bigcrawl/source/not-stored")
            return None
        if self.config.source.has_all:  # links do not say how a page was found
            request.meta["depth"] = answer.depth or 0
        self._pages[request] = answer
        self.copies.record_original(request, answer)
        return request

    def _that_answers(self, request: Request, page: StoredPage) -> StoredPage | None:
        """Return the page, or another answer of its URL, whose request had the same method and body."""
        if page.method == request.method and page.request_body == request.body:
            return page
        assert self._catalogue is not None
        assert self._reader is not None
        for place in self._catalogue.answers(canonicalize(page.url, URL_BYTES_MAX)):
            with suppress(UnreadablePageError):
                other = self._reader.read_page(place)
                if other.method == request.method and other.request_body == request.body:
                    return other
        return None

    def _read_page(self, rank: int) -> StoredPage | None:
        assert self._catalogue is not None
        assert self._reader is not None
        place = self._catalogue.place_of_rank(rank)
        try:
            return self._reader.read_page(place)
        except UnreadablePageError as error:
            reason, message = error.reason, str(error)
        self._stats_buffer.inc_value(f"bigcrawl/source/{reason}")
        self._unread[reason] += 1
        if f"{reason} {place.path}" not in self._reported:
            self._reported.add(f"{reason} {place.path}")
            logger.error(
                "%(message)s; further pages of this file are counted as bigcrawl/source/%(reason)s. scrapy frontier "
                "warc verify shows the damage of a file",
                {"message": message, "reason": reason},
            )
        return None

    def _tell_sitemaps(self, wanted: RequestedPage) -> bool:
        page, tell = self._read_page(wanted.rank), self._start.tell
        if page is None or tell is None:
            return False
        self._telling.begin(page.url, tell)
        return True


def is_for_page(request: Request, page: StoredPage) -> bool:
    led = (request.meta.get("redirect_urls") or [""])[-1] or (request.headers.get(b"Referer") or b"").decode("latin-1")
    return request.url.partition("#")[0] == page.url and request.meta.get("depth", 0) == page.depth and led == page.via


def _request_for_page(template: bytes, page: StoredPage, live: LiveRequests) -> Request:
    if template == UNASKED:
        url = canonicalize(page.url, URL_BYTES_MAX)
        return Request(url, meta={"depth": page.depth or 0, "verbatim_url": True})
    if template.startswith(_BODY):
        return live.decode(template)
    return live.decode(with_url(canonicalize(page.url, URL_BYTES_MAX), template))
