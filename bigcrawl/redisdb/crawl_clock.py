"""The time of the crawls on a Redis, as one node knows it: no setting of any clock changes it (decision 0025).

Redis' clock says what time it is, once; from then on the node's own boot clock carries that on. Once a second Redis is
asked again (`tell_time`), and the two are held to each other. Small differences are followed. A large one means that a
clock was set, or that one stood still: whose, the script decides, and what it answers counts.

    offset = time of the crawls - boot clock
    an answer that was under way between two moments bounds the offset from both sides
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigcrawl.clock import Clock

ASK_EVERY_MS = 1_000
STEP_MS = 1_000
"""A difference above this is no drift and no slow answer, but a clock that was set."""


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
        """Whether Redis, which has answered once, is to be asked again."""
        return self._offset_ms is not None and self._clock.monotonic_ms() >= self._ask_ms

    def boot_ms(self) -> int:
        """The node's own clock, for `note`; also the moment from which the next question is counted."""
        now_ms = self._clock.monotonic_ms()
        self._ask_ms = now_ms + ASK_EVERY_MS
        return now_ms

    def now_ms(self) -> int:
        """The estimate; 0 before Redis has answered."""
        return 0 if self._offset_ms is None else self._clock.monotonic_ms() + self._offset_ms

    def agrees(self, time_ms: int, sent_ms: int) -> bool:
        """Whether an answer that has just come, to a question asked at `sent_ms`, differs by a step at most.

        However long it was under way: a slow answer is no clock that was set.
        """
        least_ms, most_ms = time_ms - self._clock.monotonic_ms(), time_ms - sent_ms
        return self._offset_ms is None or least_ms - STEP_MS <= self._offset_ms <= most_ms + STEP_MS

    def note(self, time_ms: int, sent_ms: int) -> None:
        """Take an answer that has just come, to a question asked at `sent_ms` on the boot clock."""
        least_ms, most_ms = time_ms - self._clock.monotonic_ms(), time_ms - sent_ms
        before_ms = most_ms if self._offset_ms is None else self._offset_ms
        self._offset_ms = min(max(before_ms, least_ms), most_ms)
