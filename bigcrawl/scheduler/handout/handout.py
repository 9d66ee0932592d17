r"""From taken to ended inside one node (steps 9 to 14): memory only, what Scrapy's engine touches.

    add -> gatekeeper -> admit -> buffer -> pop -> started -> end_fetched -> acknowledged by the pump
                      \-> give_back, give_up ------------------^

No exception leaves `pop`, and nothing here waits.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from typing import TYPE_CHECKING, Protocol

from bigcrawl.histogram import Histogram
from bigcrawl.politeness.backoff_policy import BackoffPolicy, is_failure
from bigcrawl.redisdb.scripts import ANSWERS, NO_NEWS, Ended, moved
from bigcrawl.scheduler.crawl.in_process import InProcess
from bigcrawl.scheduler.handout.concurrency import Crowd
from bigcrawl.scheduler.handout.host_gaps import HostGaps
from bigcrawl.scheduler.handout.host_health import HostHealth
from bigcrawl.scheduler.handout.host_rests import RestsAfterFetches
from bigcrawl.scheduler.handout.missed_starts import MissedStarts
from bigcrawl.scheduler.handout.retry_share import FailingShare
from bigcrawl.scheduler.handout.slow_hosts import SlowHosts
from bigcrawl.scheduler.handout.start_gaps import StartGaps
from bigcrawl.scheduler.handout.suspects import Suspects
from bigcrawl.scheduler.records.held import Stage
from bigcrawl.scheduler.records.held_urls import HeldUrls
from bigcrawl.scheduler.records.member import moved_member, order_of, priority_after_failure
from bigcrawl.scheduler.records.outcomes import ABORTED
from bigcrawl.tallies.tallies import Tallies

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config, PolitenessConfig
    from bigcrawl.scheduler.gates.delays import Paces
    from bigcrawl.scheduler.gates.speed import SpeedControl
    from bigcrawl.scheduler.records.held import HeldUrl


BAD_PAGES_MAX = 2  # in a row; any host may have one bad page
SILENT_MS = 2_000  # a slower fetch may take minutes; near BIGCRAWL_MAX_PAGES others are taken instead
SLOW_WAIT_MS = 5_000  # after that long, a URL of a slow host tries again to get one of the share's fetches
RETURN = b"="


class CountsOffers(Protocol):
    """Where links leave the node; in a node, `node.outbox.Outbox`."""

    @property
    def offered(self) -> int:
        """How many URLs it has been offered so far."""


class Handout:
    """The URLs that a node holds, and those of them that may be fetched now.

    Attributes:
        health: which hosts answer, and which fail.
        held: all held URLs.
        crowd: how many fetches there may be at a time.
        start_gaps: the gaps between starts, including those that are not handed out.
        host_gaps: the gaps at hosts, from an end to the next start.
        in_process: the URLs that the engine has.
        suspects: URLs that may have killed a node.
        fetch_times, waits, lateness: how long fetches took, URLs waited for the engine, and due hosts for this node.
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
            dice: returns random numbers from 0 to below 1.
            call_later: the event loop's, with one argument; None: that of the running loop.
        """
        tallies = tallies or Tallies()
        self._clock = clock
        self._outbox = outbox
        self._paces = paces
        self._speed = speed
        self._dice = dice
        self._call_later = call_later or _call_later
        self._buffer: deque[HeldUrl] = deque()
        self._fetching = 0
        self._missed = MissedStarts(ask_again)
        self._failing_share = FailingShare()
        self._rests = RestsAfterFetches(config.politeness, paces)
        self.health = HostHealth(_backoff_of(config.politeness), dice)
        self.held = HeldUrls()
        self.crowd = Crowd(config.pace, clock, self._note_limit)
        self._slow = SlowHosts(config.politeness.slow_after_ms, self.crowd)
        self.start_gaps = StartGaps(clock, tallies)
        self.host_gaps = HostGaps(clock, paces, tallies, config.politeness.host_connections)
        self.in_process = InProcess(config.frontier.in_process_max)
        self.suspects = Suspects(self.in_process, clock, config.frontier.deaths_max, self._wake)
        self.fetch_times = Histogram()
        self.waits = Histogram()
        self.lateness = Histogram()
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

    @property
    def late_ms(self) -> float:
        """How long due hosts wait for this node, by the last URLs it took; 0 if it took none lately."""
        return self._failing_share.late_ms(self._clock.monotonic_ms())

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
        if held.stage is Stage.ROBOTS and self._paces.differ:
            delay_ms = max(delay_ms, self._paces.host_delay_ms(held.host))
        was_asked = held.rest_after_head_ms >= 0
        member, place = moved_member(held.fields, held.fields.priority) if was_asked else RETURN, NO_NEWS
        # Behind the others, as a page that failed: the next URL shows whether it was the host.
        if is_behind or held.host_report not in ("", ANSWERS):
            priority = priority_after_failure(held.fields.priority)
            held.go_behind(order_of(priority, held.seq))
            member, place = moved_member(held.fields, priority), moved(held.next_order)
        news = place
        if held.host_report:
            news = self.health.news_of(held, held.host_report)
            delay_ms = max(delay_ms, self.health.rest_ms(held.host))
        self.held.end(held, Ended(held.seq, delay_ms, member, counter, 0, news), 0)
        self._wake_for_missed(held)

    def give_up(self, held: HeldUrl, reason: str, rule: str = "") -> None:
        """End the URL unfetched, and count it. With an errback it goes to the engine first, which refuses it."""
        self._leave(held)
        held.forbid(rule)
        if held.has_errback and held.stage in (Stage.WAITING, Stage.ROBOTS):
            self._refuse(held, reason)
            return
        self.held.end(held, Ended(held.seq, self._rest_after_head(held), b"", f"dropped:{reason}"), 0)
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
        self.held.end(held, Ended(held.seq, 0, b"", "dropped:poison"), 0)

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
        self.note_answered(held)
        if self.in_process.end(held) and self.suspects:
            self.suspects.note_done(held)
        held.finish(self._clock.monotonic_ms())
        slow = self._slow
        if slow.hosts or held.uses_slow_share or held.download_ms > slow.after_ms:
            slow.note_end(held)
        if self._speed.limits and not held.refusal:
            self._speed.note_ended(held.fetched_bytes)
        if held.outcome == ABORTED:
            rest_ms = self._rests.after(held)
            end = Ended(held.seq, rest_ms, RETURN)
        else:
            counter = f"retried:{held.outcome}" if held.next_try else held.outcome or "dropped:ignored"
            if not held.refusal:
                self.fetch_times.note(held.download_ms)
            news = self.health.news_of_fetch(held)
            is_refused = held.refusal and not is_failure(held.refusal)
            rest_ms = self._rest_after_head(held)
            if not is_refused:
                rest_ms = max(self._rests.after(held), self.health.rest_ms(held.host))
            end = Ended(held.seq, rest_ms, held.next_try, counter, held.fetched_bytes, news)
        if not held.refusal:
            self.host_gaps.note_end(held.host, held.answered_ms, rest_ms)
        self.held.end(held, end, self._outbox.offered)

    def put_off_if_late(self, held: HeldUrl, late_ms: int) -> bool:
        """Give back a URL that was just taken if this node is behind and the URL or its host has been failing.

        Args:
            held: the URL.
            late_ms: how late it was taken, after its host was due.

        Returns:
            Whether it was given back.
        """
        self.lateness.note(late_ms)
        is_retried = held.fields.attempts > 0
        health = self.health
        host_fails = health.fails(held.host) or health.bad_pages(held.host) >= BAD_PAGES_MAX
        now_ms = self._clock.monotonic_ms()
        rest_ms = self._failing_share.count_taken(late_ms, now_ms, fails=is_retried or host_fails)
        if rest_ms:
            if not host_fails:
                rest_ms = self._rests.after(held)  # its host's other URLs are not put off
            self.give_back(held, round(rest_ms * (1 + self._dice() / 2)), "put_off", is_behind=is_retried)
        return rest_ms > 0

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
            self.give_back(held, self._rests.after(held))

    def _rest_after_head(self, held: HeldUrl) -> int:
        """How long the host of a URL rests that is not fetched, in ms: 0 unless it was asked by HEAD."""
        if held.rest_after_head_ms < 0:
            return 0
        return max(held.rest_after_head_ms, self._paces.host_delay_ms(held.host))

    def _leave(self, held: HeldUrl) -> None:
        self.note_answered(held)
        self._slow.leave(held)


def _backoff_of(policy: PolitenessConfig) -> BackoffPolicy:
    return BackoffPolicy(
        policy.backoff_first_ms, policy.backoff_longest_ms, policy.retry_after_max_ms, policy.host_failures_max
    )


def _call_later(delay_s: float, call: Callable[[HeldUrl], None], held: HeldUrl) -> object:
    return asyncio.get_running_loop().call_later(delay_s, call, held)
