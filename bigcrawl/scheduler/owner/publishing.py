"""Publishes an owned partition's counts, trims Redis after a durable point, and keeps the rows it owes to others."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.crawl_clock import FORGETTABLE_MS
from bigcrawl.scheduler.partition.manifest import UNKNOWN
from bigcrawl.scheduler.partition.tables import COUNTS
from bigcrawl.scheduler.records.observed import rows_owed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.redisdb.scripts import Identity, Value
    from bigcrawl.scheduler.owner.durability import Durability
    from bigcrawl.scheduler.owner.step_schedule import StepSchedule
    from bigcrawl.scheduler.partition.committed import CommittedFiles
    from bigcrawl.scheduler.partition.partition import Partition
    from bigcrawl.scheduler.partition.stored_points import StoredPoints

CHECKPOINT = "checkpoint"

RULES_MARK = "asked"
"""The mark of the rules by which URLs are withheld, see `StepSources.rules_mark`."""


@dataclass(slots=True)
class _SentRows:
    sent_ms: int
    size: int
    refused: bytes


class OwedRows:
    """Rows of a partition's steps for other partitions; the manifest keeps them while Redis may forget them."""

    def __init__(self, committed: CommittedFiles, loss_ms: int = 0) -> None:
        self._committed = committed
        self._keep_ms = max(loss_ms, FORGETTABLE_MS)
        self._sent: deque[_SentRows] = deque()
        self._sent_bytes = 0

    @property
    def has_any(self) -> bool:
        return bool(self._committed.unsent_rows)

    @property
    def unsent_rows(self) -> bytes:
        """The packed rows that Redis has not accepted, refused ones first."""
        return b"".join(sent.refused for sent in self._sent) + self._committed.unsent_rows[self._sent_bytes :]

    @property
    def rows_unsent(self) -> int:
        refused = sum(len(sent.refused) for sent in self._sent)
        return rows_owed(refused + len(self._committed.unsent_rows) - self._sent_bytes)

    def record_sent(self, rows: bytes, running_ms: int, refused: Callable[[bytes], bytes]) -> None:
        """Record that all unsent rows were sent, unless `send_again` came meanwhile; `refused` selects refused rows."""
        if not self.unsent_rows.startswith(rows):
            return
        for sent in self._sent:
            if sent.refused:
                rows = rows[len(sent.refused) :]
                sent.refused, sent.sent_ms = refused(sent.refused), running_ms
        if rows:
            self._sent.append(_SentRows(running_ms, len(rows), refused(rows)))
            self._sent_bytes += len(rows)

    def send_again(self) -> None:
        self._sent.clear()
        self._sent_bytes = 0

    def forget_safe(self, running_ms: int) -> None:
        while self._sent and not self._sent[0].refused and self._sent[0].sent_ms < running_ms - self._keep_ms:
            size = self._sent.popleft().size
            self._sent_bytes -= size
            self._committed.record_delivered(self._committed.unsent_rows[:size])


class PublishedCounts:
    """The published counts of one partition; `is_owed` if Redis may not know the latest."""

    def __init__(
        self,
        keys: PartitionKeys,
        disk: Partition,
        schedule: StepSchedule,
        durability: Durability,
        points: StoredPoints | None,
        owed: OwedRows,
    ) -> None:
        self._keys = keys
        self._disk = disk
        self._schedule = schedule
        self._durability = durability
        self._points = points
        self._owed = owed
        self._untold = 0
        self._published_mark: int | None = None
        self.is_owed = False

    def call(self, identity: Identity, *, is_damaged: bool) -> scripts.Call[int]:
        manifest, state, schedule = self._disk.manifest, self._disk.state, self._schedule
        self._untold = self._owed.rows_unsent
        sizes = manifest.sizes()
        counts: dict[str, Value] = {
            "damaged": int(is_damaged),
            "missing": 0,
            "folded": manifest.inbox_id,
            "manifest": manifest.number,
            "chosen": manifest.batch_number,
            # A crawl continues while URLs wait for a time.
            "waiting": schedule.waiting + schedule.timed,
            "revisits": len(state.turns.timed),
            "overdue": state.turns.timed.overdue,
            "next_visit_s": schedule.next_timed_s if schedule.timed else 0,
            "withheld": schedule.withheld,
            "unrunnable": schedule.unrunnable,
            "unrunnable_methods": methods_field(state.turns.unrunnable.waiting) if schedule.unrunnable else "",
            "seen": len(state.tables.seen),
            "repeats": manifest.repeats,
            "imported": manifest.imported,
            "chosen_urls": manifest.admitted - state.already.total(),
            "duplicates": manifest.duplicates,
            "rejected": self._disk.set_aside,
            "folded_urls": manifest.folded_urls,
            # A crawl continues while rows are owed to other partitions.
            "untold": self._untold,
            "seen_bytes": sizes.seen,
            "table_bytes": sizes.tables,
            "queue_bytes": sizes.queues,
        }
        if manifest.repeats == UNKNOWN:
            del counts["repeats"]
        counts |= {name: manifest.counts.get(name, 0) for name in COUNTS}
        counts |= self.checkpoint_state() | self._rules_state()
        return scripts.trim_partition(self._keys, identity, *self._durability.trim, counts)

    @property
    def has_unpublished_rules(self) -> bool:
        """Whether URLs are withheld by rules that Redis does not know."""
        return self._schedule.withheld > 0 and self._disk.rules_mark != self._published_mark

    def _rules_state(self) -> dict[str, Value]:
        self._published_mark = self._disk.rules_mark
        return {} if self._published_mark is None else {RULES_MARK: self._published_mark}

    def checkpoint_state(self) -> dict[str, Value]:
        """Return the last checkpoint order that a durable point has obeyed, if any."""
        made = self._durability.checkpoint
        if self._points is not None:
            made = min(made, self._points.checkpoint)
        return {CHECKPOINT: made} if made else {}

    def record_owed(self) -> None:
        self.is_owed = True

    def record_confirmed(self) -> None:
        """Record that Redis has the counts; if rows were sent since, they are already outdated."""
        self.is_owed = self._untold != self._owed.rows_unsent


def methods_field(waiting: Mapping[str, int]) -> str:
    return " ".join(f"{method}={count}" for method, count in waiting.items() if count)


def is_publish(call: scripts.Call[Any]) -> bool:
    return call.name == "trim_partition"
