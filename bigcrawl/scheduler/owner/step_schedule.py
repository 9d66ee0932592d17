"""Decides when a partition steps, by its waiting entries and URLs and by how full its hot set is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.owner.hot.due_heap import NEVER_MS
from bigcrawl.scheduler.queues.timed import NEVER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bigcrawl.scheduler.owner.hot.hot_set import HotSet
    from bigcrawl.scheduler.owner.inbox import InboxReader
    from bigcrawl.scheduler.partition.fold.state import PartitionState

STARVED_STEP_MS = 20  # even if the node has nothing to fetch
LOW_STEP_MS = 1_000
UNFOLDED_URLS_MAX = 500  # about 50 KB in Redis


class StepSchedule:
    """Decides when one partition steps.

    Attributes:
        waiting: URLs on disk that a step may admit.
        withheld: the others: without budget, or of a host that the crawl does not wait for.
        next_timed_s: when the next timed URL is due, on the crawl's clock; `NEVER_S` without any.
    """

    def __init__(self, inbox: InboxReader, hot: HotSet, tell: Callable[[], None] = lambda: None) -> None:
        self._inbox = inbox
        self._hot = hot
        self._tell = tell
        self.waiting = 0
        self.withheld = 0
        self.unrunnable = 0
        self.timed = 0
        self.next_timed_s = NEVER_S
        self._has_only_extra = False  # the next URLs are all beyond their PLD's budget
        self.stepped_ms = 0
        self._is_in_use = False  # the hot URLs of some host last less than a second
        self._stalled_at: int | None = None  # the hot URLs when the last step found no work

    @property
    def is_stalled(self) -> bool:
        return self._stalled_at is not None

    def wants_step(self, now_ms: int, step_ms: int, *, starved: bool = False, now_s: int = 0) -> bool:
        """Whether a step is due: keys wait, or the hot set runs low while URLs wait on disk.

        A step costs about the same for ten keys as for a thousand, so keys gather first: for `step_ms` if the hot set
        is well filled; one second if it is low or many keys wait; 20 ms if a host uses its URLs up within a second, or
        the set is almost empty and the node `starved`. If only extra URLs wait on disk, a smaller hot set suffices.
        """
        waited_ms, inbox = now_ms - self.stepped_ms, self._inbox
        in_haste = starved or self._is_in_use
        if waited_ms < step_ms and waited_ms < (STARVED_STEP_MS if in_haste else LOW_STEP_MS):
            return False
        has_due = self.next_timed_s <= now_s
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
        """Whether a step may admit URLs. If all waiting hosts have full shares, one of their URLs must end first."""
        return self.waiting > 0 and (self._stalled_at is None or hot < self._stalled_at)

    def wants_outcomes(self, now_ms: int, step_ms: int, *, idle: bool = False) -> bool:
        """Whether a step is due for entries without URLs, which wait for others unless the node is `idle`."""
        inbox = self._inbox
        if idle:
            step_ms = STARVED_STEP_MS
        elif inbox.has_more:
            step_ms = min(step_ms, LOW_STEP_MS)
        return inbox.has_others and now_ms - self.stepped_ms >= step_ms

    def next_check_ms(self, now_ms: int, step_ms: int, now_s: int = 0) -> int:
        """Return when a step may become due without further events; `NEVER_MS` or later if never."""
        inbox = self._inbox
        if not (inbox.has_urls or inbox.has_others or self.waiting > 0 or self.next_timed_s <= now_s):
            return NEVER_MS
        waited_ms, next_ms = now_ms - self.stepped_ms, NEVER_MS
        for wait_ms in (STARVED_STEP_MS, LOW_STEP_MS, LOW_STEP_MS * self._hot.extra_divisor, step_ms):
            if waited_ms < wait_ms < next_ms:
                next_ms = wait_ms
        return self.stepped_ms + next_ms

    def record_disk(self, state: PartitionState, given_up: Iterable[str], releasable: int = 0) -> None:
        """Count the URLs on disk; `releasable` unrunnable ones may be tried. May run in a worker thread."""
        self.withheld = state.withheld(given_up)
        self.waiting = state.waiting - self.withheld + releasable
        self.unrunnable = len(state.turns.unrunnable) - releasable
        timed = state.turns.timed
        self.timed, self.next_timed_s = len(timed), timed.next_s
        self._has_only_extra = state.turns.front.has_only_extra and not len(state.parked)

    def record_use(self, lasting_ms: float) -> None:
        self._is_in_use = self._is_in_use or lasting_ms < LOW_STEP_MS

    def record_fold(self, hot_urls: int, *, is_vain: bool) -> None:
        """Record a step; `is_vain` if it found no work."""
        self._stalled_at = hot_urls if is_vain else None

    def record_step(self, now_ms: int) -> None:
        self.stepped_ms = now_ms
        self._is_in_use = False

    def end_stall(self) -> None:
        self._stalled_at = None
        self._tell()
