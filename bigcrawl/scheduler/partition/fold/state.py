from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from bigcrawl.scheduler.budgets.in_degrees import EMPTY_COUNTS, InDegreeCounts
from bigcrawl.scheduler.partition.manifest import UNKNOWN, Manifest
from bigcrawl.scheduler.partition.tables import Tables
from bigcrawl.scheduler.queues.parked_queues import ParkedQueues
from bigcrawl.scheduler.queues.turns import TurnQueues

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.scheduler.partition.fold.pld_records import InDegreeRise
    from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory
    from bigcrawl.scheduler.queues.front_queues import Selector


class PartitionState:
    """The state of a partition; admission skips the keys in `already`, because Redis has admitted them."""

    def __init__(
        self, tables: Tables, turns: TurnQueues, parked: ParkedQueues, already: Counter[int], in_degrees: InDegreeCounts
    ) -> None:
        self.tables = tables
        self.turns = turns
        self.parked = parked
        self.already = already
        self.in_degrees = in_degrees

    @classmethod
    def restore(cls, own: EpochDirectory, manifest: Manifest, selector: Selector) -> PartitionState:
        return cls(
            Tables.restore(own, manifest.tables),
            TurnQueues.restore(own, manifest.queues, manifest.turns, selector),
            ParkedQueues.restore(own, manifest.parked),
            Counter(dict(manifest.already)),
            InDegreeCounts.from_bytes(manifest.in_degrees) if manifest.in_degrees else EMPTY_COUNTS,
        )

    def __repr__(self) -> str:
        return f"<PartitionState {self.turns!r} {self.parked!r} {self.tables!r}>"

    def describe(self, manifest: Manifest, before: PartitionState) -> Manifest:
        turns, in_degrees = self.turns, self.in_degrees
        return replace(
            manifest,
            tables=self.tables.states(),
            queues=turns.queue_states(),
            turns=turns.state,
            in_degrees=manifest.in_degrees if in_degrees is before.in_degrees else in_degrees.to_bytes(),
            credits=turns.front.selector.credits,
            parked=self.parked.state(),
            already=tuple(self.already.items()),
        )

    @property
    def waiting(self) -> int:
        return len(self.turns) + len(self.parked)

    def withheld(self, away: Iterable[str] = ()) -> int:
        """Return how many URLs stay on disk until budgets change, or until a host that is `away` returns."""
        parked, over = sum(map(self.parked.urls_of, away)), len(self.turns.over)
        is_vain = self.waiting == parked + over and self.turns.state.is_resting
        return parked + (over if is_vain else 0)

    def fork(self) -> PartitionState:
        return PartitionState(
            self.tables.fork(), self.turns.fork(), self.parked.fork(), self.already.copy(), self.in_degrees
        )

    def without_admitted(self, keys: Iterable[int]) -> PartitionState:
        return PartitionState(self.tables, self.turns, self.parked, self.already + Counter(keys), self.in_degrees)

    def raise_in_degrees(self, rise: InDegreeRise) -> None:
        self.in_degrees = self.in_degrees.after_changes(*rise)

    def flush(self) -> None:
        self.turns.flush()
        self.parked.flush()

    def differs(self, other: PartitionState) -> bool:
        return self._position() != other._position()

    def _position(self) -> tuple[object, ...]:
        turns = self.turns
        waiting = len(turns), len(turns.over), len(turns.timed), len(self.parked), len(turns.unrunnable)
        released = turns.timed.released_ever, turns.unrunnable.released_ever
        return waiting, turns.state, self.already.total(), turns.rescoring.rescored_ever, released

    def _check(self, manifest: Manifest) -> None:
        assert self.describe(manifest, self) == manifest, "the manifest describes it"
        self.tables._check()
        self.turns._check()
        self.parked._check()
        queued = len(self.tables.seen) + manifest.repeats - manifest.imported
        on_disk = self.waiting + len(self.turns.timed) + len(self.turns.unrunnable)
        left = on_disk + manifest.admitted - self.already.total()
        assert queued == left or manifest.repeats == UNKNOWN, "each URL that was seen waits, or has been admitted"
        assert all(count > 0 for count in self.already.values()), "a key is skipped a known number of times"
