"""The capacity that a node reports with BIGCRAWL_CAPACITY_MEASURED.

A node lowers it while it alone cannot keep up with its hosts, so that other nodes take some of its partitions.

Source: PolyBot §2.1 (hosts are moved between crawlers to balance them). Differs: no node decides for others. Each
compares itself with the reports of the others, and changes its own capacity alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

BEHIND_MS: Final = 2_000
"""A node is behind if its hosts wait this long after they are due."""

KEEPS_UP_MS: Final = BEHIND_MS // 2
LOWER_MS: Final = 60_000
"""It lowers its capacity after it was behind for this long, and others kept up. That is also time to see an effect."""

RAISE_MS: Final = 600_000
"""It raises its capacity after it was not behind for this long. Rarer, because each try may put it behind again."""

STEP: Final = 0.9
LEAST: Final = 0.25
"""The smallest part of the configured capacity: a node that fails at everything keeps something to show that it can."""


class MeasuredCapacity:
    """A node's capacity by its load: at most the configured one.

    Attributes:
        value: the capacity to report.
    """

    def __init__(self, configured: float) -> None:
        self._configured = configured
        self.value = configured
        self._is_behind = False
        self._since_ms: int | None = None  # since when that holds, or since the last change

    def __repr__(self) -> str:
        return f"<MeasuredCapacity {self.value:g} of {self._configured:g}>"

    def note(self, late_ms: float, others_late_ms: Collection[float], now_ms: int) -> None:
        """Compare this node with the others; change the capacity if that has been due for long enough.

        Args:
            late_ms: how long this node's hosts wait after they are due.
            others_late_ms: the same of the other live nodes. If none keeps up, no partition would be better elsewhere.
            now_ms: of a clock that does not go back.
        """
        is_behind = late_ms >= BEHIND_MS and any(other < KEEPS_UP_MS for other in others_late_ms)
        if self._since_ms is None or is_behind != self._is_behind:
            self._is_behind, self._since_ms = is_behind, now_ms
        if now_ms - self._since_ms < (LOWER_MS if is_behind else RAISE_MS):
            return
        self._since_ms = now_ms
        value = self.value * STEP if is_behind else self.value / STEP
        self.value = min(self._configured, max(LEAST * self._configured, value))
