"""Publishes the counts of an owned partition, and trims in Redis what a durable point has made unnecessary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.partition.manifest import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.redisdb.scripts import Identity, Value
    from bigcrawl.scheduler.owner.durability import Durability
    from bigcrawl.scheduler.owner.found_copies import FoundCopies
    from bigcrawl.scheduler.owner.step_schedule import StepSchedule
    from bigcrawl.scheduler.partition.partition import Partition
    from bigcrawl.scheduler.partition.stored_points import StoredPoints

CHECKPOINT = "checkpoint"
"""The field of a partition's state with the last order for a checkpoint that was carried out."""

ASKED = "asked"
"""The field with the mark of the rules by which URLs are withheld, see `StepSources.asked_mark`."""


class Publishing:
    """What Redis is told of one partition.

    Attributes:
        is_owed: whether Redis may not know the latest counts.
    """

    def __init__(
        self,
        keys: PartitionKeys,
        disk: Partition,
        schedule: StepSchedule,
        durability: Durability,
        points: StoredPoints | None,
        found: FoundCopies,
    ) -> None:
        """Begin. The arguments are only read, never changed. `points` is None if the crawl has no store."""
        self._keys = keys
        self._disk = disk
        self._schedule = schedule
        self._durability = durability
        self._points = points
        self._found = found
        self._untold = 0  # rows about near copies in the last call
        self._asked: int | None = None  # the mark in the last call
        self.is_owed = False

    def __repr__(self) -> str:
        return f"<Publishing of {self._keys.partition} is_owed={self.is_owed}>"

    def call(self, identity: Identity, *, is_damaged: bool) -> scripts.Call[int]:
        """The call that publishes and trims."""
        manifest, state, schedule = self._disk.manifest, self._disk.state, self._schedule
        self._untold = self._found.rows_unsent
        counts: dict[str, Value] = {
            "damaged": int(is_damaged),
            "missing": 0,
            "folded": manifest.inbox_id,
            "manifest": manifest.number,
            "chosen": manifest.batch_number,
            # A crawl goes on while URLs wait for their next visit.
            "waiting": schedule.waiting + schedule.revisits,
            "revisits": schedule.revisits,
            "overdue": schedule.overdue_revisits,
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
            "exact_copies": manifest.exact_copies,
            "near_copies": manifest.near_copies,
            "mirrors": manifest.mirrors,
            # A crawl goes on while other partitions must be told of near copies.
            "untold": self._untold,
        }
        if manifest.repeats == UNKNOWN:
            del counts["repeats"]
        counts |= self.checkpoint_state() | self._asked_state()
        return scripts.trim_partition(self._keys, identity, *self._durability.trim, counts)

    @property
    def has_new_mark(self) -> bool:
        """Whether URLs are withheld by other rules than Redis knows."""
        return self._schedule.withheld > 0 and self._disk.asked_mark != self._asked

    def _asked_state(self) -> dict[str, Value]:
        self._asked = self._disk.asked_mark
        return {} if self._asked is None else {ASKED: self._asked}

    def checkpoint_state(self) -> dict[str, Value]:
        """What Redis is told of checkpoints: the last order that a durable point was made after. Empty before any."""
        made = self._durability.checkpoint
        if self._points is not None:
            made = min(made, self._points.checkpoint)
        return {CHECKPOINT: made} if made else {}

    def note_owed(self) -> None:
        """Redis may not know the latest counts, because they have changed or are under way."""
        self.is_owed = True

    def note_confirmed(self) -> None:
        """Redis has confirmed the counts that were sent. They are old if rows were told since."""
        self.is_owed = self._untold != self._found.rows_unsent


def methods_field(waiting: Mapping[str, int]) -> str:
    """Return how many URLs wait for each method, as a field of a partition's state."""
    return " ".join(f"{method}={count}" for method, count in waiting.items() if count)


def is_publish(call: scripts.Call[Any]) -> bool:
    """Whether a call was made by `Publishing.call`."""
    return call.name == "trim_partition"
