r"""From taken to ended inside one node (steps 9 to 14): memory only, what Scrapy's engine touches.

    add -> gatekeeper -> admit -> buffer -> pop -> started -> end_fetched -> acknowledged by the pump
                      \-> give_back, give_up ------------------^

No exception leaves `pop`, and nothing here waits.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from typing import TYPE_CHECKING

from bigcrawl.histogram import Histogram
from bigcrawl.scheduler.crawl.in_process import InProcess
from bigcrawl.scheduler.handout.concurrency import Crowd
from bigcrawl.scheduler.handout.ends import Ends
from bigcrawl.scheduler.handout.host_gaps import HostGaps
from bigcrawl.scheduler.handout.missed_starts import MissedStarts
from bigcrawl.scheduler.handout.revisits import Revisits
from bigcrawl.scheduler.handout.slow_hosts import SlowHosts
from bigcrawl.scheduler.handout.start_gaps import StartGaps
from bigcrawl.scheduler.handout.suspects import Suspects
from bigcrawl.scheduler.records.held import Stage
from bigcrawl.tallies.tallies import Tallies

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.scheduler.gates.delays import Paces
    from bigcrawl.scheduler.gates.speed import SpeedControl
    from bigcrawl.scheduler.handout.ends import CountsOffers
    from bigcrawl.scheduler.records.held import HeldUrl


SILENT_MS = 2_000  # a slower fetch may take minutes; near BIGCRAWL_MAX_PAGES others are taken instead
SLOW_WAIT_MS = 5_000  # after that long, a URL of a slow host tries again to get one of the share's fetches


class Handout:
    """The URLs that a node holds, and those of them that may be fetched now.

    Attributes:
        ends: how URLs leave.
        held: all held URLs.
        health: which hosts answer, and which fail.
        crowd: how many fetches there may be at a time.
        start_gaps: the gaps between starts, including those that are not handed out.
        host_gaps: the gaps at hosts, from an end to the next start.
        in_process: the URLs that the engine has.
        revisits: which URLs are visited again when they end.
        suspects: URLs that may have killed a node.
        waits: how long URLs waited for the engine.
        lease_ends_ms: nothing is handed out after that, on the monotonic clock.
        wake_engine: tells the engine that there may be something for it.
        break_off: gives up what the engine is fetching.
    """

    def __init__(
        self,
        config: Config,
        clock: Clock,
        outbox: CountsOffers,
        paces: Paces,
        speed: SpeedControl,
        ask_again: Callable[[HeldUrl], None],
        tallies: Tallies | None = None,
        *,
        revisits: Revisits | None = None,
        dice: Callable[[], float] = random.random,
        call_later: Callable[[float, Callable[[HeldUrl], None], HeldUrl], object] | None = None,
    ) -> None:
        """Begin without an engine; `connect_engine` names it.

        Args:
            config: the crawl's.
            clock: the node's.
            outbox: where links leave the node.
            paces: how long hosts rest.
            speed: the node's share of the crawl's speed.
            ask_again: asks the gates for another start of a URL that has missed its own.
            tallies: where gaps are counted.
            revisits: which URLs are visited again; None for none.
            dice: returns random numbers from 0 to below 1.
            call_later: the event loop's, with one argument; None: that of the running loop.
        """
        tallies = tallies or Tallies()
        self._clock = clock
        self._speed = speed
        self._call_later = call_later or _call_later
        self._buffer: deque[HeldUrl] = deque()
        self._fetching = 0
        self._missed = MissedStarts(ask_again)
        self.crowd = Crowd(config.pace, clock, self._note_limit)
        self._slow = SlowHosts(config.politeness.slow_after_ms, self.crowd)
        self.start_gaps = StartGaps(clock, tallies)
        self.host_gaps = HostGaps(clock, paces, tallies, config.politeness.host_connections)
        self.revisits = revisits or Revisits(None, 0, clock.now_ms)
        self.ends = Ends(config.politeness, clock, outbox, paces, self.host_gaps, self.revisits, dice)
        self.held = self.ends.held
        self.health = self.ends.health
        self.in_process = InProcess(config.frontier.in_process_max)
        self.suspects = Suspects(self.in_process, clock, config.frontier.deaths_max, self._wake)
        self.waits = Histogram()
        self.lease_ends_ms = 0
        self.connect_engine()

    def __repr__(self) -> str:
        return f"<Handout held={len(self.held)} buffered={len(self._buffer)}>"

    def connect_engine(
        self,
        *,
        wake: Callable[[], None] = lambda: None,
        break_off: Callable[[], None] = lambda: None,
        on_limit: Callable[[int], None] = lambda limit: None,
    ) -> None:
        """Work with this engine from now on.

        Args:
            wake: tells it that there may be something for it.
            break_off: gives up what it is fetching.
            on_limit: called with each new limit on concurrent fetches.
        """
        self.wake_engine = wake
        self.break_off = break_off
        self._tell_limit = on_limit

    def _wake(self) -> None:
        self.wake_engine()

    def _note_limit(self, limit: int) -> None:
        self._tell_limit(limit)

    @property
    def fetching(self) -> int:
        """URLs that are being fetched."""
        return self._fetching

    @property
    def buffered(self) -> int:
        """URLs that wait for the engine."""
        return len(self._buffer) + len(self._missed.late) + self.suspects.waiting

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being fetched or waits to be."""
        return not (self._fetching or self.buffered)

    @property
    def soon_ended(self) -> int:
        """How many held URLs will end soon: all whose hosts have not been silent for a while. Cost: O(URLs held)."""
        since_ms = self._clock.monotonic_ms() - SILENT_MS
        return sum(not 0 <= held.fetching_since_ms <= since_ms for held in self.held)

    # --- the gatekeeper's outlet

    def admit(self, held: HeldUrl) -> None:
        """The URL may be fetched now. One that has missed a start goes first."""
        if held.stage is Stage.WAITING:
            held.enter_buffer()
            if held.passage.misses:
                self._missed.note_admitted(held)
            if held.suspicion is not None and not held.refusal:
                self.suspects.put(held)
            elif held.passage.misses:
                self._buffer.appendleft(held)
            else:
                self._buffer.append(held)
            self.wake_engine()

    def give_back(self, held: HeldUrl, delay_ms: int, counter: str = "", *, is_behind: bool = False) -> None:
        """Return the URL to its place, or behind its host's others. Its host rests at least for `delay_ms`."""
        self.ends.give_back(held, delay_ms, counter, is_behind=is_behind)
        self._wake_for_missed(held)

    def give_up(self, held: HeldUrl, reason: str, rule: str = "") -> None:
        """End the URL unfetched, and count it. With an errback it goes to the engine first, which refuses it."""
        self._leave(held)
        held.forbid(rule)
        if held.has_errback and held.stage in (Stage.WAITING, Stage.ROBOTS):
            self._refuse(held, reason)
            return
        self.ends.drop(held, reason)
        self._wake_for_missed(held)

    def fail(self, held: HeldUrl, error: str) -> None:
        """The URL's host has failed before the fetch. The URL goes to the engine all the same, and fails there."""
        self._leave(held)
        self._refuse(held, error)

    def _refuse(self, held: HeldUrl, why: str) -> None:
        held.refuse(why)
        self.admit(held)

    def end_as_poison(self, held: HeldUrl) -> None:
        """End the URL unfetched. Its errback is not run, because that may be what kills."""
        self.ends.drop(held, "poison")

    def _wake_for_missed(self, held: HeldUrl) -> None:
        if self._missed.is_asking(held):
            self.wake_engine()  # another late URL may ask now

    # --- the engine's side

    @property
    def has_lease(self) -> bool:
        """Whether this node may send requests: it has not slept, or been without Redis, for a whole lease."""
        return self._clock.monotonic_ms() < self.lease_ends_ms

    def note_lease(self, ends_ms: int) -> None:
        """The lease ends then, on the monotonic clock."""
        self.lease_ends_ms = ends_ms

    def pop(self) -> HeldUrl | None:
        """The next URL to fetch, or None; O(1)."""
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self.lease_ends_ms:
            return None  # no lease
        if self._fetching >= self.crowd.fetches_max:
            return None
        held = self._next_start(now_ms, self.suspects.next_ones(self._buffer) if self.suspects else self._buffer)
        if self._missed.late:
            self._missed.ask(now_ms, self.crowd.fetches_max - self._fetching)
        return held

    def _next_start(self, now_ms: int, line: deque[HeldUrl]) -> HeldUrl | None:
        speed, slow = self._speed, self._slow
        for _ in range(len(line)):
            held = line.popleft()
            if held.stage is not Stage.BUFFERED:
                continue
            if held.refusal:
                return self._started(held, now_ms)
            if now_ms > held.passage.until_ms:
                self._missed.put(held)
                continue
            if speed.limits and not speed.may_start(now_ms):
                speed.wake_later(now_ms)
                line.appendleft(held)
                return None
            if slow.hosts and not slow.have_room_for(held.host):
                self.give_back(held, SLOW_WAIT_MS)
                continue
            if wait_ms := self.start_gaps.try_start(held.gaps, now_ms):
                held.leave_buffer()
                self._call_later(wait_ms / 1000, self.admit, held)
                continue
            if speed.limits:
                speed.note_start()
            return self._started(held, now_ms)
        return None

    def _started(self, held: HeldUrl, now_ms: int) -> HeldUrl:
        held.start(now_ms)
        self._fetching += 1
        self.waits.note(now_ms - held.due_ms)
        if not held.refusal:
            self.host_gaps.note_start(held.host, now_ms)
        if self._slow.hosts:
            self._slow.note_start(held)
        return held

    def note_started(self, held: HeldUrl) -> None:
        """The engine has the request of a URL that `pop` returned."""
        self.in_process.start(held)
        if held.suspicion is not None:
            self.suspects.note_started(held)

    def note_answered(self, held: HeldUrl) -> None:
        """The fetch is over, however it went, and another one may start."""
        if held.fetching_since_ms >= 0:
            held.stop_fetching(self._clock.monotonic_ms())
            self._fetching -= 1
            self.in_process.note_answered(held)

    def end_fetched(self, held: HeldUrl) -> None:
        """The engine is done with the URL: downloaded, parsed and piped, or failed, or refused."""
        if held.fetching_since_ms >= 0:
            self.note_answered(held)
        if self.in_process.end(held) and self.suspects:
            self.suspects.note_done(held)
        held.finish(self._clock.monotonic_ms())
        slow = self._slow
        if slow.hosts or held.uses_slow_share or held.download_ms > slow.after_ms:
            slow.note_end(held)
        if self._speed.limits and not held.refusal:
            self._speed.note_ended(held.fetched_bytes)
        self.ends.end_fetched(held)

    def return_unstarted(self) -> None:
        """Give back every URL that the engine has not started."""
        self._buffer.clear()
        self._missed.clear()
        for held in self.held:
            if held.stage in (Stage.WAITING, Stage.BUFFERED):
                self.give_back(held, 0)

    def return_all(self) -> None:
        """Give back every URL that has not ended. Hosts that were asked for something rest."""
        self.return_unstarted()
        for held in self.held:
            self.give_back(held, self.ends.rest_after(held))

    def _leave(self, held: HeldUrl) -> None:
        self.note_answered(held)
        self._slow.leave(held)


def _call_later(delay_s: float, call: Callable[[HeldUrl], None], held: HeldUrl) -> object:
    return asyncio.get_running_loop().call_later(delay_s, call, held)
