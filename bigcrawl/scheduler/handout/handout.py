r"""From taken to ended inside one node (steps 9 to 14): memory only, what Scrapy's engine touches.

    add -> gatekeeper -> admit -> buffer -> pop -> started -> end_fetched -> acknowledged by the pump
                      \-> give_back, give_up ------------------^

No exception leaves `pop`, and nothing here waits.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict, deque
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from bigcrawl.politeness.backoff_policy import FAILURES, NO_WORD, BackoffPolicy, backoff, is_failure
from bigcrawl.politeness.throttle_policy import DelayPolicy, host_delay_ms
from bigcrawl.redisdb.scripts import ANSWERS, NO_NEWS, Ended, answers, fails, moved
from bigcrawl.scheduler.crawl.in_process import InProcess
from bigcrawl.scheduler.gates.delays import Paces
from bigcrawl.scheduler.handout.concurrency import Crowd
from bigcrawl.scheduler.handout.host_health import HostHealth, remember
from bigcrawl.scheduler.handout.retry_share import FailingShare
from bigcrawl.scheduler.handout.suspects import Suspects
from bigcrawl.scheduler.records.held import Stage
from bigcrawl.scheduler.records.held_urls import HeldUrls
from bigcrawl.scheduler.records.member import lowered, moved_member, order_of
from bigcrawl.scheduler.records.outcomes import ABORTED, rule_hash
from bigcrawl.scheduler.records.passage import MISSED

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.redisdb.scripts import HostNews
    from bigcrawl.scheduler.gates.speed import SpeedControl
    from bigcrawl.scheduler.records.held import HeldUrl


SERVERS_REMEMBERED = 10_000
ASKED_AGAIN_MAX = 16  # starts that were missed, at a time
SLOW_FETCHES = 4  # slow hosts have one in so many of a node's fetches at a time: however many there are, others go on
BAD_PAGES_MAX = 2  # in a row: one may be bad on any host
NEVER_MS = 1 << 62
SILENT_MS = 2_000  # a fetch that has taken so long may take minutes: the last pages of a crawl are fetched elsewhere
SLOW_WAIT_MS = 5_000  # before a slow host asks again for one of the fetches that slow hosts have together
RETURN = b"="
OVERLOADED_PAGE, OVERLOADED_FACTOR = "status:503", 2  # its host rests twice as long, be it the page's or the host's
BROKEN = ("status:5", "error:")  # what outcomes of pages that failed begin with


class CountsOffers(Protocol):
    """Where links leave the node; `node.outbox.Outbox`, in a node."""

    @property
    def offered(self) -> int:
        """How many URLs it was offered so far."""


class Handout:
    """The URLs a node holds, and those of them that may be fetched now."""

    def __init__(
        self,
        config: Config,
        clock: Clock,
        outbox: CountsOffers,
        paces: Paces | None = None,
        dice: Callable[[], float] = random.random,
    ) -> None:
        policy = config.politeness
        self._delays = DelayPolicy(
            policy.host_delay_ms, policy.crawl_delay_max_ms, policy.download_factor, policy.slow_after_ms
        )
        self._backoff = BackoffPolicy(
            policy.backoff_first_ms, policy.backoff_longest_ms, policy.retry_after_max_ms, policy.host_failures_max
        )
        self._dice = dice
        self.health = HostHealth()
        self._failing_share = FailingShare()
        self._slow: OrderedDict[str, int] = OrderedDict()
        self._slow_after_ms = policy.slow_after_ms or NEVER_MS
        self._slow_fetching = 0
        self._fetching = 0
        self._paces = paces or Paces(config)
        self._clock = clock
        self._outbox = outbox
        self._buffer: deque[HeldUrl] = deque()
        self._started_ms: OrderedDict[str, int] = OrderedDict()
        self._missed: deque[HeldUrl] = deque()  # buffered ones that are too late for their starts
        self._asked_again: set[HeldUrl] = set()
        self.held = HeldUrls()
        self.crowd = Crowd(config.pace, clock)
        self.lease_ends_ms = 0  # monotonic; nothing is handed out after it
        self.wake_engine: Callable[[], None] = _nothing
        self.break_off: Callable[[], None] = _nothing  # gives up what is under way
        self.call_later: Callable[[float, Callable[[HeldUrl], None], HeldUrl], object] = _call_later
        self.ask_again: Callable[[HeldUrl], None] = self.admit  # for another start
        self.speed: SpeedControl | None = None
        self.in_process = InProcess(config.frontier.in_process_max)
        self.suspects = Suspects(self.in_process, clock, config.frontier.deaths_max)

    def __repr__(self) -> str:
        return f"<Handout held={len(self.held)} buffered={len(self._buffer)}>"

    @property
    def buffered(self) -> int:
        """URLs that wait for the engine."""
        return len(self._buffer) + len(self._missed) + self.suspects.waiting

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being fetched, and nothing could be."""
        return not (self._fetching or self.buffered)

    @property
    def soon_ended(self) -> int:
        """The URLs held, but for those whose hosts have been silent for a while. Cost: O(URLs held)."""
        since_ms = self._clock.monotonic_ms() - SILENT_MS
        return sum(not 0 <= held.fetching_since_ms <= since_ms for held in self.held)

    @property
    def late_ms(self) -> float:
        """How long hosts wait for this node when they are due: of the last URLs it took, 0 if it took none lately."""
        return self._failing_share.late_ms(self._clock.monotonic_ms())

    # --- the gatekeeper's outlet

    def admit(self, held: HeldUrl) -> None:
        """The URL may be fetched now; one that has missed a start before is the next one."""
        if held.stage is Stage.WAITING:
            held.stage = Stage.BUFFERED
            if held.passage.misses:
                self._asked_again.discard(held)
            if held.suspicion is not None and not held.refusal:
                self.suspects.put(held)
            elif held.passage.misses:
                self._buffer.appendleft(held)
            else:
                self._buffer.append(held)
            self.wake_engine()

    def give_back(self, held: HeldUrl, delay_ms: int, counter: str = "", *, is_behind: bool = False) -> None:
        """The URL returns to its place, or behind its host's others; its host rests, also as the URL said it must."""
        if held.stage is Stage.ROBOTS and self._paces.differ:
            delay_ms = max(delay_ms, self._paces.host_delay_ms(held.host))
        member, place = RETURN, NO_NEWS
        # As a page that failed: the next URL tells whether it was the host.
        if is_behind or held.said not in ("", ANSWERS):
            priority = lowered(held.fields.priority)
            held.next_order = order_of(priority, held.seq)
            member, place = moved_member(held.fields, priority), moved(held.next_order)
        health = self._health(held, held.said) if held.said else place
        delay_ms = max(delay_ms, self._rest_for_bad_ms(held)) if held.said else delay_ms
        self.held.end(held, Ended(held.seq, delay_ms, member, counter, 0, health), 0)
        self._wake_for_missed(held)

    def give_up(self, held: HeldUrl, reason: str, rule: str = "") -> None:
        """The URL ends unfetched, counted; one with an errback goes to the engine first, to be refused there."""
        self._leave(held)
        held.detail = rule_hash(rule) if rule else 0
        if held.has_errback and held.stage in (Stage.WAITING, Stage.ROBOTS):
            self._refuse(held, reason)
            return
        self.held.end(held, Ended(held.seq, 0, b"", f"dropped:{reason}"), 0)
        self._wake_for_missed(held)

    def fail(self, held: HeldUrl, error: str) -> None:
        """The URL's host has failed before it was fetched; it goes to the engine all the same, to fail there."""
        self._leave(held)
        self._refuse(held, error)

    def _refuse(self, held: HeldUrl, why: str) -> None:
        held.stage = Stage.WAITING
        held.refusal = why
        self.admit(held)

    def end_as_poison(self, held: HeldUrl) -> None:
        """The URL ends unfetched; its errback is not run: it may be what kills."""
        self.held.end(held, Ended(held.seq, 0, b"", "dropped:poison"), 0)

    def _wake_for_missed(self, held: HeldUrl) -> None:
        if held in self._asked_again:
            self.wake_engine()  # another one may ask now

    # --- the engine's side

    @property
    def has_lease(self) -> bool:
        """Whether this node may put anything on the wire; not when it slept, or heard nothing of Redis for so long."""
        return self._clock.monotonic_ms() < self.lease_ends_ms

    def pop(self) -> HeldUrl | None:
        """The next URL to fetch, or None; O(1)."""
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self.lease_ends_ms:
            return None  # as `has_lease`
        if self._fetching >= self.crowd.fetches_max:
            return None
        held = self._next_start(now_ms, self.suspects.next_ones(self._buffer) if self.suspects else self._buffer)
        if self._missed:
            self._ask_again(now_ms)
        return held

    def _next_start(self, now_ms: int, line: deque[HeldUrl]) -> HeldUrl | None:
        for _ in range(len(line)):
            held = line.popleft()
            if held.stage is not Stage.BUFFERED:
                continue
            if now_ms > held.passage.until_ms and not held.refusal:
                self._missed.append(held)
                continue
            if self._is_slowed(held, now_ms):
                line.appendleft(held)
                return None
            if self._slow and not held.refusal and not self._slow_may_start(held):
                continue
            if held.refusal or self._gaps_allow(held, now_ms):
                held.stage = Stage.STARTED
                held.fetching_since_ms = now_ms
                self._fetching += 1
                if self._slow and held.host in self._slow:
                    held.is_slow = True
                    self._slow_fetching += 1
                if self.speed is not None and self.speed.limits and not held.refusal:
                    self.speed.note_start()
                return held
        return None

    def note_started(self, held: HeldUrl) -> None:
        """The engine has the request of a URL that was popped."""
        self.in_process.start(held)
        if held.suspicion is not None:
            self.suspects.note_started(held)

    def note_answered(self, held: HeldUrl) -> None:
        """The fetch is over, however it went: there is room for another one."""
        if held.fetching_since_ms >= 0:
            held.fetching_since_ms = -1
            self._fetching -= 1
            self.in_process.note_answered(held)

    def end_fetched(self, held: HeldUrl) -> None:
        """The engine is done with the URL: downloaded, parsed and piped, or failed, or refused."""
        self.note_answered(held)
        if self.in_process.end(held) and self.suspects:
            self.suspects.note_done(held)
        held.ended_ms = self._clock.monotonic_ms()
        if self._slow or held.is_slow or held.download_ms > self._slow_after_ms:
            self._note_speed(held)
        if self.speed is not None and self.speed.limits and not held.refusal:
            self.speed.note_ended(held.fetched_bytes)
        if held.outcome == ABORTED:
            end = Ended(held.seq, self._rest_ms(held), RETURN)
        else:
            counter = f"retried:{held.outcome}" if held.next_try else held.outcome or "dropped:ignored"
            word = self._word(held)
            is_refused = held.refusal and not is_failure(held.refusal)
            rest_ms = 0 if is_refused else max(self._rest_ms(held), self._rest_for_bad_ms(held))
            end = Ended(held.seq, rest_ms, held.next_try, counter, held.fetched_bytes, word)
        self.held.end(held, end, self._outbox.offered)

    def is_put_off(self, held: HeldUrl, late_ms: int) -> bool:
        """Give back a URL that was just taken, `late_ms` after its host was due, if either fails and others wait."""
        is_retried = held.fields.attempts > 0
        health = self.health
        host_fails = health.fails(held.host) or health.bad_pages(held.host) >= BAD_PAGES_MAX
        now_ms = self._clock.monotonic_ms()
        rest_ms = self._failing_share.rest_ms(late_ms, now_ms, fails=is_retried or host_fails)
        if rest_ms:
            if not host_fails:
                rest_ms = self._rest_ms(held)  # its host's others go on
            self.give_back(held, round(rest_ms * (1 + self._dice() / 2)), "put_off", is_behind=is_retried)
        return rest_ms > 0

    def retire_after(self, failures_max: int) -> None:
        """Let so many failures in a row retire a host from now on, 0: none."""
        if failures_max != self._backoff.failures_max:
            self._backoff = replace(self._backoff, failures_max=failures_max)

    def return_unstarted(self) -> None:
        """Give back every URL that the engine has not started."""
        self._buffer.clear()
        self._missed.clear()
        for held in self.held:
            if held.stage in (Stage.WAITING, Stage.BUFFERED):
                self.give_back(held, 0)

    def return_all(self) -> None:
        """Give back every URL that has not ended; the hosts of those that were asked for something rest."""
        self.return_unstarted()
        for held in self.held:
            self.give_back(held, self._rest_ms(held))

    def _word(self, held: HeldUrl) -> HostNews:
        """What a fetched URL says of its host."""
        outcome = held.outcome
        if outcome in FAILURES:
            return self._health(held, outcome)
        if outcome.startswith(BROKEN) and outcome not in NO_WORD:
            self.health.note_broken(held)
            return answers(held.next_order)
        if outcome.startswith("status:"):
            self.health.note_answer(held.host)
            return answers(held.next_order)
        return moved(held.next_order)

    def _health(self, held: HeldUrl, said: str) -> HostNews:
        """A word on a host, for Redis to count; remembered here too."""
        if said == ANSWERS:
            self.health.note_answer(held.host)
            return answers()
        if not self.health.note_failure(held, said):
            return moved(held.next_order)
        return fails(said, backoff(self._backoff, self._dice(), held.retry_after_ms), held.next_order)

    def _rest_for_bad_ms(self, held: HeldUrl) -> int:
        """How long a host of which pages fail one after the other rests at least."""
        return self.health.rest_ms(held.host, self._dice()) if self.health.bad_pages(held.host) else 0

    def _note_speed(self, held: HeldUrl) -> None:
        self._leave(held)
        if held.outcome == ABORTED:
            return
        if held.download_ms > self._slow_after_ms:
            remember(self._slow, held.host, held.fields.key)
        else:
            self._slow.pop(held.host, None)

    def _leave(self, held: HeldUrl) -> None:
        self.note_answered(held)
        if held.is_slow:
            held.is_slow = False
            self._slow_fetching -= 1

    def _slow_may_start(self, held: HeldUrl) -> bool:
        """Whether a URL may be started, as far as slow hosts go: they have a share of the fetches, and no more."""
        if held.host not in self._slow:
            return True
        if self._slow_fetching >= max(1, self.crowd.shared // SLOW_FETCHES):
            self.give_back(held, SLOW_WAIT_MS)
            return False
        return True

    def _rest_ms(self, held: HeldUrl) -> int:
        policy = self._delays
        if self._paces.differ:
            policy = replace(policy, minimum_ms=self._paces.host_delay_ms(held.host))
        download_ms = 0 if held.outcome in FAILURES else held.download_ms  # a failure has its back-off
        rest_ms = host_delay_ms(
            policy, crawl_delay_ms=held.crawl_delay_ms, download_ms=download_ms, backoff_ms=held.retry_after_ms
        )
        return OVERLOADED_FACTOR * rest_ms if held.outcome == OVERLOADED_PAGE and not held.retry_after_ms else rest_ms

    def _is_slowed(self, held: HeldUrl, now_ms: int) -> bool:
        """Whether the crawl's speed makes all fetches wait; the engine is woken when one may start."""
        speed = self.speed
        return speed is not None and speed.limits and not held.refusal and not speed.may_start(now_ms)

    def _gaps_allow(self, held: HeldUrl, now_ms: int) -> bool:
        """Keep the gap between actual starts: a granted start that was late must not crowd the next one."""
        wait_ms = self._start(held.gaps, now_ms)
        if wait_ms > 0:
            held.stage = Stage.WAITING
            self.call_later(wait_ms / 1000, self.admit, held)
        return not wait_ms

    def _ask_again(self, now_ms: int) -> None:
        """Ask for other starts in place of those that were missed, which would crowd another node's.

        For no more at a time than may be started: they would be missed again. Others do not wait for them.
        """
        self._asked_again = {each for each in self._asked_again if each.stage is Stage.WAITING}
        room = min(ASKED_AGAIN_MAX, self.crowd.fetches_max - self._fetching) - len(self._asked_again)
        while self._missed and room > 0:
            held = self._missed.popleft()
            if held.stage is Stage.BUFFERED:
                held.stage, held.due_ms = Stage.WAITING, now_ms
                self._asked_again.add(held)
                self.ask_again(held)
                room -= 1

    def start_aside(self, gaps: tuple[tuple[str, int], ...], until_ms: int) -> int:
        """Start a fetch that is not handed out: 0, or for how many ms it must wait, or `MISSED`.

        Args:
            gaps: that it keeps; name and ms each.
            until_ms: it does not start after that, on the monotonic clock.
        """
        now_ms = self._clock.monotonic_ms()
        return MISSED if now_ms > until_ms else self._start(gaps, now_ms)

    def _start(self, gaps: tuple[tuple[str, int], ...], now_ms: int) -> int:
        started_ms = self._started_ms
        wait_ms = max((started_ms.get(name, -NEVER_MS) + gap_ms - now_ms for name, gap_ms in gaps), default=0)
        if wait_ms > 0:
            return wait_ms
        for name, _ in gaps:
            started_ms[name] = now_ms
            started_ms.move_to_end(name)
            if len(started_ms) > SERVERS_REMEMBERED:
                started_ms.popitem(last=False)
        return 0


def _nothing() -> None:
    """Before the engine is there, there is nothing to wake, and nothing under way."""


def _call_later(delay_s: float, call: Callable[[HeldUrl], None], held: HeldUrl) -> object:
    return asyncio.get_running_loop().call_later(delay_s, call, held)
