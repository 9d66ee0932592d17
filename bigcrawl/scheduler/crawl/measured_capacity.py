"""The capacity that a node reports with BIGCRAWL_CAPACITY_MEASURED.

A node lowers it while it alone cannot keep up with its hosts, so that other nodes take some of its partitions.

Source: PolyBot §2.1 (hosts are moved between crawlers to balance them). Differs: each node changes only its own
capacity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

BEHIND_MS: Final = 2_000
"""A node is behind if its hosts wait this long after they are due."""

KEEPS_UP_MS: Final = BEHIND_MS // 2
LOWER_MS: Final = 60_000
"""How long a node must be behind before it lowers its capacity: long enough for the last change to take effect."""

RAISE_MS: Final = 600_000
"""How long it must keep up before it raises its capacity: longer, because each rise may put it behind again."""

STEP: Final = 0.9
LEAST: Final = 0.25
"""The smallest part of the configured capacity, which still shows whether a slow node recovers."""


class MeasuredCapacity:
    def __init__(self, configured: float) -> None:
        self._configured = configured
        self.value = configured
        self._is_behind = False
        self._since_ms: int | None = None

    def __repr__(self) -> str:
        return f"<MeasuredCapacity {self.value:g} of {self._configured:g}>"

    def update(self, late_ms: float, others_late_ms: Collection[float], now_ms: int) -> None:
        """Lower the capacity if hosts have long waited here and not on some other node; else raise it again."""
        is_behind = late_ms >= BEHIND_MS and any(other < KEEPS_UP_MS for other in others_late_ms)
        if self._since_ms is None or is_behind != self._is_behind:
            self._is_behind, self._since_ms = is_behind, now_ms
        if now_ms - self._since_ms < (LOWER_MS if is_behind else RAISE_MS):
            return
        self._since_ms = now_ms
        value = self.value * STEP if is_behind else self.value / STEP
        self.value = min(self._configured, max(LEAST * self._configured, value))
