"""Measures the gaps kept at hosts by this node's fetches, from the end of one to the start of the next."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from bigcrawl.bounded import BoundedDict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bigcrawl.clock import Clock
    from bigcrawl.scheduler.gates.delays import HostDelays
    from bigcrawl.scheduler.handout.start_gaps import NoteGap

HOSTS_REMEMBERED: Final = 20_000
"""About 4 MB. If more hosts rest at a time, the longest gaps are not measured."""


class HostGaps:
    def __init__(self, clock: Clock, paces: HostDelays, connections: int, record_gap: NoteGap | None = None) -> None:
        self._clock = clock
        self._paces = paces
        self._record_gap = record_gap if connections == 1 else None
        self._ended: BoundedDict[str, tuple[int, int]] = BoundedDict(HOSTS_REMEMBERED)
        """By host: the end of its last fetch, on the monotonic clock, and the rest that was due then."""

    def record_start(self, host: str, now_ms: int) -> None:
        last = self._ended.pop(host, None)
        if last is not None and self._record_gap is not None:
            ended_ms, due_ms = last
            self._record_gap("host", host, now_ms - ended_ms, due_ms)

    def record_end(self, host: str, ended_ms: int, due_ms: int) -> None:
        if self._record_gap is not None:
            self._ended.remember(host, (ended_ms, due_ms))

    @contextmanager
    def fetching_from(self, host: str) -> Iterator[None]:
        """Measure a fetch of robots.txt, or a HEAD, in a context; the gap counts from its end, even if it fails."""
        self.record_start(host, self._clock.monotonic_ms())
        try:
            yield
        finally:
            self.record_end(host, self._clock.monotonic_ms(), self._paces.host_delay_ms(host))
