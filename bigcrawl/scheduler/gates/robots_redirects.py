"""Fetches robots.txt files and their redirects.

A redirect to another host borrows that host in Redis, which keeps its delay and its single connection.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING

from bigcrawl.clock import Patience
from bigcrawl.histogram import Histogram
from bigcrawl.politeness.robots_policy import REDIRECTS_MAX
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.scheduler.gates.closed import Closed
from bigcrawl.scheduler.gates.fetched import FetchedBody, asked_rest_ms
from bigcrawl.url.canonical import host_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.scheduler.crawl.joined_crawl import JoinedCrawl
    from bigcrawl.scheduler.gates.fetched import Fetch
    from bigcrawl.scheduler.gates.starts import FetchStarts
    from bigcrawl.scheduler.gates.ways_out import NotesFetches
    from bigcrawl.scheduler.records.passage import Space

BORROW_TRIES_MAX = 30
BORROW_WAIT_MS_MAX = 2_000
BORROW_GATES_MS_MAX = 5_000
BORROW_AHEAD_MS_MAX = 10_000  # starts further ahead are not awaited while a host is borrowed


class RobotsRedirects:
    def __init__(
        self,
        crawl: JoinedCrawl,
        starts: FetchStarts,
        fetch: Fetch,
        gaps: NotesFetches,
        record_answer: Callable[[int | None, int], None],
    ) -> None:
        """`record_answer` takes each status, None without an answer, and the size of the body."""
        self._crawl = crawl.config.crawl.name
        self._node = crawl.config.crawl.node
        self._policy = crawl.config.politeness
        self._client = crawl.client
        self._clock = crawl.clock
        self._starts = starts
        self._fetch = fetch
        self._partition_of_host = crawl.partition_of_host
        self._shared_hosts = starts.shared_hosts
        self._gaps = gaps
        self._record_answer = record_answer
        self._arrivals = crawl.arrivals
        self.fetched = 0
        self.answered = 0
        self.times = Histogram()

    async def fetch(self, url: str, host: str, gaps: tuple[Space, ...], like: bytes = b"") -> FetchedBody:
        """Fetch a URL of a held host, and its redirects, as `Fetch` says."""
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
        host = host_of(url)
        keys = partition_keys(self._crawl, self._partition_of_host(host))
        ticket = f"{self._node}:{uuid.uuid4().hex}"  # two authorities may redirect to the same file
        if not await self._borrow_host(keys, host, ticket):
            return FetchedBody(None)
        rest_ms = self._policy.host_delay_ms
        is_held = False
        try:
            async with Patience(BORROW_GATES_MS_MAX / 1000):
                if self._shared_hosts.are_kept:
                    await self._shared_hosts.hold_host(host)
                    is_held = True
                gaps = await self._starts.wait_for_start(host, self._clock.monotonic_ms(), url)
            fetched = await self._fetch_once(url, gaps, like)
            rest_ms = max(rest_ms, asked_rest_ms(fetched, self._clock.now_ms(), self._policy.retry_after_max_ms))
            return fetched
        except Closed as closed:
            if closed.error is not None:
                raise
            return FetchedBody(None)
        except TimeoutError:
            return FetchedBody(None)
        finally:
            if is_held:
                self._shared_hosts.leave_host(host, rest_ms)
            await self._client.run([scripts.return_host(keys, host, ticket, rest_ms)])
            self._arrivals.note(keys.partition)

    async def _borrow_host(self, keys: PartitionKeys, host: str, ticket: str) -> bool:
        deadline_ms = self._policy.fetch_deadline_ms + BORROW_GATES_MS_MAX
        call = scripts.borrow_host(keys, host, ticket, BORROW_AHEAD_MS_MAX, deadline_ms)
        for _ in range(BORROW_TRIES_MAX):
            [(lent, wait_ms)] = await self._client.run([call])
            if lent:
                await asyncio.sleep(wait_ms / 1000)
                return True
            await asyncio.sleep(min(wait_ms, BORROW_WAIT_MS_MAX) / 1000)
        return False


def _target_of(fetched: FetchedBody) -> str:
    is_redirect = fetched.status is not None and 300 <= fetched.status < 400
    return fetched.location if is_redirect else ""
