"""Decides when a partition steps, from what waits in its inbox and on disk, and from how full its hot set is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.owner.hot.due_heap import NEVER_MS
from bigcrawl.scheduler.queues.revisits import NEVER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bigcrawl.scheduler.owner.hot.hot_set import HotSet
    from bigcrawl.scheduler.owner.inbox import InboxReader
    from bigcrawl.scheduler.partition.fold.state import PartitionState

STARVED_STEP_MS = 20  # the shortest time between two steps of a partition, even if the node has nothing to fetch
LOW_STEP_MS = 1_000
UNFOLDED_URLS_MAX = 500  # in an inbox, about 50 KB in Redis


class StepSchedule:
    """Decides when one partition steps.

    Attributes:
        waiting: URLs on disk that a step may admit, as counted after the last step.
        withheld: the other URLs on disk. They have no budget, or the crawl does not wait for their host.
        unrunnable: URLs on disk that the owner's spider cannot run.
        revisits: URLs on disk that wait for the time of their next visit.
        overdue_revisits: those that the last step left waiting although their time had come.
        next_revisit_s: when the next of them is due, on the crawls' clock; `NEVER_S` without any.
        stepped_ms: when the last step ended, on the monotonic clock.
    """

    def __init__(self, inbox: InboxReader, hot: HotSet, tell: Callable[[], None] = lambda: None) -> None:
        """`tell` is called when a step may be due although nothing has come, and nothing has ended."""
        self._inbox = inbox
        self._hot = hot
        self._tell = tell
        self.waiting = 0
        self.withheld = 0
        self.unrunnable = 0
        self.revisits = 0
        self.overdue_revisits = 0
        self.next_revisit_s = NEVER_S
        self._has_only_extra = False  # all URLs that come next are beyond their PLD's budget
        self.stepped_ms = 0
        self._is_in_use = False  # the hot URLs of one of its hosts do not last a second
        self._stalled_at: int | None = None  # the number of hot URLs when the last step found nothing to do

    def __repr__(self) -> str:
        return f"<StepSchedule waiting={self.waiting} withheld={self.withheld} stalled_at={self._stalled_at}>"

    @property
    def is_stalled(self) -> bool:
        """Whether the last step found nothing to do, and nothing has changed since."""
        return self._stalled_at is not None

    def wants_step(self, now_ms: int, step_ms: int, *, starved: bool = False, now_s: int = 0) -> bool:
        """Whether a step is due: keys wait, or the hot set runs low while URLs wait on disk.

        A step costs about the same for ten keys as for a thousand, so it waits for keys to gather. It waits `step_ms`
        if the hot set is well filled, one second if it is low or many keys have gathered, and 20 ms if it is low and a
        host uses its URLs up within a second, or if it is almost empty and the node `starved`. If only extra URLs wait
        on disk, a smaller hot set counts as well filled. URLs whose next visit is due at `now_s` count as waiting.
        """
        waited_ms, inbox = now_ms - self.stepped_ms, self._inbox
        in_haste = starved or self._is_in_use
        if waited_ms < step_ms and waited_ms < (STARVED_STEP_MS if in_haste else LOW_STEP_MS):
            return False
        has_due = self.next_revisit_s <= now_s
        if not (inbox.has_urls or self.waiting > 0 or has_due):
            return False
        hot_set = self._hot
        hot = hot_set.urls_of_others
        hot_max = hot_set.urls_max // hot_set.extra_divisor if self._has_only_extra else hot_set.urls_max
        runs_low = hot <= hot_max // 2
        if not (inbox.has_urls or (runs_low and (has_due or self._may_admit(hot)))):
            return False
        if (self._is_in_use and runs_low) or (starved and hot < max(1, hot_max // 8)):
            step_ms = min(step_ms, STARVED_STEP_MS)
        elif runs_low or inbox.unfolded_urls >= UNFOLDED_URLS_MAX:
            step_ms = min(step_ms, LOW_STEP_MS)
        elif hot <= hot_set.urls_max // 2:
            step_ms = min(step_ms, LOW_STEP_MS * hot_set.extra_divisor)
        return waited_ms >= step_ms

    def _may_admit(self, hot: int) -> bool:
        """Whether a step may find URLs to admit, while so many are hot.

        If only hosts with full shares wait, there is nothing to admit until one of their URLs has ended.
        """
        return self.waiting > 0 and (self._stalled_at is None or hot < self._stalled_at)

    def wants_outcomes(self, now_ms: int, step_ms: int, *, idle: bool = False) -> bool:
        """Whether a step is due for entries without URLs, which usually wait for the next step that has URLs.

        An `idle` node folds them at once, because a crawl is only finished when they are folded.
        """
        inbox = self._inbox
        if idle:
            step_ms = STARVED_STEP_MS
        elif inbox.has_more:
            step_ms = min(step_ms, LOW_STEP_MS)
        return inbox.has_others and now_ms - self.stepped_ms >= step_ms

    def next_look_ms(self, now_ms: int, step_ms: int, now_s: int = 0) -> int:
        """When a step that is not due now may be, if nothing happens until then; `NEVER_MS` if it will not."""
        inbox = self._inbox
        if not (inbox.has_urls or inbox.has_others or self.waiting > 0 or self.next_revisit_s <= now_s):
            return NEVER_MS
        waits_ms = (STARVED_STEP_MS, LOW_STEP_MS, LOW_STEP_MS * self._hot.extra_divisor, step_ms)
        return min((at for wait in waits_ms if (at := self.stepped_ms + wait) > now_ms), default=NEVER_MS)

    def note_disk(self, state: PartitionState, given_up: Iterable[str], releasable: int = 0) -> None:
        """Count the URLs that wait on disk. May run in a worker thread.

        Args:
            state: what the partition knows.
            given_up: hosts that the crawl does not wait for.
            releasable: how many of the URLs that could not be run may be tried now.
        """
        self.withheld = state.withheld(given_up)
        self.waiting = state.waiting - self.withheld + releasable
        self.unrunnable = len(state.turns.unrunnable) - releasable
        revisits = state.turns.revisits
        self.revisits, self.overdue_revisits, self.next_revisit_s = len(revisits), revisits.overdue, revisits.next_s
        self._has_only_extra = state.turns.front.has_only_extra and not len(state.parked)

    def note_use(self, lasting_ms: float) -> None:
        """Record for how long the hot URLs of a host last that is being used at its full speed."""
        self._is_in_use = self._is_in_use or lasting_ms < LOW_STEP_MS

    def note_fold(self, hot_urls: int, *, is_vain: bool) -> None:
        """Record that a step has run with `hot_urls` in Redis. `is_vain` says that it found nothing to do."""
        self._stalled_at = hot_urls if is_vain else None

    def note_step(self, now_ms: int) -> None:
        """Record the end of a step."""
        self.stepped_ms = now_ms
        self._is_in_use = False

    def end_stall(self) -> None:
        """Allow another step: URLs that the last one could not admit may be admitted now."""
        self._stalled_at = None
        self._tell()
