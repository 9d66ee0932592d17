"""Finds out that a crawl has become too slow to go on: fewer pages a second than BIGCRAWL_CLOSE_RATE for a while.

Every node measures the whole crawl, by the rates that all nodes report with their heartbeats. So nothing is asked of
Redis, and whichever node finds it first decides for all. Time does not count in which the crawl could not be faster:
while it or a node with a full disk was paused, while its speed was limited to less, and while Redis was away.

Source: PolyBot §4.1, whose operators ended crawls when the rate had fallen.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigcrawl.config import CloseRateConfig

SAMPLES = 60  # kept of a span, which bounds memory
GAP_MS_MAX = 60_000  # between two looks; after a longer time nobody knows what the crawl did meanwhile


class CloseRate:
    """The mean rate of the crawl over the last `span_ms`."""

    def __init__(self, config: CloseRateConfig) -> None:
        self._config = config
        self._samples: deque[tuple[int, float]] = deque()  # the time, and the pages by then
        self._pages = 0.0
        self._looked_ms = 0

    def __repr__(self) -> str:
        return f"<CloseRate {self._config} samples={len(self._samples)}>"

    @property
    def is_on(self) -> bool:
        """Whether the crawl may be too slow at all."""
        return self._config.pages_per_s > 0

    def note(self, now_ms: int, rate: float, allowed: float) -> bool:
        """Record the rate since the last look. Return whether the crawl was too slow over the whole span.

        Args:
            now_ms: the monotonic clock.
            rate: pages a second of all nodes.
            allowed: the most that the crawl may fetch now, in pages a second.
        """
        since_ms = now_ms - self._looked_ms
        self._looked_ms = now_ms
        if not self._samples or since_ms > GAP_MS_MAX or allowed <= self._config.pages_per_s:
            self.begin(now_ms)
            return False
        self._pages += rate * since_ms / 1000
        samples, span_ms = self._samples, self._config.span_ms
        if now_ms - samples[-1][0] >= span_ms / SAMPLES:
            samples.append((now_ms, self._pages))
        while len(samples) > 1 and samples[1][0] <= now_ms - span_ms:
            samples.popleft()
        began_ms, before = samples[0]
        passed_ms = now_ms - began_ms
        return passed_ms >= span_ms and (self._pages - before) * 1000 < self._config.pages_per_s * passed_ms

    def begin(self, now_ms: int) -> None:
        """Measure from now on."""
        self._samples.clear()
        self._samples.append((now_ms, self._pages))
        self._looked_ms = now_ms
