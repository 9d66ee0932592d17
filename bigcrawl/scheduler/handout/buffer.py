"""The URLs that may be fetched now, and their order (step 11 of a URL's life). `pop` neither waits nor raises."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from bigcrawl.scheduler.records.held import Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.clock import Clock
    from bigcrawl.scheduler.handout.concurrency import ConcurrencyLimit
    from bigcrawl.scheduler.handout.fetches import RunningFetches
    from bigcrawl.scheduler.handout.missed_starts import MissedStarts
    from bigcrawl.scheduler.handout.start_gaps import StartGaps
    from bigcrawl.scheduler.records.held import HeldUrl

SLOW_WAIT_MS = 5_000


class Lease:
    """The shortest lease of the node's partitions, monotonic; 0 before the first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ends_ms = 0

    @property
    def is_valid(self) -> bool:
        return self._clock.monotonic_ms() < self.ends_ms

    def renew(self, ends_ms: int) -> None:
        self.ends_ms = ends_ms


class FetchBuffer:
    def __init__(
        self,
        clock: Clock,
        fetches: RunningFetches,
        crowd: ConcurrencyLimit,
        start_gaps: StartGaps,
        missed: MissedStarts,
        give_back: Callable[[HeldUrl, int], None],
        admit_later: Callable[[float, HeldUrl], object],
    ) -> None:
        self._clock = clock
        self._fetches = fetches
        self._speed = fetches.speed
        self._slow = fetches.slow
        self._suspects = fetches.suspects
        self._crowd = crowd
        self._start_gaps = start_gaps
        self._missed = missed
        self._give_back = give_back
        self._admit_later = admit_later
        self.lease = Lease(clock)
        self._line: deque[HeldUrl] = deque()

    def __repr__(self) -> str:
        return f"<FetchBuffer {len(self._line)} {self._missed!r} {self._suspects!r}>"

    @property
    def waiting(self) -> int:
        return len(self._line) + len(self._missed.late) + self._suspects.waiting

    def put(self, held: HeldUrl) -> None:
        was_missed = held.granted.misses > 0
        if was_missed:
            self._missed.record_admitted(held)
        if held.suspicion is not None and not held.refusal:
            self._suspects.put(held)
        elif was_missed:
            self._line.appendleft(held)
        else:
            self._line.append(held)

    def clear(self) -> None:
        self._line.clear()
        self._missed.clear()

    def pop(self) -> HeldUrl | None:
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self.lease.ends_ms:
            return None
        under_way, fetches_max = self._fetches.under_way, self._crowd.fetches_max
        if under_way >= fetches_max:
            return None
        held = self._next_start(now_ms, self._suspects.next_ones(self._line) if self._suspects else self._line)
        if self._missed.late:
            self._missed.request_new_starts(now_ms, fetches_max - self._fetches.under_way)
        return held

    def _next_start(self, now_ms: int, line: deque[HeldUrl]) -> HeldUrl | None:
        speed, slow = self._speed, self._slow
        for _ in range(len(line)):
            held = line.popleft()
            if held.stage is not Stage.BUFFERED:
                continue
            if held.refusal:
                return self._fetches.start(held, now_ms)
            if now_ms > held.granted.until_ms:
                self._missed.put(held)
                continue
            if speed.limits and not speed.may_start(now_ms):
                speed.wake_later(now_ms)
                line.appendleft(held)
                return None
            if slow.hosts and not slow.have_room_for(held.host):
                self._give_back(held, SLOW_WAIT_MS)
                continue
            if wait_ms := self._start_gaps.try_start(held.gaps, now_ms):
                held.go_to(Stage.WAITING)
                self._admit_later(wait_ms / 1000, held)
                continue
            if speed.limits:
                speed.record_start()
            return self._fetches.start(held, max(now_ms, held.due_ms))
        return None
