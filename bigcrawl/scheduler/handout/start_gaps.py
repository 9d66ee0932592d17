"""The gaps between a node's own starts (step 11): a granted start that comes late must not crowd the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.bounded import BoundedDict
from bigcrawl.scheduler.records.passage import MISSED

if TYPE_CHECKING:
    from bigcrawl.clock import Clock
    from bigcrawl.scheduler.records.passage import Space

GATES_REMEMBERED: Final = 10_000
LONG_AGO_MS: Final = -1 << 62


class StartGaps:
    """When a fetch last started at each gate, of pages and of robots.txt alike."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started_ms: BoundedDict[str, int] = BoundedDict(GATES_REMEMBERED)

    def __repr__(self) -> str:
        return f"<StartGaps {len(self._started_ms)}>"

    def try_start(self, gaps: tuple[Space, ...], now_ms: int) -> int:
        """Start a fetch now if it keeps all its gaps; 0 if it has started, else for how many ms it must wait."""
        started_ms = self._started_ms
        wait_ms = 0
        for name, gap_ms in gaps:
            wait_ms = max(wait_ms, started_ms.get(name, LONG_AGO_MS) + gap_ms - now_ms)
        if wait_ms:
            return wait_ms
        for name, _ in gaps:
            started_ms.remember(name, now_ms)
        return 0

    def try_start_until(self, gaps: tuple[Space, ...], until_ms: int) -> int:
        """The same of a fetch that must not start after `until_ms`, on the monotonic clock; then it is `MISSED`."""
        now_ms = self._clock.monotonic_ms()
        return MISSED if now_ms > until_ms else self.try_start(gaps, now_ms)
