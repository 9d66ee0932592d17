"""Passes spider output to the frontier. Spiders wait only here, while the outbox is full."""

from __future__ import annotations

import asyncio
import inspect
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard

from scrapy import Request
from scrapy.exceptions import CloseSpider

from bigcrawl.config import read_config
from bigcrawl.downloads.unread import unread_of
from bigcrawl.exceptions import BigcrawlError, ConfigError, RequestNotStorableError
from bigcrawl.links import PageLimits, set_page_limits
from bigcrawl.links.page import LinkBatch
from bigcrawl.middlewares.link_checks import link_checks_of
from bigcrawl.middlewares.page_directives import PageDirectives
from bigcrawl.middlewares.spider_output import simplify_output
from bigcrawl.politeness.robots_policy import agent_token
from bigcrawl.scheduler.adapter.registry import frontier_of, notes_of
from bigcrawl.stats_buffer import StatsBuffer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from bigcrawl.links import LeftOut, Links
    from bigcrawl.scheduler.adapter.frontier import Frontier
    from bigcrawl.scheduler.handout.observers import PageLinks

logger = logging.getLogger(__name__)

PORTION = 1_000

SITEMAPS_METHOD = "parse_sitemap_urls"
"""The spider's method that receives the sitemaps of each robots.txt: `(self, urls, robots_url)`."""


class LinksMiddleware:
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._stats_buffer = StatsBuffer(crawler)
        self._unread = unread_of(crawler)
        self._checks = link_checks_of(crawler)
        config = read_config(crawler.settings)
        set_page_limits(
            PageLimits(
                config.limits.page_bytes_max,
                config.limits.page_links_max,
                config.limits.page_link_bytes_max,
                config.frontier.url_bytes_max,
            )
        )
        self._depth_max = crawler.settings.getint("DEPTH_LIMIT")
        self._drops_copy_links = config.crawl.drops_copy_links
        self._obeys_nofollow = config.politeness.obey_nofollow
        self._agent = agent_token(config.politeness.agent)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        frontier = frontier_of(self._crawler)
        if frontier is None:
            async for output in start:
                yield output
            return
        simplify_output(self._crawler)
        try:
            self._checks.check_spider()
            await self._checks.prepare()
        except ConfigError as error:
            frontier.fail(error)
            raise CloseSpider("bigcrawl_failed") from error
        if hasattr(self._spider, SITEMAPS_METHOD):
            frontier.start.tell_sitemaps(self._sitemaps_found)
        if not await frontier.start.claim():
            return
        try:
            async for output in start:
                await frontier.flow.wait_for_room()
                if _is_batch(output):
                    await self._offer_links(frontier, output, None, starts=True)
                elif isinstance(output, Request):
                    if not self._checks.drops_request(output, starts=True):
                        frontier.intake.record_start_request(output)
                        yield output
                else:
                    yield output
        except BigcrawlError as error:
            frontier.fail(error)
            raise CloseSpider("bigcrawl_failed") from error
        except Exception:
            await frontier.start.give_up()
            raise
        await frontier.start.end()

    def process_spider_input(self, response: Response) -> None:
        frontier = frontier_of(self._crawler)
        if frontier is not None:
            frontier.started.record_running(response.request)
            frontier.started.record_page(response)

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        frontier = frontier_of(self._crawler)
        if frontier is None:
            async for output in result:
                yield output
            return
        directives = PageDirectives(self._agent, response)
        frontier.started.record_running(response.request)
        noted_by = frontier.intake.links_of(response.request)
        has_items = False
        is_copy = self._drops_copy_links and self._is_copy(response)
        async for output in result:
            await frontier.flow.wait_for_room()
            if is_copy and isinstance(output, LinkBatch | Request):
                links = len(output.urls) if _is_batch(output) else 1
                self._stats_buffer.inc_value("bigcrawl/dropped/copy", links)
            elif _is_batch(output):
                await self._offer_links(frontier, self._followed_links(output, directives), response, noted_by=noted_by)
            elif self._obeys_nofollow and isinstance(output, Request) and directives.forbids_request(output):
                self._count_dropped("nofollow")
            elif isinstance(output, Request):
                if not self._checks.drops_request(output, response.url):
                    address = _address_of(response) if frontier.intake.notes_servers else ""
                    frontier.intake.record_found(output, response.url, noted_by, address)
                    yield output
            else:
                has_items = True
                yield output
            frontier.started.record_running(response.request)
        _end_recorders(noted_by)
        if not has_items:
            frontier.started.record_parsed(response.request)
        if directives.is_noteworthy and response.request is not None:
            notes = notes_of(self._crawler)
            if notes is not None:
                notes.record_page(response.request, directives.fields())

    def _is_copy(self, response: Response) -> bool:
        """Return whether another page of the same PLD has this body; copies on other PLDs do not count."""
        if "rendered" in response.flags:
            return False
        notes, request = notes_of(self._crawler), response.request
        original = notes.original_of(request) if notes is not None and request is not None else ""
        return original not in ("", response.url) and self._checks.share_pld(original, response.url)

    def _followed_links(self, links: Links, directives: PageDirectives) -> Links:
        directives.record_links(links)
        if not self._obeys_nofollow:
            return replace(links, urls=[*links.urls, *links.nofollow]) if links.nofollow else links
        if directives.closes_all:
            self._stats_buffer.inc_value("bigcrawl/dropped/nofollow", len(links.urls) + len(links.nofollow))
            return replace(links, urls=[])
        if links.nofollow:
            self._stats_buffer.inc_value("bigcrawl/dropped/nofollow", len(links.nofollow))
        return links

    async def _sitemaps_found(self, robots_url: str, urls: list[str]) -> None:
        frontier = frontier_of(self._crawler)
        if frontier is None:
            return
        self._stats_buffer.inc_value("bigcrawl/sitemaps/found", len(urls))
        try:
            async for output in _iterate_output(getattr(self._spider, SITEMAPS_METHOD)(urls, robots_url)):
                if _is_batch(output):
                    await self._offer_links(frontier, output, None, found_at=robots_url)
                elif isinstance(output, Request):
                    self._crawler.engine.crawl(output)
                elif output is not None:
                    kind = type(output).__name__
                    logger.error(
                        "%(method)s yielded a %(kind)s, which is neither links nor a request",
                        {"method": SITEMAPS_METHOD, "kind": kind},
                    )
        except Exception:
            logger.exception("%(method)s failed for %(url)s", {"method": SITEMAPS_METHOD, "url": robots_url})

    @property
    def _spider(self) -> Any:
        return self._crawler.spider

    async def _offer_links(
        self,
        frontier: Frontier,
        links: Links,
        response: Response | None,
        *,
        found_at: str = "",
        starts: bool = False,
        noted_by: Iterable[PageLinks] = (),
    ) -> None:
        """Offer a batch in portions, waiting for room before each; start URLs even while discovery is off."""
        if any(links.left_out):
            self._count_left_out(links.left_out, response)
        depth = 0 if response is None else int(response.meta.get("depth", 0)) + 1
        if self._depth_max and depth > self._depth_max:
            self._stats_buffer.inc_value("bigcrawl/dropped/depth", len(links.urls))
            if links.urls and response is not None and response.request is not None:
                frontier.started.record_unread_page(response.request, "depth")
            return
        self._stats_buffer.inc_value("bigcrawl/links/found", len(links.urls))
        page = "" if response is None else response.url
        address = _address_of(response) if frontier.intake.notes_servers else ""
        for portion in _divide_links(links):
            if portion is not links:
                await asyncio.sleep(0)
                await frontier.flow.wait_for_room()
            urls = [*self._checks.canonical_urls(portion, found_at or page, starts=starts)]
            try:
                offered = frontier.intake.offer_links(
                    portion, urls, depth, page, starts=starts, noted_by=noted_by, address=address
                )
            except RequestNotStorableError as error:
                if starts:
                    raise  # which ends the crawl, with this error
                frontier.intake.refuse_links(links, urls, error)
                continue
            self._stats_buffer.inc_value("bigcrawl/links/sent", offered)
        if links.modified:
            frontier.intake.record_modified(links.modified, found_at or page)

    def _count_left_out(self, left_out: LeftOut, response: Response | None) -> None:
        if left_out.too_long:
            self._stats_buffer.inc_value("bigcrawl/dropped/url-too-long", left_out.too_long)
        request, record_unread = getattr(response, "request", None), self._unread.record_unread
        if left_out.is_cut:
            record_unread(request, "page-bytes")
        if left_out.has_more_links:
            record_unread(request, "page-links")
        if left_out.has_longer_links:
            record_unread(request, "page-link-bytes")
        if left_out.limit:
            record_unread(request, left_out.limit)

    def _count_dropped(self, reason: str) -> None:
        self._stats_buffer.inc_value(f"bigcrawl/dropped/{reason}")


def _is_batch(output: object) -> TypeGuard[Links]:
    return isinstance(output, LinkBatch)


def _end_recorders(noted_by: Iterable[PageLinks]) -> None:
    for noted in noted_by:
        noted.end()


def _divide_links(links: Links) -> Iterator[Links]:
    if len(links.urls) <= PORTION:
        yield links
        return
    for at in range(0, len(links.urls), PORTION):
        yield replace(links, urls=links.urls[at : at + PORTION])


async def _iterate_output(result: Any) -> AsyncIterator[Any]:
    """Iterate over the output of a spider's method: None, an iterable, an async iterator or a coroutine."""
    if inspect.isawaitable(result):
        result = await result
    if hasattr(result, "__aiter__"):
        async for output in result:
            yield output
    elif isinstance(result, LinkBatch | Request):
        yield result
    else:
        for output in result or ():
            yield output


def _address_of(response: Response | None) -> str:
    """Return the address of a page's server; empty if unknown, as behind a proxy."""
    if response is None or response.ip_address is None or response.meta.get("proxy"):
        return ""
    return str(response.ip_address)
