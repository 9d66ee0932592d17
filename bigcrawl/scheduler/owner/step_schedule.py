"""When a partition is to step: by what waits in its inbox and on disk, and by how full its hot set is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.scheduler.owner.hot_set import HotSet
    from bigcrawl.scheduler.owner.inbox import InboxReader
    from bigcrawl.scheduler.partition.partition import Partition

STARVED_STEP_MS = 20  # a partition steps no more often than this, however hungry the node is
LOW_STEP_MS = 1_000
UNFOLDED_URLS_MAX = 500  # in an inbox: some 50 KB of Redis


class StepSchedule:
    """Of one partition.

    Attributes:
        waiting: URLs on disk that a step may admit, when the last one ended.
        withheld: the others on disk: no budget lets them go, or the crawl does not wait for their host.
        stepped_ms: when the last step was told to Redis, monotonic.
    """

    def __init__(self, inbox: InboxReader, hot: HotSet) -> None:
        self._inbox = inbox
        self._hot = hot
        self.waiting = 0
        self.withheld = 0
        self._has_only_extra = False  # those that come next are beyond their budgets
        self.stepped_ms = 0
        self._stalled_at: int | None = None  # hot URLs when a step last found nothing to do

    def __repr__(self) -> str:
        return f"<StepSchedule waiting={self.waiting} withheld={self.withheld} stalled_at={self._stalled_at}>"

    @property
    def is_stalled(self) -> bool:
        """Whether the last step found nothing to do, and nothing has changed that its owner knows of."""
        return self._stalled_at is not None

    def wants_step(self, now_ms: int, step_ms: int, *, starved: bool = False) -> bool:
        """Whether a step is due: keys wait, or the hot set runs low while URLs wait on disk.

        A step costs about the same for ten keys as for a thousand, so keys are let gather: `step_ms` long while
        the hot set is well filled, a second when it is not or when many have gathered, and hardly at all when
        the node is `starved` and this partition has next to nothing to fetch. Where only extra URLs wait, a smaller
        number of them fills the hot set, and keys gather for longer.
        """
        inbox, hot_set = self._inbox, self._hot
        hot = hot_set.urls_of_others
        hot_max = hot_set.urls_max // hot_set.extra_divisor if self._has_only_extra else hot_set.urls_max
        runs_low = self.waiting > 0 and hot <= hot_max // 2
        # Full hosts only: nothing to admit until one of their URLs has ended.
        runs_low = runs_low and (self._stalled_at is None or hot < self._stalled_at)
        if not (inbox.has_urls or runs_low):
            return False
        if starved and hot < hot_max // 8:
            step_ms = min(step_ms, STARVED_STEP_MS)
        elif hot <= hot_max // 2 or inbox.unfolded_urls >= UNFOLDED_URLS_MAX:
            step_ms = min(step_ms, LOW_STEP_MS)
        elif hot <= hot_set.urls_max // 2:
            step_ms = min(step_ms, LOW_STEP_MS * hot_set.extra_divisor)
        return now_ms - self.stepped_ms >= step_ms

    def wants_outcomes(self, now_ms: int, step_ms: int, *, idle: bool = False) -> bool:
        """Whether a step is due for entries that bring no URLs: they wait for a step of URLs, but not for ever.

        A node that is `idle` takes them up at once: a crawl is finished only when they are folded.
        """
        inbox = self._inbox
        if idle:
            step_ms = STARVED_STEP_MS
        elif inbox.has_more:
            step_ms = min(step_ms, LOW_STEP_MS)
        return inbox.has_others and now_ms - self.stepped_ms >= step_ms

    def note_disk(self, disk: Partition, given_up: Iterable[str]) -> None:
        """Count what waits on disk; may be called in a worker thread.

        Args:
            disk: the partition.
            given_up: hosts that the crawl does not wait for.
        """
        self.withheld = disk.withheld(given_up)
        self.waiting = disk.waiting - self.withheld
        self._has_only_extra = disk.has_only_extra and not disk.parked

    def note_fold(self, hot_urls: int, *, is_vain: bool) -> None:
        """A step has run, with so many hot URLs; `is_vain`: it found nothing to do."""
        self._stalled_at = hot_urls if is_vain else None

    def note_step(self, now_ms: int) -> None:
        """Redis is told of a step."""
        self.stepped_ms = now_ms

    def end_stall(self) -> None:
        """What a step found nothing to do with may be free to go."""
        self._stalled_at = None
