"""One partition as its owner drives it (steps 4 to 8): inbox in, numbered admit batches out.

The fold itself, `Partition`, does no Redis; this class carries bytes between it and the scripts. One step:

    read inbox -> [worker thread] fold, choose, write manifest = commit -> admit batch -> publish counts

A crash after the commit and before the admission is healed when the partition is claimed again: `bring_up`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.owner.admit_calls import admit_call
from bigcrawl.scheduler.owner.due_heap import NEVER_MS
from bigcrawl.scheduler.owner.durability import Durability
from bigcrawl.scheduler.owner.hot_set import AwayHosts, HotSet
from bigcrawl.scheduler.owner.inbox import InboxReader, MovedUrls
from bigcrawl.scheduler.owner.step_schedule import StepSchedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.redisdb.scripts import Identity, Reconciled, Value
    from bigcrawl.scheduler.owner.due_heap import DueHeap
    from bigcrawl.scheduler.partition.partition import Partition, Step
    from bigcrawl.scheduler.records.inbox_entry import InboxEntry
    from bigcrawl.scheduler.records.suspicion import Suspicion


logger = logging.getLogger(__name__)

TAKE_FIRST = 4
TAKE_MAX = 64


class OwnedPartition:
    """A partition of which this node is the owner, in one epoch.

    Attributes:
        hot: its URLs in Redis.
        away: hosts whose URLs are to leave Redis.
        inbox: what waits in its inbox.
        schedule: when it is to step.
        durability: when its files are forced to the disk.
        suspects: URLs that may have been the death of a node, by sequence number.
        moved: URLs that went back to the inbox lately.
        due_ms: when a host of the partition may next be taken, monotonic.
        take_share: how many URLs to ask for: about what its due hosts have.
        draining: it is to be released when nothing of it is held any more.
        is_damaged: nothing more is done with its files.
        owes_publish: Redis may not have heard the last counts.
        admitted: the last admit batch that Redis has confirmed.
    """

    def __init__(
        self,
        keys: PartitionKeys,
        identity: Identity,
        disk: Partition,
        due_heap: DueHeap[OwnedPartition],
        *,
        hot_urls: int,
        connections: int,
        loss_ms: int = 0,
        hot_by_host: Mapping[str, int] | None = None,
        suspects: Mapping[int, Suspicion] | None = None,
        moved: MovedUrls | None = None,
        now_ms: int = 0,
        due_ms: int = NEVER_MS,
    ) -> None:
        """Begin with both sides at the same point.

        Args:
            keys: of its part of Redis.
            identity: this node, the epoch, and the generation.
            disk: the partition, opened in that epoch.
            due_heap: hears when the partition is due.
            hot_urls: its part of the hot set.
            connections: that a host may have at a time.
            loss_ms: how much Redis may forget.
            hot_by_host: URLs of each host that are in Redis.
            suspects: see above.
            moved: see above; those of the same partition in the epoch before.
            now_ms: monotonic.
            due_ms: see above.
        """
        self.keys = keys
        self.identity = identity
        self.disk = disk
        self._due_heap = due_heap
        self._connections = connections
        self.away = AwayHosts()
        self.hot = HotSet(hot_urls, self.away, hot_by_host)
        self.inbox = InboxReader(keys.inbox)
        self.schedule = StepSchedule(self.inbox, self.hot)
        self.durability = Durability(disk, loss_ms, now_ms)
        self.suspects = dict(suspects or {})
        self.moved = moved or MovedUrls()
        self.due_ms = NEVER_MS
        self.take_share = TAKE_FIRST
        self.draining = False
        self.is_damaged = False
        self.owes_publish = False
        self.admitted = disk.batch_number
        self._count_waiting()
        self.note_due(due_ms)

    def __repr__(self) -> str:
        return f"<OwnedPartition {self.keys.partition} epoch={self.identity.epoch} {self.hot!r} disk={self.disk!r}>"

    # --- whose, and how long

    def note_wanted(self, is_wanted: bool) -> None:
        """This node should own it, or should not: then it drains, as a damaged one does anyway."""
        self.draining = not is_wanted or self.is_damaged

    def drain(self) -> None:
        """Give no more URLs: it is to be released."""
        self.draining = True

    def note_damage(self) -> None:
        """A file of it is damaged: nothing more is done with it, and it drains."""
        self.is_damaged = self.draining = True

    def settle(self, identity: Identity, reply: Reconciled, taken: Iterable[str]) -> None:
        """Both sides are the same again; what is known of Redis is as it was then.

        Args:
            identity: this node, in the generation that has begun.
            reply: what Redis told.
            taken: the hosts of the URLs that the node holds.
        """
        self.identity = identity
        self.hot.settle(reply, taken)
        self.inbox.note_urls()
        self.inbox.note_others()
        self.owes_publish = True
        self.away.look_again()
        self.schedule.end_stall()
        self.note_due(0 if self.hot.by_host else NEVER_MS)

    # --- taking

    def note_due(self, due_ms: int) -> None:
        """A host of it may be taken then, and none before; `NEVER_MS`: none at all."""
        if due_ms != self.due_ms:
            self.due_ms = due_ms
            if due_ms < NEVER_MS:
                self._due_heap.note(self)

    def note_due_by(self, due_ms: int) -> None:
        """A host of it may be taken then, or another one before."""
        if due_ms < self.due_ms:
            self.due_ms = due_ms
            self._due_heap.note(self)

    def note_take(self, asked: int, given: int, *, is_more_due: bool) -> None:
        """So many URLs were asked for and given. Next time: few calls, each with several, and no room for nothing."""
        self.take_share = min(TAKE_MAX, 2 * asked) if is_more_due and given == asked else max(1, given)

    def clear_suspect(self, seq: int) -> None:
        """The URL of this sequence number has ended, and no node died of it."""
        self.suspects.pop(seq, None)

    # --- what waits

    @property
    def inbox_moved(self) -> bool:
        """Whether URLs wait in the inbox, for all that is known."""
        return self.inbox.has_urls

    @property
    def waiting(self) -> int:
        """URLs on disk that a step may admit."""
        return self.schedule.waiting

    @property
    def unfolded_urls(self) -> int:
        """URLs in the inbox when Redis was last asked."""
        return self.inbox.unfolded_urls

    def has_only_failing(self, fails: Callable[[str], bool]) -> bool:
        """Whether all that waits here are URLs of hosts that are away, or of which `fails` is true; no step may run."""
        if self.inbox.has_urls or not self.hot.are_all(fails):
            return False
        return self.disk.waiting == self.disk.withheld(self.away.hot_max)

    def note_inbox_moved(self) -> None:
        """URLs were sent to the inbox."""
        self.inbox.note_urls()

    def note_outcomes(self) -> None:
        """Outcomes were sent to the inbox."""
        self.inbox.note_others()

    def note_inbox(self, view: scripts.PartitionView) -> None:
        """Learn from a look at Redis what waits in the inbox, and whether other hosts are away."""
        self.away.note_changes(view.count("snoozes"))
        self.inbox.note_view(view, self.disk.inbox_id)

    def note_away(self, hot_max: Mapping[str, int]) -> None:
        """Learn which hosts are snoozed or retired, and how many URLs of each may be hot: none if nobody awaits it."""
        self.away.note(hot_max)
        self.schedule.end_stall()
        self._count_waiting()

    def note_parked(self, host: str, urls: int) -> None:
        """So many URLs of the host were moved from its back queue to the inbox."""
        self.hot.note_parked(host, urls)
        self.inbox.note_urls()

    def note_budgets(self) -> None:
        """Budgets have changed: what had none may have one now. Where anything else waits, steps come by themselves."""
        if self.schedule.withheld > 0:
            self.inbox.note_urls()

    def limit_extra(self, divisor: int) -> None:
        """One of so many hot URLs may be extra from now on."""
        if divisor < self.hot.extra_divisor:
            self.schedule.end_stall()
        self.hot.limit_extra(divisor)

    def _count_waiting(self) -> None:
        self.schedule.note_disk(self.disk, self.away.given_up)
        self.hot.count_next_tries()

    # --- stepping

    def inbox_command(self, entries_max: int) -> tuple[Value, ...]:
        """The command that reads inbox entries not folded yet, oldest first."""
        return self.inbox.command(self.disk.inbox_id, entries_max)

    def fold(
        self, inbox: Sequence[InboxEntry], room: int, hot: Mapping[str, int], extra_room: int | None = None
    ) -> Step:
        """Run one step on disk; called in a worker thread, with copies of what the loop goes on changing.

        Raises:
            TransientStoreError: the disk is full; nothing was committed.
        """
        before = self.disk.manifest_number
        step = self.disk.step(inbox, room, hot, self.away.hot_max, extra_room)
        self._count_waiting()
        self.schedule.note_fold(sum(hot.values()), is_vain=self.disk.manifest_number == before)
        return step

    def after_step(self, step: Step, inbox_entries: int, now_ms: int) -> list[scripts.Call[Any]]:
        """The calls that tell Redis of a committed step."""
        self.schedule.note_step(now_ms)
        self.inbox.note_step(self.disk.inbox_id, inbox_entries)
        if step.rejected:
            logger.error(
                "%(count)d inbox entries of partition %(partition)d could not be read; they are kept, and the crawl is "
                "not finished without them: see `scrapy frontier rejected`",
                {"count": step.rejected, "partition": self.keys.partition},
            )
        if self.schedule.is_stalled:
            return []
        if step.batch is None:
            return [self.publish()]
        self.hot.note_offered(step.batch, self.admitted)
        return [admit_call(self.keys, self.identity, step.batch, self._connections), self.publish()]

    @property
    def is_behind(self) -> bool:
        """Whether a committed admit batch is not known to be in Redis."""
        return self.admitted < self.disk.batch_number

    def pending_admissions(self) -> list[scripts.Call[bool]]:
        """The admissions of committed batches that Redis has not confirmed."""
        batches = self.disk.pending_batches(self.admitted)
        return [admit_call(self.keys, self.identity, batch, self._connections) for batch in batches]

    def note_admitted(self, now_ms: int) -> None:
        """Redis has confirmed all committed batches: their hosts may be due."""
        if self.is_behind:
            self.admitted = self.disk.batch_number
            self.note_due_by(now_ms)

    # --- telling and keeping

    def publish(self) -> scripts.Call[int]:
        """The call that publishes counts and trims what an earlier durable manifest made needless."""
        state: dict[str, Value] = {
            "damaged": int(self.is_damaged),
            "folded": self.disk.inbox_id,
            "manifest": self.disk.manifest_number,
            "chosen": self.disk.batch_number,
            "waiting": self.schedule.waiting,
            "withheld": self.schedule.withheld,
            "seen": self.disk.seen,
            "duplicates": self.disk.duplicates,
            "rejected": self.disk.set_aside,
            "folded_urls": self.disk.folded_urls,
        }
        return scripts.trim_partition(self.keys, self.identity, *self.durability.trim, state)

    def note_publish(self, *, is_heard: bool) -> None:
        """Counts are being published, or were: Redis has heard them, or may not have."""
        self.owes_publish = not is_heard

    def make_durable(self, now_ms: int) -> None:
        """Force the partition's files to the disk; called in a worker thread."""
        self.durability.force(now_ms)


def is_publish(call: scripts.Call[Any]) -> bool:
    """Whether `OwnedPartition.publish` made the call."""
    return call.name == "trim_partition"
