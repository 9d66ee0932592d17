"""How long Redis is known to have run, by which it is decided what it cannot forget any more.

A Redis that dies forgets its last seconds of running, however long it stays away. What it was told is safe from that
once it has run for so long since. An answer shows that it ran at some moment between the question and the answer. So
questions that do not overlap add up to a time for which it ran. A gap without questions counts little: Redis may have
stood still.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bigcrawl.redisdb.crawl_clock import CrawlClock

GAP_MS_MAX: Final = 500
"""What counts of the time between two questions."""

FORGETTABLE_MS: Final = 3_000
"""What was told so long ago is safe. A Redis with AOF everysec forgets its last second, or its last two on a slow disk;
two gaps may have been counted before it was told."""


class RunningTime:
    """Adds up the running time of one server, or of the masters of a cluster together.

    Attributes:
        known_ms: how long it ran. A restart takes back the time that may be forgotten, so what was not safe before is
            not safe until it has run for `FORGETTABLE_MS` after the recovery.
    """

    def __init__(self, clock: CrawlClock) -> None:
        self._clock = clock
        self.known_ms = 0
        self._most_ms = 0
        self._asked_ms = self._answered_ms = 0  # of the last question that was counted
        self._is_recovering = False

    def __repr__(self) -> str:
        return f"<RunningTime known_ms={self.known_ms}>"

    def note_answer(self, asked_ms: int) -> None:
        """Everybody that was asked at this time of the boot clock has answered now."""
        if asked_ms < self._answered_ms:
            return
        if not self._is_recovering:
            self.known_ms += min(asked_ms - self._asked_ms, GAP_MS_MAX)
        self._asked_ms, self._answered_ms = asked_ms, self._clock.monotonic_ms()

    def note_restart(self) -> None:
        """It was restarted, and may have forgotten. No time counts until `note_recovery`."""
        self._is_recovering = True
        self._most_ms = max(self._most_ms, self.known_ms)
        self.known_ms = self._most_ms - FORGETTABLE_MS

    def note_recovery(self) -> None:
        """It was told again what it may have forgotten."""
        self._is_recovering = False
