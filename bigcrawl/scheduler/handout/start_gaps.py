"""The gaps between a node's own starts (step 11): a late start must not come too close to the next one."""

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
    """When a fetch last started at each gate, for pages and robots.txt alike."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started_ms: BoundedDict[str, int] = BoundedDict(GATES_REMEMBERED)

    def __repr__(self) -> str:
        return f"<StartGaps {len(self._started_ms)}>"

    def try_start(self, gaps: tuple[Space, ...], now_ms: int) -> int:
        """Start a fetch now if that keeps all its gaps. Return 0 if it has started, else how many ms it must wait."""
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
        """The same for a fetch that must start by `until_ms`, on the monotonic clock; `MISSED` if it is too late."""
        now_ms = self._clock.monotonic_ms()
        return MISSED if now_ms > until_ms else self.try_start(gaps, now_ms)
