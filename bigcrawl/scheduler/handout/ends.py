"""How URLs leave a node: the end of a URL sets its destination, its host's rest, and its host's health."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from bigcrawl.histogram import Histogram
from bigcrawl.politeness.backoff_policy import BackoffPolicy
from bigcrawl.redisdb.scripts import ANSWERS, NO_EFFECT, EndedUrl, effect_of_move
from bigcrawl.scheduler.handout.host_health import HostHealth
from bigcrawl.scheduler.handout.host_rests import RestsAfterFetches
from bigcrawl.scheduler.handout.retry_share import FailingShare
from bigcrawl.scheduler.records.held import Stage
from bigcrawl.scheduler.records.member import moved_member, order_of, priority_after_failure
from bigcrawl.scheduler.records.outcomes import ABORTED

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.clock import Clock
    from bigcrawl.config import PolitenessConfig
    from bigcrawl.scheduler.gates.delays import HostDelays
    from bigcrawl.scheduler.handout.host_gaps import HostGaps
    from bigcrawl.scheduler.handout.observers import Observers
    from bigcrawl.scheduler.records.held import HeldUrl

BAD_PAGES_MAX = 2  # in a row; any host may have one bad page
RETURN = b"="


class CountsOffers(Protocol):
    """Where links leave the node; in a node, `node.outbox.Outbox`."""

    @property
    def offered(self) -> int:
        """The number of URLs offered so far."""


class UrlEnder:
    """Ends the URLs of a node. `held` has all held URLs, ended ones until Redis has recorded the end."""

    def __init__(
        self,
        policy: PolitenessConfig,
        clock: Clock,
        outbox: CountsOffers,
        paces: HostDelays,
        host_gaps: HostGaps,
        observers: Observers,
        dice: Callable[[], float],
    ) -> None:
        self._clock = clock
        self._outbox = outbox
        self._paces = paces
        self._host_gaps = host_gaps
        self._dice = dice
        self._rests = RestsAfterFetches(policy, paces)
        self._failing_share = FailingShare()
        self._before_end = observers.before_end
        self.held = observers.held
        self.health = HostHealth(_backoff_of(policy), dice)
        self.fetch_times = Histogram()
        self.lateness = Histogram()

    @property
    def may_come_again(self) -> bool:
        return self._before_end is not None

    @property
    def late_ms(self) -> float:
        """How long due hosts wait for this node, by the URLs that it took last; 0 if it took none recently."""
        return self._failing_share.late_ms(self._clock.monotonic_ms())

    def free_host(self, held: HeldUrl) -> int:
        rest_ms = self._rests.of_fetch(held)
        held.free_host(rest_ms)
        self._host_gaps.record_end(held.host, held.answered_ms, rest_ms)
        return rest_ms

    def end_fetched(self, held: HeldUrl) -> None:
        if held.outcome == ABORTED:
            rest_ms = self._rests.rest_after_ms(held)
            end = EndedUrl(held.seq, rest_ms, RETURN)
        else:
            if self._before_end is not None and not held.next_try:
                self._before_end(held, "")
            counter = f"retried:{held.outcome}" if held.next_try else held.outcome or "dropped:ignored"
            if not held.refusal:
                self.fetch_times.count_ms(held.download_ms)
            effect = self.health.effect_of_fetch(held)
            if held.refusal and not held.refusal.startswith("error:"):
                rest_ms = self._rest_after_head(held)
            else:
                rest_ms = held.rest_ms if held.rest_ms >= 0 else self._rests.of_fetch(held)
                rest_ms = max(rest_ms, self.health.rest_ms(held.host))
            end = EndedUrl(held.fields.seq, rest_ms, held.next_try, counter, held.fetched_bytes, effect)
        if not held.refusal and held.rest_ms < 0:
            self._host_gaps.record_end(held.host, held.answered_ms, rest_ms)
        self.held.end(held, end, self._outbox.offered)

    def give_back(self, held: HeldUrl, delay_ms: int, counter: str = "", *, is_behind: bool = False) -> None:
        """Return the URL to its place in its host's queue, or to the end. Its host rests at least `delay_ms`."""
        if held.stage is Stage.ROBOTS and self._paces.differ:
            delay_ms = max(delay_ms, self._paces.host_delay_ms(held.host))
        was_asked = held.rest_after_head_ms >= 0
        member, place = moved_member(held.fields, held.fields.priority) if was_asked else RETURN, NO_EFFECT
        # Behind the others, as a page that failed: the next URL shows whether it was the host.
        if is_behind or held.host_report not in ("", ANSWERS):
            priority = priority_after_failure(held.fields.priority)
            held.try_again(held.next_try, order_of(priority, held.seq))
            member, place = moved_member(held.fields, priority), effect_of_move(held.next_order)
        effect = place
        if held.host_report:
            held.stop_fetching(self._clock.monotonic_ms())
            effect = self.health.effect_of(held, held.host_report)
            delay_ms = max(delay_ms, self.health.rest_ms(held.host))
        self.held.end(held, EndedUrl(held.seq, delay_ms, member, counter, 0, effect), 0)

    def drop_url(self, held: HeldUrl, reason: str) -> None:
        if self._before_end is not None:
            self._before_end(held, reason)
        self.held.end(held, EndedUrl(held.seq, self._rest_after_head(held), b"", f"dropped:{reason}"), 0)

    def put_off_if_late(self, held: HeldUrl, late_ms: int) -> bool:
        """Return a new URL to its queue if this node is behind, and the URL or its host was failing; True if so."""
        self.lateness.count_ms(late_ms)
        is_retried = held.fields.attempts > 0
        health = self.health
        host_fails = health.fails(held.host) or health.bad_pages(held.host) >= BAD_PAGES_MAX
        now_ms = self._clock.monotonic_ms()
        rest_ms = self._failing_share.count_taken(late_ms, now_ms, fails=is_retried or host_fails)
        if rest_ms:
            if not host_fails:
                rest_ms = self._rests.rest_after_ms(held)  # its host's other URLs are not put off
            self.give_back(held, round(rest_ms * (1 + self._dice() / 2)), "put_off", is_behind=is_retried)
        return rest_ms > 0

    def _rest_after_head(self, held: HeldUrl) -> int:
        if held.rest_after_head_ms < 0:
            return 0
        return max(held.rest_after_head_ms, self._paces.host_delay_ms(held.host))

    def rest_after(self, held: HeldUrl) -> int:
        return self._rests.rest_after_ms(held)


def _backoff_of(policy: PolitenessConfig) -> BackoffPolicy:
    return BackoffPolicy(
        policy.backoff_first_ms, policy.backoff_longest_ms, policy.retry_after_max_ms, policy.host_failures_max
    )
