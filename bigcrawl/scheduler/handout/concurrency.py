"""Limits a node's concurrent fetches to what its link and CPU can take; `politeness.fetch_limit` decides."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from bigcrawl.politeness.fetch_limit import FetchLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bigcrawl.clock import Clock
    from bigcrawl.config import PaceConfig
    from bigcrawl.scheduler.records.held import HeldUrl

logger = logging.getLogger(__name__)

UNLIMITED = 1 << 30
"""No limit here: Scrapy itself keeps to CONCURRENT_REQUESTS."""


class ConcurrencyLimit:
    """Limits concurrent page fetches by how long answers take; fetches that hang do not count."""

    def __init__(self, pace: PaceConfig, clock: Clock, on_change: Callable[[int], None]) -> None:
        self._clock = clock
        self._most = pace.fetches_max
        self._is_fixed = pace.fetches_min >= pace.fetches_max
        self._limit = FetchLimit(pace.fetches_min, pace.fetches_max, clock.monotonic_ms())
        self._was_crowded = False
        self.fetches_max = UNLIMITED if self._is_fixed else self.limit
        self._on_change = on_change

    def __str__(self) -> str:
        return f"{self.limit} of {self._most} fetches at a time"

    @property
    def limit(self) -> int:
        return self._most if self._is_fixed else self._limit.limit

    @property
    def limit_for_slow_hosts(self) -> int:
        """The number of fetches that slow hosts share: the maximum, or less under congestion."""
        return self.limit if self.is_crowded else self._most

    @property
    def is_crowded(self) -> bool:
        return self._limit.is_crowded

    def record_answer(self, host: str, took_ms: int) -> None:
        if self._is_fixed:
            return
        self._limit.record_answer(host, took_ms, self._clock.monotonic_ms())

    def record_connected(self, server: str, took_ms: int) -> None:
        if not self._is_fixed:
            self._limit.record_connected(server, took_ms, self._clock.monotonic_ms())

    def record_response_head(self) -> None:
        self._limit.record_response_head()

    def record_transfer(self, ended_ms: int) -> None:
        if not self._is_fixed:
            self._limit.record_sign_of_life(ended_ms)

    def ask_for_connection(self) -> bool:
        return not self._is_fixed and self._limit.ask_for_connection()

    def adjust(self, started: Iterable[HeldUrl]) -> bool:
        """Adjust the limit to the held URLs, a few times a second. Return whether it rose."""
        if self._is_fixed:
            return False
        now_ms = self._clock.monotonic_ms()
        since_ms = [held.fetching_since_ms for held in started if held.fetching_since_ms >= 0]
        hanging = sum(since < now_ms - self._limit.hanging_ms for since in since_ms)
        if self._limit.adjust(now_ms, len(since_ms) - hanging, hanging):
            self._on_change(self.limit)
            self._log_crowd()
        before, self.fetches_max = self.fetches_max, min(self._most, self.limit + hanging)
        return self.fetches_max > before

    def _log_crowd(self) -> None:
        if self.is_crowded != self._was_crowded:
            self._was_crowded = self.is_crowded
            event = "answers take long over all hosts" if self.is_crowded else "the crowd is over"
            logger.info("%(event)s: %(limit)s", {"event": event, "limit": self})
