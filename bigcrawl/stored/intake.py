from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.clock import SystemClock
from bigcrawl.politeness.robots_policy import REDIRECTS_MAX, agent_token, verdict_on_response
from bigcrawl.scheduler.adapter.request_codec import ONCE, jar_bytes, links_tail, tail_of
from bigcrawl.scheduler.adapter.robots_fetch import RobotsFetch
from bigcrawl.scheduler.adapter.spider_intake import SpiderIntake, check_methods
from bigcrawl.scheduler.adapter.spider_start import SpiderStart
from bigcrawl.scheduler.adapter.started_requests import StartedRequests
from bigcrawl.stats_buffer import StatsBuffer
from bigcrawl.stored.catalogue import ROBOTS_PATH
from bigcrawl.url.canonical import authority_of, canonicalize, join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scrapy import Request
    from scrapy.crawler import Crawler

    from bigcrawl.config import Config
    from bigcrawl.links import Links
    from bigcrawl.scheduler.adapter.drops import DroppedRequests
    from bigcrawl.scheduler.adapter.engine_probe import EngineProbe
    from bigcrawl.scheduler.adapter.live_requests import LiveRequests
    from bigcrawl.scheduler.adapter.shutdown import Shutdown
    from bigcrawl.scheduler.adapter.spider_flow import SpiderFlow
    from bigcrawl.scheduler.adapter.spider_start import Telling
    from bigcrawl.scheduler.handout.observers import PageLinks
    from bigcrawl.stored.catalogue import PageCatalogue
    from bigcrawl.stored.wanted import RequestedPages


class StoredStart(SpiderStart):
    """The start of a run over stored pages, without a claim; `tell` gets each stored robots.txt with its sitemaps."""

    def __init__(self, flow: SpiderFlow, shutdown: Shutdown, *, has_all: bool) -> None:
        """With `has_all`, the spider is given all pages and makes no start requests."""
        super().__init__(flow, shutdown)
        self._has_all = has_all
        self.is_under_way = False
        self.tell: Telling | None = None

    def begin(self) -> None:
        self.is_under_way = not self._has_all

    def tell_sitemaps(self, tell: Telling) -> None:
        self.tell = tell

    async def claim(self) -> bool:
        return not self._has_all

    async def end(self) -> None:
        self.is_under_way = False

    async def give_up(self) -> None:
        self.is_under_way = False


class GivenRequests(StartedRequests):
    def __init__(self, probe: EngineProbe) -> None:
        super().__init__(probe, SystemClock(), 0)
        self._given: dict[Request, None] = {}
        self._live: LiveRequests | None = None

    def __len__(self) -> int:
        return len(self._given)

    def open(self, live: LiveRequests) -> None:
        self._live = live

    @property
    def requests(self) -> list[Request]:
        return list(self._given)

    def record_handed_out(self, request: Request) -> None:
        self._given[request] = None

    def forget_ended(self) -> None:
        for request in [request for request in self._given if self._probe.has_ended(request)]:
            del self._given[request]
            if self._live is not None:
                self._live.end(request, comes_back=False)

    def is_handed_out(self, request: Request) -> bool:
        return request in self._given


SITEMAPS: Final = b"sitemaps"
"""The template for a robots.txt that is read for its sitemaps; no request has it."""


class StoredIntake(SpiderIntake):
    def __init__(
        self, config: Config, given: GivenRequests, drops: DroppedRequests, start: StoredStart, crawler: Crawler
    ) -> None:
        super().__init__(config, given, drops)
        self._start = start
        self._crawler = crawler
        self._given = given
        self._url_bytes = config.frontier.url_bytes_max
        self._stats_buffer = StatsBuffer(crawler)
        self._catalogue: PageCatalogue | None = None
        self._wanted: RequestedPages | None = None
        self._other_keys: set[int] = set()
        self._authorities: set[str] = set()
        self.asked_at = monotonic()

    def open(self, catalogue: PageCatalogue, wanted: RequestedPages, live: LiveRequests) -> None:
        self._catalogue, self._wanted, self._live = catalogue, wanted, live
        self.asked_at = monotonic()

    def offer_links(
        self,
        links: Links,
        urls: Iterable[str],
        depth: int,
        page: str = "",
        *,
        starts: bool = False,
        noted_by: Iterable[PageLinks] = (),
        address: str = "",
    ) -> int:
        """Request a batch of canonical URLs. Return how many are stored and were not requested before."""
        catalogue, wanted, live = self._catalogue, self._wanted, self._live
        if catalogue is None or wanted is None or live is None:
            return 0
        self.asked_at = monotonic()
        if links.callback or links.errback:
            check_methods(links, live)
        urls = list(dict.fromkeys(urls))
        self._ask_robots(urls)
        ranks = catalogue.ranks_of(urls)
        found = ranks[ranks >= 0].tolist()
        self._count_missing(len(urls) - len(found))
        return wanted.request_ranks(found, links_tail(links, depth, live.values))

    def take_request(self, request: Request) -> bool:
        catalogue, wanted, live = self._catalogue, self._wanted, self._live
        if catalogue is None or wanted is None or live is None:
            return False
        self.asked_at = monotonic()
        is_start = request in self._start_requests
        self._start_requests.discard(request)
        canonical = canonicalize(request.url, self._url_bytes)
        self._ask_robots((canonical,))
        rank = catalogue.rank_of(canonical)
        if rank < 0:
            self._count_missing(1)
            return False
        meta = request._meta or {}
        is_checked = is_start or not request.dont_filter or self._is_redirect(meta) or meta.get(ONCE) is not None
        jar = meta.get(ONCE) or (meta.get("cookiejar") if is_start else None)
        template = self._template_of(request, live, canonical)
        if is_checked and request.method == "GET" and not request.body and jar is None:
            return bool(wanted.request_ranks((rank,), template))
        key = catalogue.keys.of_request(canonical, request.method, request.body, jar_bytes(jar))
        if is_checked and key in self._other_keys:
            return False
        if is_checked:
            self._other_keys.add(key)
        wanted.request_again(rank, template)
        return True

    def _template_of(self, request: Request, live: LiveRequests, canonical: str) -> bytes:
        queued, _ = live.encode(request, key_of=self._key_of_nothing, checked=True, url_bytes_max=self._url_bytes)
        return tail_of(queued.body, request.url) if request.url == canonical else queued.body

    @staticmethod
    def _key_of_nothing(*_: object) -> Any:
        return 0

    def _is_redirect(self, meta: dict[str, Any]) -> bool:
        came_from = meta.get("redirect_urls")
        if not meta.get("redirect_times") or not came_from:
            return False
        return any(request.url == came_from[-1] for request in self._given.requests)

    def _ask_robots(self, urls: Iterable[str]) -> None:
        """Request the robots.txt of each authority, because the crawl fetched it before the pages."""
        if self._start.tell is None or self._catalogue is None or self._wanted is None:
            return
        for url in urls:
            authority = authority_of(url)
            if authority not in self._authorities:
                self._authorities.add(authority)
                rank = self._catalogue.rank_of(authority + ROBOTS_PATH)
                if rank >= 0:
                    self._wanted.request_again(rank, SITEMAPS)

    def _count_missing(self, count: int) -> None:
        if count:
            self._stats_buffer.inc_value("bigcrawl/source/not-stored", count)


logger = logging.getLogger(__name__)

_REDIRECT: Final = range(300, 400)


class SitemapPassing:
    """Passes sitemaps to a spider, one robots.txt after the other, and calls `wake` after each."""

    def __init__(self, crawler: Crawler, agent: str, wake: Callable[[], None]) -> None:
        self._fetch = RobotsFetch(crawler)
        self._agent = agent_token(agent)
        self._wake = wake
        self._task: asyncio.Task[None] | None = None

    @property
    def is_under_way(self) -> bool:
        return self._task is not None and not self._task.done()

    def begin(self, robots_url: str, tell: Telling) -> None:
        self._task = asyncio.ensure_future(self._pass_sitemaps(robots_url, tell))
        self._task.add_done_callback(lambda _: self._wake())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _pass_sitemaps(self, robots_url: str, tell: Telling) -> None:
        try:
            fetched = await self._fetch(robots_url)
            for _ in range(REDIRECTS_MAX):
                if fetched.status not in _REDIRECT or not fetched.location:
                    break
                fetched = await self._fetch(fetched.location)
            found = verdict_on_response(fetched.status, fetched.body, self._agent).sitemaps
            urls = [url for url in (join(robots_url, sitemap) for sitemap in found) if url is not None]
            if urls:
                await tell(robots_url, list(dict.fromkeys(urls)))
        except Exception:
            logger.exception("the sitemaps that %(url)s lists could not be read", {"url": robots_url})
