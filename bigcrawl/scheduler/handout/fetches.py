from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.histogram import Histogram

if TYPE_CHECKING:
    from bigcrawl.clock import Clock
    from bigcrawl.scheduler.crawl.in_process import InProcess
    from bigcrawl.scheduler.gates.speed import SpeedControl
    from bigcrawl.scheduler.handout.ends import UrlEnder
    from bigcrawl.scheduler.handout.lanes import HostLanes
    from bigcrawl.scheduler.handout.slow_hosts import SlowHosts
    from bigcrawl.scheduler.handout.suspects import SuspectUrls
    from bigcrawl.scheduler.records.held import HeldUrl


class RunningFetches:
    def __init__(
        self,
        clock: Clock,
        speed: SpeedControl,
        slow: SlowHosts,
        in_process: InProcess,
        suspects: SuspectUrls,
        ends: UrlEnder,
        lanes: HostLanes,
    ) -> None:
        self._clock = clock
        self.speed = speed
        self.slow = slow
        self._in_process = in_process
        self.suspects = suspects
        self._ends = ends
        self._lanes = lanes
        self.under_way = 0
        self.waits = Histogram()

    def __repr__(self) -> str:
        return f"<RunningFetches under_way={self.under_way} {self._in_process!r}>"

    def start(self, held: HeldUrl, now_ms: int) -> HeldUrl:
        held.start(now_ms)
        self.under_way += 1
        self.waits.count_ms(now_ms - held.due_ms)
        if self.slow.hosts:
            self.slow.record_start(held)
        return held

    def record_started(self, held: HeldUrl) -> None:
        self._in_process.start(held)
        if held.suspicion is not None:
            self.suspects.record_started(held)

    def record_answered(self, held: HeldUrl, ended_us: int = 0) -> None:
        if held.fetching_since_ms >= 0:
            held.stop_fetching(ended_us // 1_000 or self._clock.monotonic_ms())
            self.under_way -= 1
            self._in_process.record_answered(held)
            self._lanes.record_fetch_end(held, ended_us)

    def end(self, held: HeldUrl) -> None:
        if held.fetching_since_ms >= 0:
            self.record_answered(held)
        if self._in_process.end(held) and self.suspects:
            self.suspects.record_done(held)
        held.finish(self._clock.monotonic_ms())
        slow = self.slow
        if slow.hosts or slow.fetching or held.download_ms > slow.after_ms:
            slow.record_end(held)
        if self.speed.limits and not held.refusal:
            self.speed.record_ended(held.fetched_bytes)
        self._ends.end_fetched(held)
        self._lanes.record_departure(held)

    def stop_waiting_for(self, held: HeldUrl) -> None:
        self.record_answered(held)
        self.slow.leave(held)
