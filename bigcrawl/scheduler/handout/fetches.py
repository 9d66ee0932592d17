"""The fetches of a node, from each start to its end (steps 11 to 13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.histogram import Histogram

if TYPE_CHECKING:
    from bigcrawl.clock import Clock
    from bigcrawl.scheduler.crawl.in_process import InProcess
    from bigcrawl.scheduler.gates.speed import SpeedControl
    from bigcrawl.scheduler.handout.ends import Ends
    from bigcrawl.scheduler.handout.host_gaps import HostGaps
    from bigcrawl.scheduler.handout.lanes import Lanes
    from bigcrawl.scheduler.handout.slow_hosts import SlowHosts
    from bigcrawl.scheduler.handout.suspects import Suspects
    from bigcrawl.scheduler.records.held import HeldUrl


class Fetches:
    """The URLs that Scrapy's engine has: it fetches them, then the spider and the pipelines work on them.

    Attributes:
        under_way: how many are being fetched.
        waits: how long URLs waited for the engine.
    """

    def __init__(
        self,
        clock: Clock,
        speed: SpeedControl,
        slow: SlowHosts,
        host_gaps: HostGaps,
        in_process: InProcess,
        suspects: Suspects,
        ends: Ends,
        lanes: Lanes,
    ) -> None:
        """Begin without any.

        Args:
            clock: the node's.
            speed: the node's share of the crawl's speed.
            slow: is told which hosts answer slowly.
            host_gaps: is told of starts.
            in_process: records on disk which URLs the engine has.
            suspects: are told what the engine has.
            ends: ends the URLs that the engine is done with.
            lanes: are told which hosts are used no more.
        """
        self._clock = clock
        self._speed = speed
        self._slow = slow
        self._host_gaps = host_gaps
        self._in_process = in_process
        self._suspects = suspects
        self._ends = ends
        self._lanes = lanes
        self.under_way = 0
        self.waits = Histogram()

    def __repr__(self) -> str:
        return f"<Fetches under_way={self.under_way} {self._in_process!r}>"

    def start(self, held: HeldUrl, now_ms: int) -> HeldUrl:
        """The URL leaves the buffer for the engine. Returns it."""
        held.start(now_ms)
        self.under_way += 1
        self.waits.note(now_ms - held.due_ms)
        if not held.refusal:
            self._host_gaps.note_start(held.host, now_ms)
        if self._slow.hosts:
            self._slow.note_start(held)
        return held

    def note_started(self, held: HeldUrl) -> None:
        """The engine has the request of a URL that left the buffer."""
        self._in_process.start(held)
        if held.suspicion is not None:
            self._suspects.note_started(held)

    def note_answered(self, held: HeldUrl) -> None:
        """The fetch is over, however it went, and another one may start."""
        if held.fetching_since_ms >= 0:
            held.stop_fetching(self._clock.monotonic_ms())
            self.under_way -= 1
            self._in_process.note_answered(held)
            self._lanes.note_over(held)

    def end(self, held: HeldUrl) -> None:
        """The engine is done with the URL: downloaded, parsed and piped, or failed, or refused."""
        if held.fetching_since_ms >= 0:
            self.note_answered(held)
        if self._in_process.end(held) and self._suspects:
            self._suspects.note_done(held)
        held.finish(self._clock.monotonic_ms())
        slow = self._slow
        if slow.hosts or held.uses_slow_share or held.download_ms > slow.after_ms:
            slow.note_end(held)
        if self._speed.limits and not held.refusal:
            self._speed.note_ended(held.fetched_bytes)
        self._ends.end_fetched(held)
        self._lanes.note_left(held)

    def leave(self, held: HeldUrl) -> None:
        """The URL ends otherwise. If it is being fetched, another one may start."""
        self.note_answered(held)
        self._slow.leave(held)
