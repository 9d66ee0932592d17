"""Measures how long Redis is known to have run, from questions to answers, and so which writes it keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bigcrawl.redisdb.crawl_clock import CrawlClock

GAP_MS_MAX: Final = 500

FORGETTABLE_MS: Final = 3_000
"""What Redis may forget: AOF everysec loses up to two seconds; the rest allows for two gaps."""


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
