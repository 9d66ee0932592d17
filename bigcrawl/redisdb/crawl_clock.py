"""The time of the crawls on a Redis, as one node estimates it. Setting a clock does not change it (decision 0025).

The node asks Redis for the time once, and then advances it by its own boot clock. Once a second it asks again
(`tell_time`) and compares. It follows small differences. A large difference means that one of the two clocks was set,
or stood still. The script decides which, and the node adopts its answer.

    offset = time of the crawls - boot clock
    the moments of sending a question and of receiving its answer bound the offset from both sides
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigcrawl.clock import Clock

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
