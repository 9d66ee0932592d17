"""The gaps between a node's own starts (step 11): a late start must not come too close to the next one.

A fetch starts when the engine gets it, and is sent when its download handler does. Middlewares, and a loop that is
busy, lie between, and may hold up one fetch longer than the next. So its gaps are kept in both places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.bounded import BoundedDict
from bigcrawl.scheduler.records.passage import MISSED
from bigcrawl.tallies.tallies import Tallies

if TYPE_CHECKING:
    from bigcrawl.clock import Clock
    from bigcrawl.scheduler.records.passage import Space
    from bigcrawl.tallies.gaps import Gaps

GATES_REMEMBERED: Final = 10_000


class StartGaps:
    """When a fetch last started, and was sent, at each gate, for pages and robots.txt alike. Counts the gaps kept."""

    def __init__(self, clock: Clock, tallies: Tallies | None = None) -> None:
        self._clock = clock
        self._tallies = tallies or Tallies()
        self._started_ms: BoundedDict[str, int] = BoundedDict(GATES_REMEMBERED)
        self._sent_ms: BoundedDict[str, int] = BoundedDict(GATES_REMEMBERED)

    def __repr__(self) -> str:
        return f"<StartGaps {len(self._started_ms)}>"

    def try_start(self, gaps: tuple[Space, ...], now_ms: int) -> int:
        """Start a fetch now if that keeps all its gaps. Return 0 if it has started, else how many ms it must wait."""
        wait_ms = _wait_ms(self._started_ms, gaps, now_ms)
        if not wait_ms:
            for name, _ in gaps:
                self._started_ms.remember(name, now_ms)
        return wait_ms

    def try_send(self, gaps: tuple[Space, ...]) -> int:
        """The same for a fetch that has started, and is sent now. Cost: 0.6 us a gap."""
        if not gaps:
            return 0
        now_ms, sent_ms = self._clock.monotonic_ms(), self._sent_ms
        wait_ms = _wait_ms(sent_ms, gaps, now_ms)
        if wait_ms:
            return wait_ms
        for name, gap_ms in gaps:
            before_ms = sent_ms.get(name)
            if before_ms is not None:
                self._tally_of(name).note(name, now_ms - before_ms, gap_ms)
            sent_ms.remember(name, now_ms)
        return 0

    def _tally_of(self, name: str) -> Gaps:
        """Names of spaces have a space after their kind, see `gates.spaces`; servers are addresses."""
        return self._tallies.space_gaps if " " in name else self._tallies.server_gaps

    def try_start_until(self, gaps: tuple[Space, ...], until_ms: int) -> int:
        """The same for a fetch that must start by `until_ms`, on the monotonic clock; `MISSED` if it is too late."""
        now_ms = self._clock.monotonic_ms()
        return MISSED if now_ms > until_ms else self.try_start(gaps, now_ms)


def _wait_ms(before: BoundedDict[str, int], gaps: tuple[Space, ...], now_ms: int) -> int:
    """How long the longest of these gaps still is; 0 if all are over."""
    wait_ms = 0
    for name, gap_ms in gaps:
        before_ms = before.get(name)
        if before_ms is not None:
            wait_ms = max(wait_ms, before_ms + gap_ms - now_ms)
    return wait_ms
