"""The gaps between a node's own fetches, kept when the engine gets a fetch and again when it is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.bounded import BoundedDict
from bigcrawl.scheduler.records.at_gates import MISSED, Space

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.clock import Clock
    from bigcrawl.scheduler.gates.delays import HostDelays

    NoteGap = Callable[[str, str, int, int], None]
    """Receives each gap kept: `host`, `server` or `space`, its name, and its actual and required ms."""

GATES_REMEMBERED: Final = 10_000
_HOST: Final = "host "


class StartGaps:
    """Remembers when a fetch last started, and was last sent, at each gate. Measures the gaps kept."""

    def __init__(
        self, clock: Clock, paces: HostDelays | None = None, connections: int = 1, record_gap: NoteGap | None = None
    ) -> None:
        self._clock = clock
        self._record_gap = record_gap
        self._paces = paces
        self.are_of_hosts = connections > 1 and paces is not None
        self._started_ms: BoundedDict[str, int] = BoundedDict(GATES_REMEMBERED)
        self._sent_us: BoundedDict[str, int] = BoundedDict(GATES_REMEMBERED)

    def try_start(self, gaps: tuple[Space, ...], now_ms: int) -> int:
        """Return 0 and record the start if a fetch that starts now keeps all its gaps, else return the ms to wait."""
        wait_ms = _longest_rest(self._started_ms, gaps, now_ms, 1)
        if not wait_ms:
            for name, _ in gaps:
                self._started_ms.remember(name, now_ms)
        return wait_ms

    def try_send(self, gaps: tuple[Space, ...]) -> int:
        """Return 0 and record the time if a fetch that is sent now keeps all its gaps, else return the us to wait."""
        now_us, sent_us, record_gap = self._clock.monotonic_us(), self._sent_us, self._record_gap
        wait_us = _longest_rest(sent_us, gaps, now_us, 1_000)
        if wait_us:
            return wait_us
        for name, gap_ms in gaps:
            before_us = sent_us.get(name)
            if record_gap is not None and before_us is not None and not name.startswith(_HOST):
                kind = "space" if " " in name else "server"  # names of spaces have a blank, see `gates.passages`
                record_gap(kind, name, (now_us - before_us) // 1_000, gap_ms)
            sent_us.remember(name, now_us)
        return 0

    def record_sent(self, gaps: tuple[Space, ...]) -> None:
        """Record that a fetch was sent only now: the next ones keep their gaps to this moment."""
        now_us = self._clock.monotonic_us()
        for name, _ in gaps:
            self._sent_us.remember(name, now_us)

    def of_host(self, host: str) -> tuple[Space, ...]:
        assert self._paces is not None
        delay_ms = self._paces.host_delay_ms(host)
        return ((_HOST + host, delay_ms),) if delay_ms else ()

    def try_start_until(self, gaps: tuple[Space, ...], until_ms: int) -> int:
        """Like `try_start`, for a fetch that must start by `until_ms` (monotonic); `MISSED` if it is too late."""
        now_ms = self._clock.monotonic_ms()
        return MISSED if now_ms > until_ms else self.try_start(gaps, now_ms)


def _longest_rest(before: BoundedDict[str, int], gaps: tuple[Space, ...], now: int, a_ms: int) -> int:
    """Return the longest remaining rest of these gaps; 0 if all are over.

    `a_ms` is the number of time units in a ms.
    """
    wait = 0
    for name, gap_ms in gaps:
        before_at = before.get(name)
        if before_at is not None:
            wait = max(wait, before_at + a_ms * gap_ms - now)
    return wait
