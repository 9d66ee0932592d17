"""Requests that a page needs beside its own, such as its scripts, sent as politely as pages are.

Those to the page's host belong to the page's turn: nobody else has the host until the page ends. They are sent one by
one, each after the host's delay, and the host rests from the last of them on. Any other host is borrowed for a single
request, which keeps its delay and its one connection over all nodes. All of them obey robots.txt, the guard of
addresses, gates, blacklist and speed, and carry the crawl's user agent. Their answers are stored like pages. Redirects
are left to the caller.

A node that has such requests opens no lanes: there a host's next page would not wait for them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from scrapy.exceptions import IgnoreRequest
from scrapy.http.request import NO_CALLBACK

from bigcrawl.scheduler.adapter.engine_probe import EngineProbe
from bigcrawl.scheduler.adapter.fetch_errors import UNDER_LEASE, FetchAbortedError
from bigcrawl.scheduler.adapter.registry import frontier_of
from bigcrawl.scheduler.gates.interfaces import Closed, FetchedBody, asked_rest_ms
from bigcrawl.scheduler.gates.starts import HostLoan
from bigcrawl.url.canonical import UrlError, authority_of, canonicalize, host_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from bigcrawl.scheduler.adapter.frontier import Frontier
    from bigcrawl.scheduler.gates.robots_store import KnownRules
    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.at_gates import Space
    from bigcrawl.scheduler.records.held import HeldUrl

_META: Final[dict[str, Any]] = {
    "dont_retry": True,
    "dont_redirect": True,
    "dont_merge_cookies": True,
    "dont_cache": True,
    "dont_obey_robotstxt": True,  # it is obeyed here
    "allow_offsite": True,
    "handle_httpstatus_all": True,
    "verbatim_url": True,
    "download_warnsize": 0,
}


class PageRequestRefusedError(IgnoreRequest):
    """A further request of a page is not sent, because of robots.txt, its address, or a busy host."""


class PageRequests:
    """Makes the turns of pages; one object per crawler, made before its spider opens."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._probe = EngineProbe(crawler)

    @property
    def are_ending(self) -> bool:
        return self._probe.is_closing()

    def begin(self) -> None:
        """Open no lanes from now on; call this when the spider is open."""
        frontier = frontier_of(self._crawler)
        if frontier is not None and frontier.node is not None:
            frontier.node.handout.lanes.disable()

    def turn_of(self, page: Request) -> PageTurn | None:
        """Return the turn of a request that was handed out; None for any other."""
        frontier = frontier_of(self._crawler)
        held = frontier.started.held_of(page) if frontier is not None else None
        if frontier is None or frontier.node is None or held is None:
            return None
        return PageTurn(self._crawler, frontier, frontier.node, held)

    def abort(self, page: Request) -> FetchAbortedError:
        """Return the error that sends a fetched page back to its queue."""
        error = FetchAbortedError(f"{page.url}: the node stops")
        frontier = frontier_of(self._crawler)
        if frontier is not None:
            frontier.started.record_failure(page, error, 0)
        return error


class PageTurn:
    """The time during which a page holds its host. Call `end` before the page ends."""

    def __init__(self, crawler: Crawler, frontier: Frontier, node: Node, held: HeldUrl) -> None:
        self._crawler = crawler
        self._frontier = frontier
        self._node = node
        self._gates = node.parts.gates
        self._clock = node.crawl.clock
        self._retry_after_max_ms = node.config.politeness.retry_after_max_ms
        self._held = held
        self._host_is_used = asyncio.Lock()
        self._is_over = False

    async def fetch(self, request: Request) -> Response:
        """Return the answer to a request, of any status.

        Raises:
            PageRequestRefusedError: it may not be sent, or its host could not be borrowed in time.
            Exception: it was sent and failed, as a download fails.
        """
        try:
            url = canonicalize(request.url)
        except UrlError as error:
            raise PageRequestRefusedError(str(error)) from error
        host, authority = host_of(url), authority_of(url)
        if self._gates.aside.blacklist.of_canonical(host, url) is not None:
            raise PageRequestRefusedError(f"{url} is blacklisted")
        known = self._gates.robots.known_rules(authority)
        if known is not None:
            _require_allowed(known, url)
        try:
            if host == self._held.host:
                return await self._fetch_on_own_host(request, url, authority)
            return await self._fetch_on_other_host(request, url, authority)
        except Closed as closed:
            raise closed.error or PageRequestRefusedError(f"{url} is not fetched: {closed}") from closed

    async def end(self) -> None:
        """Send nothing more to the page's host, and wait for the current request there."""
        self._is_over = True
        async with self._host_is_used:
            return

    async def _fetch_on_own_host(self, request: Request, url: str, authority: str) -> Response:
        host, robots = self._held.host, self._gates.robots
        async with self._host_is_used:
            known = robots.known_rules(authority)
            if known is None:  # of another port or scheme of the host
                loan = HostLoan(await self._wait_for_turn(url), 0)
                try:
                    known = await robots.learn_rules(authority, loan)
                finally:
                    self._held.stop_fetching(self._clock.monotonic_ms())
            _require_allowed(known, url)
            gaps = await self._wait_for_turn(url)
            try:
                response = await self._send(request, host, gaps)
            finally:
                self._held.stop_fetching(self._clock.monotonic_ms())
            if asked_ms := self._requested_wait_ms(response):
                self._held.record_answer(asked_ms)
            return response

    async def _wait_for_turn(self, url: str) -> tuple[Space, ...]:
        due_ms = self._held.answered_ms + self._node.handout.ends.rest_after(self._held)
        gaps: tuple[Space, ...] | None = None
        while gaps is None and not self._is_over:
            try:
                gaps = await self._gates.starts.wait_for_start(self._held.host, due_ms, url)
            except Closed as closed:
                if closed.error is not None or closed.reason or closed.is_aside:
                    raise
                await asyncio.sleep(closed.retry_ms / 1000)
        if gaps is None or self._is_over:
            raise PageRequestRefusedError(f"{url} is not fetched: its page is over")
        return gaps

    async def _fetch_on_other_host(self, request: Request, url: str, authority: str) -> Response:
        robots, host = self._gates.robots, host_of(url)
        known = robots.known_rules(authority)
        if known is None:
            async with self._gates.loans.borrow(host, url) as loan:
                if loan is None:
                    raise PageRequestRefusedError(f"the host {host} is busy or closed")
                known = robots.known_rules(authority) or await robots.learn_rules(authority, loan)
            _require_allowed(known, url)
        async with self._gates.loans.borrow(host, url) as loan:
            if loan is None:
                raise PageRequestRefusedError(f"the host {host} is busy or closed")
            loan.rest_at_least(max(robots.rest_ms(authority), self._node.handout.paces.host_delay_ms(host)))
            response = await self._send(request, host, loan.gaps)
            loan.rest_at_least(self._requested_wait_ms(response))
            return response

    async def _send(self, request: Request, host: str, gaps: tuple[Space, ...]) -> Response:
        responses: list[Response] = []

        async def fetch(url: str, method: str = "GET", gaps: tuple[Space, ...] = (), like: bytes = b"") -> FetchedBody:
            meta = {**_META, **request.meta, UNDER_LEASE: gaps}
            sent = request.replace(meta=meta, callback=NO_CALLBACK, dont_filter=True, priority=1000)
            responses.append(await self._crawler.engine.download_async(sent))
            return FetchedBody(responses[0].status, responses[0].body)

        speed = self._node.handout.speed
        await speed.wait_for_permit()
        with self._node.handout.host_gaps.fetching_from(host):
            await speed.with_permits(fetch)(request.url, request.method, gaps)
        return responses[0]

    def _requested_wait_ms(self, response: Response) -> int:
        retry_after, date = (
            (response.headers.get(name) or b"").decode("latin-1") for name in (b"Retry-After", b"Date")
        )
        answer = FetchedBody(response.status, retry_after=retry_after, date=date)
        return asked_rest_ms(answer, self._clock.now_ms(), self._retry_after_max_ms)


def _require_allowed(known: KnownRules, url: str) -> None:
    if not known.rules.is_allowed(url):
        raise PageRequestRefusedError(f"{url} is forbidden by robots.txt")
