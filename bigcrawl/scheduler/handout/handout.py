r"""From taken to ended inside one node (steps 9 to 14): memory only, what Scrapy's engine touches.

    held.add -> gatekeeper -> admit -> buffer.pop -> fetches.start ... fetches.end -> acknowledged by the pump
                           \-> give_back, give_up -----------------------------^

Nothing here waits.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from bigcrawl.scheduler.crawl.in_process import InProcess
from bigcrawl.scheduler.handout.buffer import Buffer
from bigcrawl.scheduler.handout.concurrency import Crowd
from bigcrawl.scheduler.handout.ends import Ends
from bigcrawl.scheduler.handout.fetches import Fetches
from bigcrawl.scheduler.handout.host_gaps import HostGaps
from bigcrawl.scheduler.handout.lanes import Lanes
from bigcrawl.scheduler.handout.lease import Lease
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


UNTOLD = frozenset({"elsewhere"})
"""Why URLs end as duplicates do: their errbacks are not called."""
SILENT_MS = 2_000  # a slower fetch may take minutes; near BIGCRAWL_MAX_PAGES others are taken instead


class Handout:
    """The URLs that a node holds. Makes the parts through which they pass, and takes URLs from the gates.

    Attributes:
        buffer: those that may be fetched now.
        fetches: those that the engine has.
        ends: how URLs leave.
        held: all held URLs.
        health: which hosts answer, and which fail.
        crowd: how many fetches there may be at a time.
        start_gaps: the gaps between starts, including those that are not handed out.
        host_gaps: the gaps at hosts, from an end to the next start.
        in_process: the URLs that the engine has.
        revisits: which URLs are visited again when they end.
        suspects: URLs that may have killed a node.
        lanes: which hosts are used, and URLs that were taken ahead.
        lease: nothing is handed out after its end.
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
        tallies, politeness = tallies or Tallies(), config.politeness
        self._clock = clock
        self._call_later = call_later or _call_later
        self._missed = MissedStarts(ask_again)
        self.lease = Lease(clock)
        self.crowd = Crowd(config.pace, clock, self._note_limit)
        self.start_gaps = StartGaps(clock, tallies)
        self.host_gaps = HostGaps(clock, paces, tallies, politeness.host_connections)
        self.revisits = revisits or Revisits(None, 0, clock.now_ms)
        self.ends = Ends(politeness, clock, outbox, paces, self.host_gaps, self.revisits, dice)
        self.held = self.ends.held
        self.health = self.ends.health
        self.in_process = InProcess(config.frontier.in_process_max)
        self.suspects = Suspects(self.in_process, clock, config.frontier.deaths_max, self._wake)
        slow = SlowHosts(politeness.slow_after_ms, self.crowd)
        connections, urls_max = politeness.host_connections, config.frontier.in_process_max
        self.lanes = Lanes(clock, paces, self.ends, connections, urls_max, self.give_back)
        self.fetches = Fetches(
            clock, speed, slow, self.host_gaps, self.in_process, self.suspects, self.ends, self.lanes
        )
        self.buffer = Buffer(
            clock,
            self.lease,
            self.crowd,
            speed,
            slow,
            self.start_gaps,
            self.suspects,
            self._missed,
            self.fetches,
            self.give_back,
            self._admit_later,
        )
        self.connect_engine()

    def __repr__(self) -> str:
        return f"<Handout held={len(self.held)} {self.buffer!r} {self.fetches!r}>"

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
    def is_idle(self) -> bool:
        """Whether nothing is being fetched or waits to be."""
        return not (self.fetches.under_way or self.buffer.waiting)

    @property
    def soon_ended(self) -> int:
        """How many held URLs will end soon: all whose hosts have not been silent for a while. Cost: O(URLs held)."""
        since_ms = self._clock.monotonic_ms() - SILENT_MS
        return sum(not 0 <= held.fetching_since_ms <= since_ms for held in self.held)

    # --- the gatekeeper's outlet

    def admit(self, held: HeldUrl) -> None:
        """The URL may be fetched now."""
        if held.stage is Stage.WAITING:
            held.enter_buffer()
            self.buffer.put(held)
            self.wake_engine()

    def _admit_later(self, delay_s: float, held: HeldUrl) -> None:
        self._call_later(delay_s, self.admit, held)

    def give_back(self, held: HeldUrl, delay_ms: int, counter: str = "", *, is_behind: bool = False) -> None:
        """Return the URL to its place, or behind its host's others. Its host rests at least for `delay_ms`."""
        self.ends.give_back(held, delay_ms, counter, is_behind=is_behind)
        self.lanes.note_left(held, is_back=True)
        self._wake_for_missed(held)

    def give_up(self, held: HeldUrl, reason: str, rule: str = "") -> None:
        """End the URL unfetched, and count it. With an errback it goes to the engine first, unless it is `UNTOLD`."""
        self.fetches.leave(held)
        held.forbid(rule)
        if held.has_errback and reason not in UNTOLD and held.stage in (Stage.WAITING, Stage.ROBOTS):
            self._refuse(held, reason)
            return
        self.ends.drop(held, reason)
        self.lanes.note_left(held)
        self._wake_for_missed(held)

    def fail(self, held: HeldUrl, outcome: str, error: Exception | None = None) -> None:
        """The URL fails before its fetch. It goes to the engine all the same, and fails there, unless it has left."""
        self.fetches.leave(held)
        if held.stage in (Stage.WAITING, Stage.ROBOTS):
            self._refuse(held, outcome, error)

    def _refuse(self, held: HeldUrl, why: str, error: Exception | None = None) -> None:
        held.refuse(why, error)
        self.admit(held)

    def _wake_for_missed(self, held: HeldUrl) -> None:
        if self._missed.is_asking(held):
            self.wake_engine()  # another late URL may ask now

    # --- leaving

    def return_unstarted(self) -> None:
        """Give back every URL that the engine has not started."""
        self.buffer.clear()
        for held in self.held:
            if held.stage in (Stage.WAITING, Stage.BUFFERED):
                self.give_back(held, 0)

    def return_all(self) -> None:
        """Give back every URL that has not ended. Hosts that were asked for something rest."""
        self.return_unstarted()
        for held in self.held:
            self.give_back(held, self.ends.rest_after(held))


def _call_later(delay_s: float, call: Callable[[HeldUrl], None], held: HeldUrl) -> object:
    return asyncio.get_running_loop().call_later(delay_s, call, held)
