"""The time of the crawls on a Redis, as a node estimates it. Setting a clock does not change it (decision 0025).

The node advances the time by its boot clock, and asks Redis for it every second (`tell_time`). Small differences are
followed. A large one means that a clock was set or stood still; the script decides which clock. The moments of question
and answer bound the offset to the boot clock, and show how long Redis is known to have run, and so which writes it
keeps.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bigcrawl.clock import Clock

logger = logging.getLogger(__name__)

ASK_EVERY_MS = 1_000
STEP_MS = 1_000

GAP_MS_MAX: Final = 500

FORGETTABLE_MS: Final = 3_000
"""What Redis may forget: AOF everysec loses up to two seconds; the rest allows for two gaps."""


class CrawlClock:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset_ms: int | None = None
        self._ask_ms = 0

    @property
    def is_known(self) -> bool:
        return self._offset_ms is not None

    @property
    def is_due(self) -> bool:
        return self._offset_ms is not None and self._clock.monotonic_ms() >= self._ask_ms

    def monotonic_ms(self) -> int:
        return self._clock.monotonic_ms()

    def boot_ms(self) -> int:
        """Return the boot clock, for `record_time`, and schedule the next question to Redis."""
        now_ms = self._clock.monotonic_ms()
        self._ask_ms = now_ms + ASK_EVERY_MS
        return now_ms

    def now_ms(self) -> int:
        return 0 if self._offset_ms is None else self._clock.monotonic_ms() + self._offset_ms

    def agrees(self, time_ms: int, sent_ms: int) -> bool:
        """Return whether an answer to a question sent at `sent_ms` is within a step plus its travel time."""
        least_ms, most_ms = time_ms - self._clock.monotonic_ms(), time_ms - sent_ms
        return self._offset_ms is None or least_ms - STEP_MS <= self._offset_ms <= most_ms + STEP_MS

    def record_time(self, time_ms: int, sent_ms: int) -> None:
        least_ms, most_ms = time_ms - self._clock.monotonic_ms(), time_ms - sent_ms
        before_ms = most_ms if self._offset_ms is None else self._offset_ms
        self._offset_ms = min(max(before_ms, least_ms), most_ms)


class TimeChecks:
    """Corrects the estimate of the time; `ask(correct)` returns Redis's time and by how many ms its clock was set."""

    def __init__(self, clock: CrawlClock, ask: Callable[[bool], Awaitable[tuple[int, int]]]) -> None:
        self._clock = clock
        self._ask = ask
        self._asking = asyncio.Lock()

    async def learn_time(self) -> None:
        sent_ms = self._clock.boot_ms()
        time_ms, _ = await self._ask(False)
        self._clock.record_time(time_ms, sent_ms)

    async def check_time(self) -> None:
        clock = self._clock
        async with self._asking:
            if not clock.is_due:
                return
            sent_ms = clock.boot_ms()
            time_ms, set_ms = await self._ask(False)
            if not clock.agrees(time_ms, sent_ms):
                sent_ms = clock.boot_ms()
                time_ms, set_ms = await self._ask(True)
            clock.record_time(time_ms, sent_ms)
        if set_ms:
            logger.warning(
                "the clock of Redis was set by %(seconds).1f s; the crawl keeps its own time",
                {"seconds": set_ms / 1000},
            )


class RunningTime:
    """Adds up the running time of one server, or of all masters; a restart subtracts `FORGETTABLE_MS`."""

    def __init__(self, clock: CrawlClock) -> None:
        self._clock = clock
        self.known_ms = 0
        self._most_ms = 0
        self._asked_ms = self._answered_ms = 0
        self._is_recovering = False

    def record_answer(self, asked_ms: int) -> None:
        if asked_ms < self._answered_ms:
            return
        if not self._is_recovering:
            self.known_ms += min(asked_ms - self._asked_ms, GAP_MS_MAX)
        self._asked_ms, self._answered_ms = asked_ms, self._clock.monotonic_ms()

    def record_restart(self) -> None:
        self._is_recovering = True
        self._most_ms = max(self._most_ms, self.known_ms)
        self.known_ms = self._most_ms - FORGETTABLE_MS

    def record_recovery(self) -> None:
        self._is_recovering = False
