"""One partition as its owner drives it (steps 4 to 8 of a URL's life): inbox in, numbered admit batches out.

The fold itself, `Partition`, does not use Redis. This class carries bytes between it and the scripts. One step:

    read inbox -> [worker thread] fold, choose, write manifest = commit -> admit batch -> publish counts

After a crash between commit and admission, `bring_up` offers the batch again when the partition is claimed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from bigcrawl.scheduler.owner.hot.due_heap import NEVER_MS, DueHeap, TakenFromPartition
from bigcrawl.scheduler.owner.hot.hot_set import AdmitBatches, AwayHosts, HotSet, InRedis
from bigcrawl.scheduler.owner.inbox import InboxReader, MovedUrls
from bigcrawl.scheduler.owner.publishing import OwedRows, PublishedCounts
from bigcrawl.scheduler.owner.step_schedule import StepSchedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from bigcrawl.config import Config
    from bigcrawl.redisdb import scripts
    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.redisdb.scripts import Identity, ReconcileReply
    from bigcrawl.scheduler.owner.durability import Durability
    from bigcrawl.scheduler.partition.partition import Partition, Step
    from bigcrawl.scheduler.records.inbox_entry import InboxEntry

logger = logging.getLogger(__name__)

FOLDS_PER_LOOK = 8  # between two searches for the longest queue, each a tenth of a step


class OwnedPartition(TakenFromPartition):
    """A partition that this node owns, in one epoch.

    Attributes:
        hot: its URLs in Redis.
        away: hosts that are snoozed or retired.
        admissions: its admit batches, until Redis has confirmed them.
        suspects: URLs that may have killed a node, by sequence number.
        moved: URLs recently moved back to the inbox.
        owed: rows to send to other partitions.
        draining: whether to release it as soon as the node holds none of its URLs.
        longest: the host with the most waiting URLs some steps ago, and their number; ("", 0) without any.
    """

    def __init__(
        self,
        config: Config,
        keys: PartitionKeys,
        identity: Identity,
        disk: Partition,
        due_heap: DueHeap[OwnedPartition],
        in_redis: InRedis,
        durability: Durability,
    ) -> None:
        """Start when Redis and the disk agree; `disk` was opened in the epoch of `identity`."""
        self.keys = keys
        self.identity = identity
        self.disk = disk
        self._on_event: Callable[[OwnedPartition], None] = _ignore_event
        self.away = AwayHosts(may_be_some=in_redis.may_have_entries)
        self.hot = HotSet(
            config.frontier.hot_urls // config.crawl.partitions, self.away, in_redis.by_host, tell=self._record_changes
        )
        policy = config.politeness
        self.admissions = AdmitBatches(
            keys, disk.committed, self.hot, policy.host_connections, policy.robots_head_start_ms
        )
        # The first look finds changes since the claim.
        self.inbox = InboxReader(keys.inbox, self._record_changes, has_urls=in_redis.may_have_entries)
        self.schedule = StepSchedule(self.inbox, self.hot, self._record_changes)
        self.durability = durability
        self.points = points = durability.points
        self.owed = OwedRows(disk.committed, config.frontier.redis_loss_ms)
        self.publishing = PublishedCounts(keys, disk, self.schedule, durability, points, self.owed)
        self.suspects = dict(in_redis.suspects)
        self.moved = MovedUrls()
        self.draining = False
        self.is_damaged = False
        self.longest: tuple[str, int] = ("", 0)
        self._folds = 0
        self._count_waiting()
        due_in_ms = in_redis.due_in_ms
        super().__init__(due_heap, NEVER_MS if due_in_ms is None else durability.forced_ms + due_in_ms)

    def take_over(self, before: OwnedPartition) -> None:
        """Copy this node's knowledge of the partition from its previous epoch."""
        self.moved = before.moved

    def call_on_event(self, function: Callable[[OwnedPartition], None]) -> None:
        """Call a function from now on whenever a step may have become due."""
        self._on_event = function

    def ignore_events(self) -> None:
        self._on_event = _ignore_event

    def _record_changes(self) -> None:
        self._on_event(self)

    def record_wanted(self, is_wanted: bool) -> None:
        was_draining, self.draining = self.draining, not is_wanted or self.is_damaged
        if was_draining and not self.draining:  # it left the heap when it was due
            self._due_heap.add_partition(self)

    def drain(self) -> None:
        self.draining = True

    def record_damage(self) -> None:
        self.is_damaged = self.draining = True

    def settle(self, identity: Identity, reply: ReconcileReply, taken: Iterable[str]) -> None:
        """Apply a comparison with Redis, which began `identity`'s generation; `taken` has each held URL's host."""
        self.identity = identity
        self.hot.restart_count(reply, taken)
        self.inbox.record_urls()
        self.inbox.record_others()
        self.owed.send_again()
        self.away.poll_again()
        self.schedule.end_stall()
        self.record_due(0 if self.hot.by_host else NEVER_MS)

    def clear_suspect(self, seq: int) -> None:
        self.suspects.pop(seq, None)

    @property
    def may_read_inbox(self) -> bool:
        """Whether to read the inbox; not while the store is far behind, because Redis must stay small."""
        return self.points is None or not self.points.is_far_behind

    def has_only_failing(self, fails: Callable[[str], bool]) -> bool:
        """Whether all waiting URLs are of hosts that are away, or that `fails` accepts. No step may run meanwhile."""
        if self.inbox.has_urls or not self.hot.are_all(fails):
            return False
        return self.disk.state.waiting == self.disk.state.withheld(self.away.hot_max)

    def record_inbox(self, view: scripts.PartitionView) -> None:
        """Find out from a view of Redis what the inbox holds, and whether hosts have gone away or returned."""
        self.away.record_changes(view.count("snoozes"))
        self.inbox.record_view(view, self.disk.manifest.inbox_id)

    def record_away(self, hot_max: Mapping[str, int]) -> None:
        """Set the hosts that are away, and how many URLs of each may be hot; 0 if the crawl gives up on it."""
        self.away.replace_hosts(hot_max)
        self.schedule.end_stall()
        self._count_waiting()

    def record_parked(self, host: str, urls: int) -> None:
        self.hot.record_parked(host, urls)
        self.inbox.record_urls()

    def record_budgets(self) -> None:
        """Make a step due if URLs lacked budget, as budgets have changed; waiting URLs make one due anyway."""
        if self.schedule.withheld > 0:
            self.inbox.record_urls()

    def set_extra_limit(self, divisor: int) -> None:
        if divisor < self.hot.extra_divisor:
            self.schedule.end_stall()
        self.hot.set_extra_limit(divisor)

    def _count_waiting(self) -> None:
        self.schedule.record_disk(self.disk.state, self.away.given_up, self.disk.releasable)
        self.hot.count_next_tries()

    def fold(
        self,
        inbox: Sequence[InboxEntry],
        room: int,
        hot: Mapping[str, int],
        extra_room: int | None = None,
        now_s: int = 0,
    ) -> Step:
        """Run one step on disk, in a worker thread, with copies. TransientStoreError: nothing was committed."""
        before = self.disk.manifest.number
        step = self.disk.step(inbox, room, hot, self.away.hot_max, extra_room, now_s)
        self._count_waiting()
        self.schedule.record_fold(sum(hot.values()), is_vain=self.disk.manifest.number == before)
        if self._folds % FOLDS_PER_LOOK == 0:
            self.longest = self.disk.state.parked.longest(hot, self.away.given_up)
        self._folds += 1
        return step

    def after_step(self, step: Step, inbox_entries: int, now_ms: int) -> list[scripts.Call[Any]]:
        self.schedule.record_step(now_ms)
        self.inbox.record_step(self.disk.manifest.inbox_id, inbox_entries)
        if step.rejected:
            logger.error(
                "%(count)d inbox entries of partition %(partition)d could not be read; they are kept, and the crawl is "
                "not finished without them: see `scrapy frontier rejected`",
                {"count": step.rejected, "partition": self.keys.partition},
            )
        if self.schedule.is_stalled and not self.publishing.has_unpublished_rules:
            return []
        if step.batch is None:
            return [self.publish()]
        return [self.admissions.send(self.identity, step.batch), self.publish()]

    def record_admitted(self, now_ms: int) -> None:
        """Record that Redis has confirmed all committed batches, so their hosts may be due."""
        if self.admissions.are_pending:
            self.admissions.record_confirmed()
            self.record_due_by(now_ms - self.admissions.head_start_ms)

    def publish(self) -> scripts.Call[int]:
        """Return the call that publishes counts, and trims data that an earlier durable manifest made unnecessary."""
        return self.publishing.call(self.identity, is_damaged=self.is_damaged)


def _ignore_event(_owned: OwnedPartition) -> None:
    """Ignore events of a released partition."""
