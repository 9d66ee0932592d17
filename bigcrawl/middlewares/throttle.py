"""Keeps delays per host and server on Scrapy's own scheduler: a downloader middleware, for this process only.

    DOWNLOADER_MIDDLEWARES = {"bigcrawl.middlewares.throttle.ThrottleMiddleware": 950}
    SCHEDULER_PRIORITY_QUEUE = "bigcrawl.middlewares.polite_queue.PoliteQueue"

Order 950 puts it behind all middlewares that may answer instead of the network. A request waits for a free connection
to its host, the end of the host's rest, and the delay of its server. A host that fails too often in a row is retired.
See docs/alone.md.
"""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest

from bigcrawl.clock import Clock, SystemClock
from bigcrawl.config import read_config
from bigcrawl.middlewares.polite_queue import has_polite_queue
from bigcrawl.middlewares.standalone import PutBack, claim_place, host_of_url, register_throttle
from bigcrawl.politeness.addresses import server_of
from bigcrawl.politeness.backoff_policy import OVERLOADED, BackoffPolicy, DelayPolicy, is_failure, retry_after_ms
from bigcrawl.politeness.dns_cache import DnsError
from bigcrawl.politeness.dns_shared import choose_dns, shared_dns
from bigcrawl.politeness.host_schedule import HostSchedule, ServerGaps
from bigcrawl.scheduler.adapter.fetch_errors import error_outcome
from bigcrawl.stats_buffer import StatsBuffer

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from bigcrawl.config import PolitenessConfig

logger = logging.getLogger(__name__)

LOOK_MS = 500
"""The interval at which a waiting request checks whether the crawl stops."""


class HostRetiredError(IgnoreRequest):
    """The request's host failed too often in a row."""


@dataclass(eq=False, slots=True)
class _WaitingTurn:
    host: str
    started_ms: int


class ThrottleMiddleware:
    def __init__(self, crawler: Crawler, policy: PolitenessConfig, clock: Clock | None = None) -> None:
        self._crawler = crawler
        self._clock = clock or SystemClock()
        self._agent = policy.agent
        self._failures_max = policy.host_failures_max
        self._rests = HostSchedule(
            DelayPolicy(policy.host_delay_ms, policy.crawl_delay_max_ms, policy.download_factor, policy.slow_after_ms),
            connections=policy.host_connections,
            backoff=BackoffPolicy(policy.backoff_first_ms, policy.backoff_longest_ms, failures_max=self._failures_max),
        )
        self._retry_after_max_ms = policy.retry_after_max_ms
        self._connections = policy.host_connections
        self._gaps = ServerGaps(policy.server_delay_ms) if policy.server_delay_ms else None
        self._put_back = PutBack(crawler)
        self._stats_buffer = StatsBuffer(crawler)
        self._turns: dict[Request, _WaitingTurn] = {}
        self._fetched: WeakSet[Request] = WeakSet()  # until their answer is judged
        self._ends: dict[str, asyncio.Event] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = read_config(crawler.settings)
        claim_place(crawler, "ThrottleMiddleware", "the frontier keeps hosts and servers apart")
        choose_dns(config.dns)
        throttle = cls(crawler, config.politeness)
        register_throttle(crawler, throttle)
        crawler.signals.connect(throttle.request_left_downloader, signals.request_left_downloader)
        crawler.signals.connect(throttle.robots_parsed, signals.robots_parsed)
        logger.info(
            "Delays of hosts and servers are kept within this process only; other processes do not know about them"
        )
        if not has_polite_queue(crawler):
            logger.warning(
                "Requests that wait for their host's delay count towards CONCURRENT_REQUESTS; "
                "SCHEDULER_PRIORITY_QUEUE = 'bigcrawl.middlewares.polite_queue.PoliteQueue' keeps them in the scheduler"
            )
        return throttle

    async def process_request(self, request: Request) -> Request | None:
        host = host_of_url(request.url)
        if host is None:
            return None
        turn = await self._turn_of(request, host)
        if turn is None:
            return self._put_back.put_back(request)
        try:
            has_started = await self._wait_for_server(request, host)
        except BaseException:
            self._end_turn(request)
            raise
        if not has_started:
            self._end_turn(request)
            return self._put_back.put_back(request)
        turn.started_ms = self._clock.monotonic_ms()
        return None

    def process_response(self, request: Request, response: Response) -> Response:
        host = self._host_to_judge(request)
        if host is not None:
            if response.status in OVERLOADED:
                self._record_failure(host, self._requested_wait_ms(response))
            else:
                self._rests.record_answer(host)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        host = self._host_to_judge(request)
        if host is not None and is_failure(error_outcome(exception)):
            self._record_failure(host, 0)

    def request_left_downloader(self, request: Request) -> None:
        """End the host's turn: the fetch is over, whatever other middlewares do with it."""
        if request in self._turns:
            self._end_turn(request)
            self._fetched.add(request)

    def robots_parsed(self, robotparser: Any, request: Request) -> None:
        host = host_of_url(request.url)
        if host is not None:
            seconds = robotparser.crawl_delay(self._agent)
            self.ask_delay(host, None if seconds is None else round(float(seconds) * 1000))

    def ask_delay(self, host: str, crawl_delay_ms: int | None) -> None:
        self._rests.ask_delay(host, crawl_delay_ms)

    def rest_until(self, host: str, due_ms: int) -> None:
        self._rests.rest_until(host, due_ms)

    def due_ms(self, host: str) -> int | None:
        if self._rests.is_retired(host):
            return 0
        due_ms = self._rests.due_ms(host)
        if due_ms is None:
            self._end_forgotten(host)
            due_ms = self._rests.due_ms(host)
        return due_ms

    @property
    def connections(self) -> int:
        return self._connections

    def now_ms(self) -> int:
        return self._clock.monotonic_ms()

    async def _turn_of(self, request: Request, host: str) -> _WaitingTurn | None:
        """Wait for the host's turn and return it; None if the crawl stops first."""
        while not self._rests.is_retired(host):
            if self._put_back.is_closing():
                return None
            now_ms = self._clock.monotonic_ms()
            due_ms = self._rests.due_ms(host)
            if due_ms is None:
                await self._until_end(host)
            elif due_ms > now_ms:
                await asyncio.sleep(min(due_ms - now_ms, LOOK_MS) / 1000)
            else:
                self._rests.record_start(host, now_ms)
                turn = self._turns[request] = _WaitingTurn(host, now_ms)
                return turn
        self._stats_buffer.inc_value("bigcrawl/alone/retired")
        raise HostRetiredError(f"{request.url} is not fetched: its host failed {self._failures_max} times in a row")

    async def _until_end(self, host: str) -> None:
        end = self._ends.setdefault(host, asyncio.Event())
        try:
            async with asyncio.timeout(LOOK_MS / 1000):
                await end.wait()
        except TimeoutError:
            self._end_forgotten(host)

    def _end_forgotten(self, host: str) -> None:
        """End the turns of requests that never reached the downloader, because a later middleware took them."""
        active = self._crawler.engine.downloader.active
        forgotten = [request for request, turn in self._turns.items() if turn.host == host and request not in active]
        for request in forgotten:
            self._end_turn(request)

    async def _wait_for_server(self, request: Request, host: str) -> bool:
        # A proxy resolves the host's name; here that may not even be possible.
        if self._gaps is None or request.meta.get("proxy"):
            return True
        server = await _server_of(host)
        if server is None:
            return True
        start_ms = self._gaps.grant(server, self._clock.monotonic_ms())
        while (wait_ms := start_ms - self._clock.monotonic_ms()) > 0:
            if self._put_back.is_closing():
                return False
            await asyncio.sleep(min(wait_ms, LOOK_MS) / 1000)
        return True

    def _end_turn(self, request: Request) -> None:
        turn = self._turns.pop(request)
        now_ms = self._clock.monotonic_ms()
        self._rests.record_end(turn.host, now_ms, now_ms - turn.started_ms)
        end = self._ends.pop(turn.host, None)
        if end is not None:
            end.set()

    def _host_to_judge(self, request: Request) -> str | None:
        """Return the host of a request that was fetched from it; None if a cache, for instance, answered."""
        if request in self._turns:  # a later middleware handled it
            self._end_turn(request)
        if request not in self._fetched:
            return None
        self._fetched.discard(request)
        return host_of_url(request.url)

    def _requested_wait_ms(self, response: Response) -> int:
        names = (b"Retry-After", b"Date")
        value, date = ((response.headers.get(name) or b"").decode("latin-1") for name in names)
        return retry_after_ms(value, date, self._clock.now_ms(), self._retry_after_max_ms)

    def _record_failure(self, host: str, asked_ms: int) -> None:
        rest_ms = self._rests.record_failure(host, self._clock.monotonic_ms(), random.random(), asked_ms)
        self._stats_buffer.inc_value("bigcrawl/alone/back_off")
        logger.debug("%(host)s rests for %(rest).0f s", {"host": host, "rest": rest_ms / 1000})
        if self._rests.is_retired(host):
            logger.warning(
                "%(host)s failed %(failures)d times in a row and gets no more requests from this process",
                {"host": host, "failures": self._failures_max},
            )


async def _server_of(host: str) -> str | None:
    try:
        found = await shared_dns().lookup(host)
    except DnsError:
        return None
    return server_of(found[0])
