"""Closes a crawl that has been slower than BIGCRAWL_CLOSE_RATE for a while, by the rates in all heartbeats.

Pauses, lower speed limits and times without Redis do not count. Source: PolyBot §4.1.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigcrawl.config import CloseRateConfig

SAMPLES = 60
GAP_MS_MAX = 60_000  # after a longer gap the measurement starts again


class CloseRate:
    def __init__(self, config: CloseRateConfig) -> None:
        self._config = config
        self._samples: deque[tuple[int, float]] = deque()
        self._pages = 0.0
        self._looked_ms = 0

    def __repr__(self) -> str:
        return f"<CloseRate {self._config} samples={len(self._samples)}>"

    @property
    def is_on(self) -> bool:
        return self._config.pages_per_s > 0

    def note(self, now_ms: int, rate: float, allowed: float) -> bool:
        """Record the rate of all nodes since the last call, in pages a second. Return whether all were too slow."""
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
        self._samples.clear()
        self._samples.append((now_ms, self._pages))
        self._looked_ms = now_ms
