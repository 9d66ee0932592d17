"""robots.txt by RFC 9309 on Scrapy's own scheduler: a downloader middleware, for this process only.

    DOWNLOADER_MIDDLEWARES = {
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
        "bigcrawl.middlewares.robots.RobotsMiddleware": 100,
    }

It replaces Scrapy's middleware, whatever ROBOTSTXT_OBEY says, and reads robots.txt files as the frontier does. Rules
expire and are fetched again. If a server fails, its last good copy applies; without one, all its pages are forbidden.
ThrottleMiddleware gets the Crawl-delay. If ThrottleMiddleware and PoliteQueue are active, requests wait for two more
tries when a robots.txt cannot be fetched; otherwise they end at once.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING, Self

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.misc import load_object

from bigcrawl.clock import Clock, SystemClock
from bigcrawl.config import read_config
from bigcrawl.middlewares.polite_queue import has_polite_queue
from bigcrawl.middlewares.standalone import canonical_of, claim_place, throttle_of
from bigcrawl.politeness.robots_cache import ATTEMPT_FIRST_MS, KeptRules, RobotsCache
from bigcrawl.politeness.robots_policy import REDIRECTS_MAX, agent_token, kept_ms, robots_url
from bigcrawl.scheduler.adapter.registry import frontier_of
from bigcrawl.scheduler.adapter.robots_fetch import ConnectionOptions, RobotsFetch, connection_of
from bigcrawl.scheduler.gates.interfaces import Closed, FetchedBody
from bigcrawl.stats_buffer import StatsBuffer
from bigcrawl.url.canonical import UrlError, authority_of, host_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from bigcrawl.config import PolitenessConfig

logger = logging.getLogger(__name__)

_MARK = "bigcrawl_robots"


class ForbiddenByRobotsError(IgnoreRequest):
    """A request ends unfetched because robots.txt forbids it, or could not be fetched."""


class RobotsMiddleware:
    attempt_first_ms = ATTEMPT_FIRST_MS
    refusal: type[IgnoreRequest] = ForbiddenByRobotsError

    def __init__(self, crawler: Crawler, policy: PolitenessConfig, clock: Clock | None = None) -> None:
        self._crawler = crawler
        self._clock = clock or SystemClock()
        self._cache = RobotsCache(agent_token(policy.agent), attempt_first_ms=self.attempt_first_ms)
        # A private key, kept by other middlewares.
        self._mark = object()
        self._fetch = RobotsFetch(crawler)
        self._connection_keys = policy.connection_keys
        self._stats_buffer = StatsBuffer(crawler)
        self._asked: dict[str, asyncio.Task[KeptRules]] = {}
        self._kept_min_ms = policy.robots_kept_min_ms
        self._has_queue = has_polite_queue(crawler)
        self._has_told_of_meta = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        policy = read_config(crawler.settings).politeness
        if not policy.obey_robots:
            raise NotConfigured("BIGCRAWL_ROBOTS says that these hosts are yours: robots.txt is not fetched")
        claim_place(crawler, "RobotsMiddleware", "the frontier obeys robots.txt")
        logger.info("robots.txt is obeyed and its rules are kept within this process")
        _warn_of_scrapys_own(crawler)
        return cls(crawler, policy)

    async def process_request(self, request: Request) -> Request | None:
        """Let a request pass if its authority's rules allow it."""
        if request.meta.get(_MARK) is self._mark:
            return None
        try:
            canonical = canonical_of(request.url)
        except UrlError as error:
            self._stats_buffer.inc_value("bigcrawl/alone/unreadable")
            raise ForbiddenByRobotsError(f"the host cannot be reached: {error}") from error
        if canonical is None:
            return None
        if request.meta.get("dont_obey_robotstxt"):
            self._warn_about_meta()
        authority = authority_of(canonical)
        known = self._known_rules(authority) or await self._learn_rules(authority, request)
        self._report_delay(host_of(canonical), known)
        if known.rules.is_allowed(request.url):
            return None
        if known.is_unreachable:
            return self._put_off(request, host_of(canonical), known)
        self._count_forbidden()
        raise self.refusal(f"{request.url} is forbidden by robots.txt")

    def _known_rules(self, authority: str) -> KeptRules | None:
        return self._cache.known_rules(authority, self._clock.monotonic_ms())

    def _count_forbidden(self) -> None:
        self._stats_buffer.inc_value("bigcrawl/alone/forbidden")

    async def _learn_rules(self, authority: str, request: Request) -> KeptRules:
        task = self._asked.get(authority)
        if task is None:
            task = asyncio.ensure_future(self._fetch_rules(authority, request))
            self._asked[authority] = task
        return await asyncio.shield(task)

    async def _fetch_rules(self, authority: str, request: Request) -> KeptRules:
        connection = connection_of(request, self._connection_keys)
        try:
            fetched = await self._fetch_following_redirects(robots_url(authority), connection)
        finally:
            del self._asked[authority]
        expires_in_ms = kept_ms(fetched.cache_control, fetched.age, least_ms=self._kept_min_ms)
        now_ms = self._clock.monotonic_ms()
        return self._cache.store_response(
            authority, fetched.status, fetched.body, now_ms, random.random(), expires_in_ms
        )

    async def _fetch_following_redirects(self, url: str, connection: ConnectionOptions) -> FetchedBody:
        fetched = await self._fetch_once(url, connection)
        for _ in range(REDIRECTS_MAX):
            if fetched.status is None or not 300 <= fetched.status < 400 or not fetched.location:
                break
            fetched = await self._fetch_once(fetched.location, connection)
        return fetched

    async def _fetch_once(self, url: str, connection: ConnectionOptions) -> FetchedBody:
        self._stats_buffer.inc_value("bigcrawl/alone/robots_fetched")
        try:
            return await self._fetch.fetch(url, more_meta={_MARK: self._mark}, connection=connection)
        except Closed as closed:
            raise closed.error or closed from None

    def _put_off(self, request: Request, host: str, known: KeptRules) -> Request:
        """Return a request to retry once its robots.txt may be reachable, or end it."""
        throttle = throttle_of(self._crawler)
        can_wait = self._has_queue and known.is_asked_again_soon and request.callback is not NO_CALLBACK
        if throttle is not None and can_wait:
            throttle.rest_until(host, known.expires_ms)
            self._stats_buffer.inc_value("bigcrawl/alone/put_off")
            return request.replace(dont_filter=True)
        self._stats_buffer.inc_value("bigcrawl/alone/unreachable")
        raise self.refusal(f"{request.url} is not fetched: its robots.txt cannot be fetched")

    def _report_delay(self, host: str, known: KeptRules) -> None:
        throttle = throttle_of(self._crawler)
        if throttle is not None:
            throttle.ask_delay(host, known.rules.crawl_delay_ms)

    def _warn_about_meta(self) -> None:
        if not self._has_told_of_meta:
            self._has_told_of_meta = True
            logger.warning("dont_obey_robotstxt has no effect; BIGCRAWL_ROBOTS decides whether robots.txt is obeyed")


class RobotsBesideFrontier(RobotsMiddleware):
    """Checks requests that bypass the frontier, with the frontier's rules in memory. A refusal is an IgnoreRequest."""

    refusal = IgnoreRequest

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler, read_config(crawler.settings).politeness)

    def _known_rules(self, authority: str) -> KeptRules | None:
        frontier = frontier_of(self._crawler)
        if frontier is not None and frontier.node is not None:
            known = frontier.node.parts.gates.robots.known_rules(authority)
            if known is not None:
                return KeptRules(known.rules, known.expires_ms, known.reason, known.attempts)
        return super()._known_rules(authority)

    def _count_forbidden(self) -> None:
        if (frontier := frontier_of(self._crawler)) is not None:
            frontier.intake.record_forbidden()


def _warn_of_scrapys_own(crawler: Crawler) -> None:
    """Warn if Scrapy's own robots middleware is on too: it does no harm, but fetches each robots.txt once more."""
    if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
        return
    table = crawler.settings.get_component_priority_dict_with_base("DOWNLOADER_MIDDLEWARES")
    if any(load_object(path) is RobotsTxtMiddleware for path, order in table.items() if order is not None):
        logger.warning(
            "Scrapy's RobotsTxtMiddleware is enabled too and fetches each robots.txt once more; set "
            "ROBOTSTXT_OBEY = False"
        )
