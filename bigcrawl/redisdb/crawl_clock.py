"""The time of the crawls on a Redis, as one node estimates it. Setting a clock does not change it (decision 0025).

The node asks Redis for the time once, and then advances it by its own boot clock. Once a second it asks again
(`tell_time`) and compares. It follows small differences. A large difference means that one of the two clocks was set,
or stood still. The script decides which, and the node adopts its answer.

    offset = time of the crawls - boot clock
    the moments of sending a question and of receiving its answer bound the offset from both sides
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bigcrawl.clock import Clock

logger = logging.getLogger(__name__)

ASK_EVERY_MS = 1_000
STEP_MS = 1_000
"""A difference above this is neither drift nor a slow answer: a clock was set."""


class CrawlClock:
    """A node's estimate of the crawls' time, in ms since the epoch."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset_ms: int | None = None
        self._ask_ms = 0  # on the boot clock

    def __repr__(self) -> str:
        return f"<CrawlClock offset_ms={self._offset_ms}>"

    @property
    def is_known(self) -> bool:
        """Whether Redis has ever answered."""
        return self._offset_ms is not None

    @property
    def is_due(self) -> bool:
        """Whether to ask Redis again. False before its first answer."""
        return self._offset_ms is not None and self._clock.monotonic_ms() >= self._ask_ms

    def monotonic_ms(self) -> int:
        """Return the node's own clock."""
        return self._clock.monotonic_ms()

    def boot_ms(self) -> int:
        """Return the node's own clock, for `note`, and schedule the next question."""
        now_ms = self._clock.monotonic_ms()
        self._ask_ms = now_ms + ASK_EVERY_MS
        return now_ms

    def now_ms(self) -> int:
        """Return the estimate; 0 before Redis has answered."""
        return 0 if self._offset_ms is None else self._clock.monotonic_ms() + self._offset_ms

    def agrees(self, time_ms: int, sent_ms: int) -> bool:
        """Whether an answer that has just arrived, to a question sent at `sent_ms`, differs by less than a step.

        The time that question and answer were under way is allowed for.
        """
        least_ms, most_ms = time_ms - self._clock.monotonic_ms(), time_ms - sent_ms
        return self._offset_ms is None or least_ms - STEP_MS <= self._offset_ms <= most_ms + STEP_MS

    def note(self, time_ms: int, sent_ms: int) -> None:
        """Adjust the estimate to an answer that has just arrived, to a question sent at `sent_ms` of the boot clock."""
        least_ms, most_ms = time_ms - self._clock.monotonic_ms(), time_ms - sent_ms
        before_ms = most_ms if self._offset_ms is None else self._offset_ms
        self._offset_ms = min(max(before_ms, least_ms), most_ms)


class TimeChecks:
    """Keeps an estimate right by questions to Redis, one at a time.

    Args:
        clock: the estimate.
        ask: asks Redis, and lets it correct the time if the argument is true. Returns the time, and by how many ms the
            server's clock was set.
    """

    def __init__(self, clock: CrawlClock, ask: Callable[[bool], Awaitable[tuple[int, int]]]) -> None:
        self._clock = clock
        self._ask = ask
        self._asking = asyncio.Lock()

    async def learn(self) -> None:
        """Ask for the first time."""
        sent_ms = self._clock.boot_ms()
        time_ms, _ = await self._ask(False)
        self._clock.note(time_ms, sent_ms)

    async def check(self) -> None:
        """Ask whether the time is still right, if that is due."""
        clock = self._clock
        async with self._asking:
            if not clock.is_due:  # another task has asked while this one waited
                return
            sent_ms = clock.boot_ms()
            time_ms, set_ms = await self._ask(False)
            if not clock.agrees(time_ms, sent_ms):
                sent_ms = clock.boot_ms()
                time_ms, set_ms = await self._ask(True)
            clock.note(time_ms, sent_ms)
        if set_ms:
            logger.warning(
                "the clock of Redis was set by %(seconds).1f s; the crawl keeps its own time",
                {"seconds": set_ms / 1000},
            )
