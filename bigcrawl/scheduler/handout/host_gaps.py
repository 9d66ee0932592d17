"""Measures the gaps kept at hosts, from the end of a fetch to the start of the next.

A node knows only its own fetches, robots.txt included. If another node has asked a host in between, the gap looks
longer than it was. With several connections a host, fetches overlap, and nothing is measured.
"""

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
        """Return the context in which a robots.txt of the host is fetched, or a HEAD sent.

        The gap counts from the end of the block, even if the fetch fails. A longer rest that the answer asks for is
        not noted.
        """
        self.record_start(host, self._clock.monotonic_ms())
        try:
            yield
        finally:
            self.record_end(host, self._clock.monotonic_ms(), self._paces.host_delay_ms(host))
