r"""URLs that were in process when a node died, and their further tries; memory only.

Few of them caused the death. So they are tried a few together, or alone if another death would make them dead letters.
A suspect that ends is cleared.

    taken -> put -> alone -> announced to Redis (`trials`) -> started, nothing else in process -> ended -> cleared
                \-> few --------------------------------------> started, few others in process --/

A URL is a dead letter if it was alone at its last death, and the project's code was at work on its page at
`BIGCRAWL_DEATHS_MAX` of them. Other deaths count half, because usually something else caused them.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from bigcrawl.scheduler.records.held import Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.clock import Clock
    from bigcrawl.scheduler.crawl.in_process import InProcess
    from bigcrawl.scheduler.records.held import HeldUrl


FEW = 8


class SuspectUrls:
    def __init__(self, in_process: InProcess, clock: Clock, deaths_max: int, wake: Callable[[], None]) -> None:
        self._in_process = in_process
        self._clock = clock
        self._deaths_max = deaths_max
        self._few: deque[HeldUrl] = deque()
        self._alone: deque[HeldUrl] = deque()
        self._announced: deque[HeldUrl] = deque()
        self._tried: dict[HeldUrl, int] = {}
        self._lone: HeldUrl | None = None
        self._waiting_since_ms = 0
        self.proven: list[HeldUrl] = []
        self.cleared: list[HeldUrl] = []
        self._wake = wake

    def __len__(self) -> int:
        return len(self._few) + len(self._alone) + len(self._announced) + len(self._tried)

    @property
    def waiting(self) -> int:
        return len(self._few) + len(self._alone) + len(self._announced)

    @property
    def has_changes(self) -> bool:
        return bool(self.proven or self.cleared or len(self))

    def record_taken(self, held: HeldUrl) -> bool:
        """Record a taken suspect. Return whether it is proven to kill nodes, so that it must not be fetched."""
        assert held.suspicion is not None, "a suspect has a suspicion"
        if held.suspicion.is_proof(self._deaths_max):
            self.proven.append(held)
            return True
        return False

    def put(self, held: HeldUrl) -> None:
        assert held.suspicion is not None, "a suspect has a suspicion"
        if not self.waiting:
            self._waiting_since_ms = self._clock.monotonic_ms()
        (self._alone if held.suspicion.wants_solitude(self._deaths_max) else self._few).append(held)

    def next_ones(self, others: deque[HeldUrl]) -> deque[HeldUrl]:
        if self._lone is not None:
            return deque()
        if self._alone or self._announced:
            return deque() if len(self._in_process) else self._announced
        return deque() if len(self._in_process) >= FEW else self._few or others

    def record_started(self, held: HeldUrl) -> None:
        assert held.suspicion is not None, "a suspect has a suspicion"
        self._tried[held] = self._clock.monotonic_ms()
        if held.suspicion.wants_solitude(self._deaths_max):
            self._lone = held

    def record_done(self, held: HeldUrl) -> None:
        self._tried.pop(held, None)
        if self._lone is held:
            self._lone = None
        self._wake()

    def record_cleared(self, held: HeldUrl) -> None:
        self.cleared.append(held)

    def forget_cleared(self, count: int) -> None:
        del self.cleared[:count]

    def forget_proven(self, held: HeldUrl) -> None:
        self.proven.remove(held)

    def next_alone(self) -> HeldUrl | None:
        """Return the suspect to announce to Redis, if nothing is in process."""
        self._drop_ended()
        if self._announced or not self._alone or len(self._in_process):
            return None
        return self._alone[0]

    def record_announced(self, held: HeldUrl) -> None:
        if held in self._alone and held.stage is Stage.BUFFERED:
            self._alone.remove(held)
            self._announced.append(held)
            self._wake()

    def overdue(self, patience_ms: int) -> list[HeldUrl]:
        """Return the waiting suspects, if other URLs have waited for them for `patience_ms`."""
        self._drop_ended()
        if not self.waiting or self._clock.monotonic_ms() - self._waiting_since_ms < patience_ms:
            return []
        return [*self._few, *self._alone, *self._announced]

    def in_flight_too_long(self, patience_ms: int) -> list[HeldUrl]:
        """Return the suspects in process for `patience_ms` times the number of their deaths."""
        if not self._tried:
            return []
        since_ms = self._clock.monotonic_ms() - patience_ms
        return [
            held
            for held, started_ms in self._tried.items()
            if held.suspicion is not None and started_ms <= since_ms - patience_ms * (held.suspicion.deaths - 1)
        ]

    def is_lone(self, held: HeldUrl) -> bool:
        return self._lone is held

    def resume_others(self, held: HeldUrl) -> None:
        if held in self._tried:
            self.record_done(held)

    def _drop_ended(self) -> None:
        for line in (self._few, self._alone, self._announced):
            if any(held.stage is not Stage.BUFFERED for held in line):
                kept = [held for held in line if held.stage is Stage.BUFFERED]
                line.clear()
                line.extend(kept)
