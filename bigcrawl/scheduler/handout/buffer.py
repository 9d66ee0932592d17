"""The URLs that may be fetched now, and which of them Scrapy's engine gets next (step 11).

No exception leaves `pop`, and nothing here waits.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from bigcrawl.scheduler.records.held import Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.clock import Clock
    from bigcrawl.scheduler.gates.speed import SpeedControl
    from bigcrawl.scheduler.handout.concurrency import Crowd
    from bigcrawl.scheduler.handout.fetches import Fetches
    from bigcrawl.scheduler.handout.lease import Lease
    from bigcrawl.scheduler.handout.missed_starts import MissedStarts
    from bigcrawl.scheduler.handout.slow_hosts import SlowHosts
    from bigcrawl.scheduler.handout.start_gaps import StartGaps
    from bigcrawl.scheduler.handout.suspects import Suspects
    from bigcrawl.scheduler.records.held import HeldUrl

SLOW_WAIT_MS = 5_000  # after that long, a URL of a slow host tries again to get one of the share's fetches


class Buffer:
    """The URLs that wait for the engine, in the order in which they start."""

    def __init__(
        self,
        clock: Clock,
        lease: Lease,
        crowd: Crowd,
        speed: SpeedControl,
        slow: SlowHosts,
        start_gaps: StartGaps,
        suspects: Suspects,
        missed: MissedStarts,
        fetches: Fetches,
        give_back: Callable[[HeldUrl, int], None],
        admit_later: Callable[[float, HeldUrl], object],
    ) -> None:
        """Begin without URLs.

        Args:
            clock: the node's.
            lease: nothing leaves the buffer after it.
            crowd: how many fetches there may be at a time.
            speed: the node's share of the crawl's speed.
            slow: hosts that share some of the fetches.
            start_gaps: the gaps between starts.
            suspects: URLs that may have killed a node, with lines of their own.
            missed: URLs that have missed their starts.
            fetches: what the engine has.
            give_back: returns a URL to its queue, for a number of ms.
            admit_later: admits a URL again, after a number of seconds.
        """
        self._clock = clock
        self._lease = lease
        self._crowd = crowd
        self._speed = speed
        self._slow = slow
        self._start_gaps = start_gaps
        self._suspects = suspects
        self._missed = missed
        self._fetches = fetches
        self._give_back = give_back
        self._admit_later = admit_later
        self._line: deque[HeldUrl] = deque()

    def __repr__(self) -> str:
        return f"<Buffer {len(self._line)} {self._missed!r} {self._suspects!r}>"

    @property
    def waiting(self) -> int:
        """URLs that wait for the engine."""
        return len(self._line) + len(self._missed.late) + self._suspects.waiting

    def put(self, held: HeldUrl) -> None:
        """Add a URL. One that has missed a start goes first."""
        if held.passage.misses:
            self._missed.note_admitted(held)
        if held.suspicion is not None and not held.refusal:
            self._suspects.put(held)
        elif held.passage.misses:
            self._line.appendleft(held)
        else:
            self._line.append(held)

    def clear(self) -> None:
        """Forget the URLs, which are given back."""
        self._line.clear()
        self._missed.clear()

    def pop(self) -> HeldUrl | None:
        """The next URL to fetch, or None; O(1)."""
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._lease.ends_ms:
            return None
        under_way, fetches_max = self._fetches.under_way, self._crowd.fetches_max
        if under_way >= fetches_max:
            return None
        held = self._next_start(now_ms, self._suspects.next_ones(self._line) if self._suspects else self._line)
        if self._missed.late:
            self._missed.ask(now_ms, fetches_max - self._fetches.under_way)
        return held

    def _next_start(self, now_ms: int, line: deque[HeldUrl]) -> HeldUrl | None:
        speed, slow = self._speed, self._slow
        for _ in range(len(line)):
            held = line.popleft()
            if held.stage is not Stage.BUFFERED:
                continue
            if held.refusal:
                return self._fetches.start(held, now_ms)
            if now_ms > held.passage.until_ms:
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
                held.leave_buffer()
                self._admit_later(wait_ms / 1000, held)
                continue
            if speed.limits:
                speed.note_start()
            return self._fetches.start(held, max(now_ms, held.due_ms))
        return None
