"""Keeps a node to its share of the crawl's speed, by permits that Redis grants a few times a second."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from typing import TYPE_CHECKING

from bigcrawl.exceptions import ConfigError
from bigcrawl.politeness.start_permits import ASK_MS, HORIZON_MS, NO_PLAN, Speed, SpeedPlan, StartPermits
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.gates.interfaces import Fetch, FetchedBody
    from bigcrawl.scheduler.records.at_gates import Space

logger = logging.getLogger(__name__)

AHEAD_S = 1.0  # URLs that start later are not taken, because they would occupy their hosts
WAKE_MS_MIN = 2.0
# A refused node asks again after at most this time, or this part of the time between two starts: meanwhile another node
# may have given permits back.
REFUSED_MS_MAX, REFUSED_PART_MAX = 1_000, 1 / 4
REFUSED_ALONE_MS_MAX = 10_000
ASK_SOON_MS = 40  # after something to fetch has come


def plan_of(text: str, zone: str, where: str = "BIGCRAWL_SPEED") -> SpeedPlan:
    """Return the plan that a text describes, as `parse_speed`, which is imported only if there is one."""
    if not text and zone == "UTC":
        return NO_PLAN
    from bigcrawl.politeness.speed_words import parse_speed

    return parse_speed(text, zone, where)


class SpeedControl:
    def __init__(self, config: Config, client: RedisClient, clock: Clock, wake: Callable[[], None]) -> None:
        """`wake` is called when a fetch may start. Raises ConfigError for a bad plan or time zone."""
        self._keys = CrawlKeys(config.crawl.name)
        self._zone = config.pace.time_zone
        self._of_settings = plan_of(config.pace.speed, self._zone)
        self._client = client
        self._clock = clock
        self._stored: bytes | None = None  # overrides the settings
        self._ahead_ms = clock.now_ms() - clock.monotonic_ms()  # the crawl's clock minus the monotonic one
        self._permits = StartPermits()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._paid = 0  # robots.txt fetches that have a permit and have not begun
        self._alarm: asyncio.TimerHandle | None = None
        self._asked_ms = 0
        self._refused_until_ms = 0.0
        self.plan: SpeedPlan = self._of_settings
        self.limits = False
        self._wake = wake
        self._follow_plan()

    @property
    def speed(self) -> Speed:
        return self._permits.speed

    def record_time(self, now_ms: int) -> None:
        self._ahead_ms = now_ms - self._clock.monotonic_ms()

    def adopt_plan(self, text: bytes | None) -> None:
        """Adopt the speed plan in Redis, or that of the settings if it is None. An unreadable plan is ignored."""
        if text != self._stored:
            self._stored = text
            try:
                self.plan = self._of_settings if text is None else self._parse_plan(text)
            except (ConfigError, UnicodeDecodeError) as fault:
                logger.warning("%(fault)s; the speed stays as it is", {"fault": fault})
        self._follow_plan()

    def _parse_plan(self, text: bytes) -> SpeedPlan:
        return plan_of(text.decode(), self._zone, "the crawl's speed")

    def _follow_plan(self) -> None:
        speed = self.plan.at(self._clock.monotonic_ms() + self._ahead_ms)
        if not self._permits.set_speed(speed):
            return
        self.limits = speed.is_limited
        self._asked_ms = 0
        self._refused_until_ms = 0.0
        logger.info("speed: %(speed)s", {"speed": speed})
        if not self.limits:
            self._release_waiters()
            self._wake()

    def may_start(self, now_ms: int) -> bool:
        """Return whether a page may start. Waiting robots.txt fetches go first."""
        return self._permits.may_start(now_ms) and not self._waiters

    def wake_later(self, now_ms: int) -> None:
        wait_ms = self._permits.wait_ms(now_ms)
        if self._alarm is None and wait_ms is not None:
            delay_s = max(WAKE_MS_MIN, wait_ms + 1) / 1000
            self._alarm = asyncio.get_running_loop().call_later(delay_s, self._wake_waiting)

    def record_start(self) -> None:
        self._permits.use_permit()

    def record_ended(self, body_bytes: int) -> None:
        self._permits.record_ended(body_bytes)

    async def wait_for_permit(self) -> None:
        """Wait until a robots.txt may be fetched. The next such fetch uses the permit."""
        if not self.limits:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._serve_waiters()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            raise
        self._paid += 1

    def with_permits(self, fetch: Fetch) -> Fetch:
        """Make fetches of robots.txt and heads use permits; each redirect waits for another one."""

        async def paced_fetch(
            url: str, method: str = "GET", gaps: tuple[Space, ...] = (), like: bytes = b""
        ) -> FetchedBody:
            if self._paid:
                self._paid -= 1
            elif self.limits:
                self._permits.record_debt()
            fetched = await fetch(url, method, gaps, like)
            if self.limits:
                self._permits.record_ended(len(fetched.body))
            return fetched

        return paced_fetch

    def _serve_waiters(self) -> None:
        now_ms = self._clock.monotonic_ms()
        while self._waiters and self._permits.may_start(now_ms):
            waiter = self._waiters.popleft()
            if not waiter.done():
                self._permits.use_permit()
                waiter.set_result(None)
        if self._waiters:
            self.wake_later(now_ms)

    def _release_waiters(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def _wake_waiting(self) -> None:
        self._alarm = None
        self._serve_waiters()
        self._wake()

    def room(self, ahead: int) -> int:
        if self.speed.is_paused:
            return 0
        return max(0, math.ceil(1000 * AHEAD_S / self._permits.step_ms) + 1 - ahead)

    @property
    def refused_s(self) -> float:
        """Return for how long no permit can be granted; negative if one can be requested now."""
        return (self._refused_until_ms - self._clock.monotonic_ms()) / 1000

    @property
    def is_refused(self) -> bool:
        return self.refused_s > 0

    @property
    def waiting_long(self) -> int:
        """How many fetches of robots.txt are waiting while no permit is granted."""
        return len(self._waiters) if self.is_refused and not len(self._permits) else 0

    def wants_permits(self, ready: int) -> bool:
        if not self.limits or self.is_refused:
            return False
        wait_ms = ASK_SOON_MS if not len(self._permits) and ready + len(self._waiters) else ASK_MS
        return self._clock.monotonic_ms() - self._asked_ms >= wait_ms

    async def request_permits(self, ready: int, nodes: int) -> None:
        self._asked_ms = self._clock.monotonic_ms()
        permits, speed = self._permits, self.speed
        wanted = permits.wanted_permits(self._asked_ms, ready + len(self._waiters))
        debt_us = round(permits.take_debt_bytes() / speed.body_bytes * 1e6) if 0 < speed.body_bytes < math.inf else 0
        given_back = permits.take_given_back()
        if speed.is_paused or not (wanted or given_back or debt_us):
            return
        call = scripts.grant_starts(
            self._keys,
            page_us=round(1000 * permits.page_ms),
            bytes_us=round(1000 * permits.bytes_ms),
            debt_us=debt_us,
            wanted=wanted,
            share=math.ceil(ASK_MS / permits.step_ms / max(1, nodes)),
            given_back=given_back,
            horizon_ms=HORIZON_MS,
        )
        [starts] = await self._client.run([call])
        if speed != self.speed:
            return
        now_ms = self._clock.monotonic_ms()
        if wanted and not starts.granted:
            ahead_ms = (starts.first_us - starts.now_us) / 1000 - HORIZON_MS
            others_ms = max(REFUSED_MS_MAX, REFUSED_PART_MAX * permits.step_ms) if nodes > 1 else math.inf
            self._refused_until_ms = now_ms + min(REFUSED_ALONE_MS_MAX, others_ms, ahead_ms)
        permits.grant(now_ms + (starts.first_us - starts.now_us) / 1000, starts.step_us / 1000, starts.granted)
        self._serve_waiters()
        self._wake()
