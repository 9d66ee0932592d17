"""Keeps a node's fetches at a time to what its link and CPU take (step 11); `politeness.fetch_limit` decides."""

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

SCRAPYS = 1 << 30
"""No limit here: Scrapy itself keeps to CONCURRENT_REQUESTS."""


class Crowd:
    """How many pages may be fetched at a time, by how long answers take.

    What hangs counts for nothing: hosts that are dead must not take the places of those that answer.

    Attributes:
        fetches_max: pages that may be fetched at a time now.
    """

    def __init__(self, pace: PaceConfig, clock: Clock, on_change: Callable[[int], None]) -> None:
        """Begin with the settings' limits; `on_change` is called when the limit is another one, with the limit."""
        self._clock = clock
        self._most = pace.fetches_max
        self._is_fixed = pace.fetches_min >= pace.fetches_max
        self._limit = FetchLimit(pace.fetches_min, pace.fetches_max, clock.monotonic_ms())
        self._was_crowded = False
        self.fetches_max = SCRAPYS if self._is_fixed else self.limit
        self._on_change = on_change

    def __repr__(self) -> str:
        return f"<Crowd fetches_max={self.fetches_max} {self._limit!r}>"

    def __str__(self) -> str:
        return f"{self.limit} of {self._most} fetches at a time"

    @property
    def limit(self) -> int:
        """Pages that may be fetched at a time, those that hang not counted."""
        return self._most if self._is_fixed else self._limit.limit

    @property
    def shared(self) -> int:
        """Pages at a time that shares are of: not those of a crawl that has just begun and counts up."""
        return self.limit if self.is_crowded else self._most

    @property
    def is_crowded(self) -> bool:
        """Whether fewer are fetched at a time because answers took longer."""
        return self._limit.is_crowded

    def note(self, host: str, took_ms: int) -> None:
        """A host has answered."""
        if self._is_fixed:
            return
        self._limit.note(host, took_ms, self._clock.monotonic_ms())

    def look(self, started: Iterable[HeldUrl]) -> bool:
        """Decide anew, a few times a second; whether more may be fetched than before.

        Args:
            started: URLs, among them all that are being fetched.
        """
        if self._is_fixed:
            return False
        now_ms = self._clock.monotonic_ms()
        since_ms = [held.fetching_since_ms for held in started if held.fetching_since_ms >= 0]
        hanging = sum(since < now_ms - self._limit.hanging_ms for since in since_ms)
        if self._limit.look(now_ms, len(since_ms) - hanging):
            self._on_change(self.limit)
            self._say()
        before, self.fetches_max = self.fetches_max, min(self._most, self.limit + hanging)
        return self.fetches_max > before

    def _say(self) -> None:
        """Say when a crowd begins and when it is over, not how it goes."""
        if self.is_crowded != self._was_crowded:
            self._was_crowded = self.is_crowded
            word = "answers take long over all hosts" if self.is_crowded else "the crowd is over"
            logger.info("%(word)s: %(limit)s", {"word": word, "limit": self})
