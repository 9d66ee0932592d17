"""Fetches robots.txt files and their redirects. Another host is borrowed in Redis, which keeps its delay."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bigcrawl.histogram import Histogram
from bigcrawl.politeness.robots_policy import REDIRECTS_MAX
from bigcrawl.scheduler.gates.interfaces import Closed, Fetch, FetchedBody, NotesFetches, asked_rest_ms
from bigcrawl.scheduler.gates.starts import BORROW_AHEAD_MS_MAX, FetchStarts, HostLoans
from bigcrawl.url.canonical import host_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.scheduler.crawl.joined_crawl import JoinedCrawl
    from bigcrawl.scheduler.records.at_gates import Space


class RobotsRedirects:
    def __init__(
        self,
        crawl: JoinedCrawl,
        starts: FetchStarts,
        loans: HostLoans,
        fetch: Fetch,
        gaps: NotesFetches,
        record_answer: Callable[[int | None, int], None],
    ) -> None:
        """`record_answer` gets each status, None without an answer, and the size of the body."""
        self._policy = crawl.config.politeness
        self._clock = crawl.clock
        self._starts = starts
        self._fetch = fetch
        self._loans = loans
        self._gaps = gaps
        self._record_answer = record_answer
        self.fetched = 0
        self.answered = 0
        self.times = Histogram()

    async def fetch(self, url: str, host: str, gaps: tuple[Space, ...], like: bytes = b"") -> FetchedBody:
        """Fetch a held host's URL and follow redirects, with the result and errors of `Fetch`."""
        for hop in range(REDIRECTS_MAX + 1):
            fetched = await self._fetch_once(url, gaps, like)
            target = _target_of(fetched)
            if not target or hop == REDIRECTS_MAX:
                break
            url = target
            if host_of(url) != host:
                return await self._follow_elsewhere(url, REDIRECTS_MAX - hop - 1, like)
            hop_gaps = await self._wait_for_hop(host, url)
            if hop_gaps is None:
                return FetchedBody(None)
            gaps = hop_gaps
        return fetched

    async def _fetch_once(self, url: str, gaps: tuple[Space, ...], like: bytes) -> FetchedBody:
        since_ms = self._clock.monotonic_ms()
        self.fetched += 1
        with self._gaps.fetching_from(host_of(url)):
            fetched = await self._fetch(url, "GET", gaps, like)
        self._record_answer(fetched.status, len(fetched.body))
        self.answered += fetched.status is not None
        self.times.count_ms(self._clock.monotonic_ms() - since_ms)
        return fetched

    async def _wait_for_hop(self, host: str, url: str) -> tuple[Space, ...] | None:
        await asyncio.sleep(self._policy.host_delay_ms / 1000)
        try:
            return await self._starts.wait_for_start(host, self._clock.monotonic_ms(), url)
        except Closed as closed:
            if closed.reason or closed.is_aside or closed.retry_ms > BORROW_AHEAD_MS_MAX:
                return None
            await asyncio.sleep(closed.retry_ms / 1000)
            return await self._starts.wait_for_start(host, self._clock.monotonic_ms(), url)

    async def _follow_elsewhere(self, url: str, hops: int, like: bytes) -> FetchedBody:
        for _ in range(hops + 1):
            fetched = await self._fetch_borrowed(url, like)
            target = _target_of(fetched)
            if not target:
                break
            url = target
        return fetched

    async def _fetch_borrowed(self, url: str, like: bytes) -> FetchedBody:
        async with self._loans.borrow(host_of(url), url) as loan:
            if loan is None:
                return FetchedBody(None)
            try:
                fetched = await self._fetch_once(url, loan.gaps, like)
            except Closed as closed:
                if closed.error is not None:
                    raise
                return FetchedBody(None)
            asked_ms = asked_rest_ms(fetched, self._clock.now_ms(), self._policy.retry_after_max_ms)
            loan.rest_at_least(asked_ms)
            return fetched


def _target_of(fetched: FetchedBody) -> str:
    is_redirect = fetched.status is not None and 300 <= fetched.status < 400
    return fetched.location if is_redirect else ""
