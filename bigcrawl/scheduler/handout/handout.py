r"""From taken to ended inside one node: memory only, used by Scrapy's engine. Nothing here waits.

held.add -> gatekeeper -> admit -> buffer.pop -> fetches.start ... fetches.end -> acknowledged by the pump
                       \-> give_back, give_up -----------------------------^
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from bigcrawl.scheduler.gates.delays import HostDelays
from bigcrawl.scheduler.gates.speed import SpeedControl
from bigcrawl.scheduler.handout.buffer import FetchBuffer
from bigcrawl.scheduler.handout.concurrency import ConcurrencyLimit
from bigcrawl.scheduler.handout.ends import CountsOffers, UrlEnder
from bigcrawl.scheduler.handout.fetches import RunningFetches
from bigcrawl.scheduler.handout.host_gaps import HostGaps
from bigcrawl.scheduler.handout.lanes import HostLanes
from bigcrawl.scheduler.handout.missed_starts import MissedStarts
from bigcrawl.scheduler.handout.slow_hosts import SlowHosts
from bigcrawl.scheduler.handout.start_gaps import StartGaps
from bigcrawl.scheduler.handout.suspects import SuspectUrls
from bigcrawl.scheduler.records.held import HeldUrl, Stage
from bigcrawl.scheduler.records.outcomes import rule_hash

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.scheduler.crawl.joined_crawl import JoinedCrawl
    from bigcrawl.scheduler.handout.engine_side import EngineSide
    from bigcrawl.scheduler.handout.observers import Observers
    from bigcrawl.scheduler.records.at_gates import Space


UNTOLD = frozenset({"elsewhere"})
"""Reasons for which a URL ends as a duplicate does, without a call of its errback."""
SILENT_MS = 2_000  # a slower fetch may take minutes; near BIGCRAWL_MAX_PAGES others are taken instead


class Handout:
    """The URLs that a node holds. Makes the parts through which they pass, and takes URLs from the gates.

    Attributes:
        crowd: the limit of concurrent fetches.
        start_gaps: the gaps between starts, also of fetches that are not handed out.
        in_process: the record of URLs in the engine.
        lanes: the hosts in use, and URLs that were taken ahead.
        lease: nothing is handed out after its end.
        wake_engine: has the engine ask for URLs.
        break_off: gives up the fetches under way.
    """

    def __init__(
        self,
        crawl: JoinedCrawl,
        engine: EngineSide,
        outbox: CountsOffers,
        observers: Observers,
        *,
        dice: Callable[[], float] = random.random,
        call_later: Callable[[float, Callable[[HeldUrl], None], HeldUrl], object] | None = None,
    ) -> None:
        """Make the parts. `dice` returns random numbers below 1; `call_later` is the event loop's."""
        config, clock = crawl.config, crawl.clock
        politeness = config.politeness
        self.wake_engine = engine.wake
        self.break_off = engine.break_off
        self.paces = paces = HostDelays(config, crawl.pld_of)
        self.speed = speed = SpeedControl(config, crawl.client, clock, self._wake)
        self._clock = clock
        self._call_later = call_later or _call_later
        self.crowd = ConcurrencyLimit(config.pace, clock, engine.record_limit)
        self.start_gaps = StartGaps(clock, paces, politeness.host_connections, observers.record_gap)
        self.host_gaps = HostGaps(clock, paces, politeness.host_connections, observers.record_gap)
        self.ends = UrlEnder(politeness, clock, outbox, paces, self.host_gaps, observers, dice)
        self.held = self.ends.held
        self.health = self.ends.health
        self.in_process = crawl.in_process
        self.suspects = SuspectUrls(self.in_process, clock, config.frontier.deaths_max, self._wake)
        slow = SlowHosts(politeness.slow_after_ms, self.crowd)
        connections, urls_max = politeness.host_connections, config.frontier.in_process_max
        self.lanes = HostLanes(clock, paces, self.ends, connections, urls_max, self.give_back)
        self.fetches = RunningFetches(clock, speed, slow, self.in_process, self.suspects, self.ends, self.lanes)
        self._missed = MissedStarts(self.lanes.offer)
        self.buffer = FetchBuffer(
            clock, self.fetches, self.crowd, self.start_gaps, self._missed, self.give_back, self._admit_later
        )
        self.lease = self.buffer.lease
        engine.record_limit(self.crowd.limit)

    def __repr__(self) -> str:
        return f"<Handout held={len(self.held)} {self.buffer!r} {self.fetches!r}>"

    def _wake(self) -> None:
        self.wake_engine()

    @property
    def is_idle(self) -> bool:
        return not (self.fetches.under_way or self.buffer.waiting)

    @property
    def waits_for_speed(self) -> bool:
        """Whether nothing is in process, and all held URLs wait because the crawl's speed is used up."""
        if len(self.in_process) or self.held.unacknowledged:
            return False
        waiting = self.buffer.waiting if self.speed.is_refused else 0
        return len(self.held) <= waiting + self.speed.waiting_long

    @property
    def soon_ended(self) -> int:
        """Count the held URLs that will end soon, because their hosts answer. O(URLs held)."""
        since_ms = self._clock.monotonic_ms() - SILENT_MS
        return sum(not 0 <= held.fetching_since_ms <= since_ms for held in self.held)

    def admit(self, held: HeldUrl) -> None:
        if held.stage is Stage.WAITING:
            held.go_to(Stage.BUFFERED)
            self.buffer.put(held)
            self.wake_engine()

    def try_send(self, gaps: tuple[Space, ...], held: HeldUrl | None = None) -> int:
        """Return 0 if a fetch may be sent that keeps these gaps, else the us to wait. `held` is its URL, if any."""
        wait_us = self.start_gaps.try_send(gaps) if gaps else 0
        if held is not None and not wait_us:
            self.host_gaps.record_start(held.host, self._clock.monotonic_ms())
            if self.start_gaps.are_of_hosts:
                self.lanes.record_sent(held)
        return wait_us

    def _admit_later(self, delay_s: float, held: HeldUrl) -> None:
        self._call_later(delay_s, self.admit, held)

    def give_back(self, held: HeldUrl, delay_ms: int, counter: str = "", *, is_behind: bool = False) -> None:
        """Return the URL to its place in its host's queue, or to the end. Its host rests at least `delay_ms`."""
        self.ends.give_back(held, delay_ms, counter, is_behind=is_behind)
        self.lanes.record_departure(held, is_back=True)
        self._wake_for_missed(held)

    def give_up(self, held: HeldUrl, reason: str, rule: str = "") -> None:
        """End the URL unfetched, and count it.

        With an errback, it passes through the engine first, except for `UNTOLD`.
        """
        self.fetches.stop_waiting_for(held)
        held.record_detail(rule_hash(rule) if rule else 0)
        if held.has_errback and reason not in UNTOLD and held.stage in (Stage.WAITING, Stage.ROBOTS):
            self._admit_refused(held, reason)
            return
        self.ends.drop_url(held, reason)
        self.lanes.record_departure(held)
        self._wake_for_missed(held)

    def fail(self, held: HeldUrl, outcome: str, error: Exception | None = None) -> None:
        """Fail a URL before its fetch. It still passes through the engine and fails there, unless it has left."""
        self.fetches.stop_waiting_for(held)
        if held.stage in (Stage.WAITING, Stage.ROBOTS):
            self._admit_refused(held, outcome, error)

    def _admit_refused(self, held: HeldUrl, why: str, error: Exception | None = None) -> None:
        held.refuse(why, error)
        held.go_to(Stage.WAITING)
        self.admit(held)

    def _wake_for_missed(self, held: HeldUrl) -> None:
        if self._missed.is_asking(held):
            self.wake_engine()  # another late URL may ask now

    def return_unstarted(self) -> None:
        self.buffer.clear()
        for held in self.held:
            if held.stage in (Stage.WAITING, Stage.BUFFERED):
                self.give_back(held, 0)

    def return_all(self) -> None:
        self.return_unstarted()
        for held in self.held:
            self.give_back(held, self.ends.rest_after(held))


def _call_later(delay_s: float, call: Callable[[HeldUrl], None], held: HeldUrl) -> object:
    return asyncio.get_running_loop().call_later(delay_s, call, held)
