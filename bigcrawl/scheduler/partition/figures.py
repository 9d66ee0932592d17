"""The figures and look-ups of an open partition. Nothing here changes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.content.copies import read_copies
from bigcrawl.drum.files import store_errors
from bigcrawl.scheduler.budgets.lowered import divisors_of
from bigcrawl.scheduler.budgets.mirrors import Mirrors
from bigcrawl.scheduler.budgets.traps import Traps
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID
from bigcrawl.scheduler.queues.front_queues import LEVELS

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.in_degrees import InDegreeCounts
    from bigcrawl.scheduler.partition.committed import CommittedFiles
    from bigcrawl.scheduler.partition.fold.admission import PartitionLimits
    from bigcrawl.scheduler.partition.fold.step import PartitionState
    from bigcrawl.scheduler.queues.turns import TurnState


class PartitionFigures:
    """Figures about a partition, from its committed manifest, its durable one, and the state that they describe."""

    _directory: Path
    _kept: CommittedFiles
    _limits: PartitionLimits
    _state: PartitionState

    def __repr__(self) -> str:
        return (
            f"<Partition {self._directory.name} epoch={self._kept.own.epoch} manifest={self.manifest_number} "
            f"seen={self.seen} waiting={self.waiting} batch={self.batch_number}>"
        )

    # --- committed

    @property
    def epoch(self) -> int:
        """The epoch in which the partition was opened."""
        return self._kept.own.epoch

    @property
    def manifest_number(self) -> int:
        """The number of the committed manifest."""
        return self._kept.manifest.number

    @property
    def inbox_id(self) -> str:
        """The last inbox entry that was folded."""
        return self._kept.manifest.inbox_id

    @property
    def folded_urls(self) -> int:
        """How many URLs were ever read from the inbox."""
        return self._kept.manifest.folded_urls

    @property
    def duplicates(self) -> int:
        """How many URLs were ever dropped because they had been seen."""
        return self._kept.manifest.duplicates

    @property
    def rejected(self) -> int:
        """How many inbox entries were ever set aside because they could not be decoded."""
        return self._kept.manifest.rejected

    @property
    def exact_copies(self) -> int:
        """How many pages, by their contents in this partition, are exact copies of others."""
        return self._kept.manifest.exact_copies

    @property
    def near_copies(self) -> int:
        """How many pages, by their contents in this partition, are near copies of others and no exact ones."""
        return self._kept.manifest.near_copies

    @property
    def mirrors(self) -> int:
        """How many PLDs of the partition are mirrors."""
        return self._kept.manifest.mirrors

    def copies(self) -> npt.NDArray[Any]:
        """Return these pages, see `bigcrawl.content.copies.COPY`. Reads the whole table."""
        with store_errors(self._directory):
            return read_copies(self._state.tables.copies)

    @property
    def batch_number(self) -> int:
        """The number of the last committed admit batch; 0 before the first."""
        return self._kept.manifest.batch_number

    @property
    def admitted(self) -> int:
        """How many URLs were ever admitted. The next one gets this sequence number."""
        return self._kept.manifest.admitted

    # --- durable

    @property
    def durable_inbox_id(self) -> str:
        """The last inbox entry folded by a manifest that this owner made durable. The inbox may be trimmed up to it."""
        return self._kept.durable.inbox_id if self._kept.durable else NO_INBOX_ID

    @property
    def durable_batch_number(self) -> int:
        """The last admit batch of a manifest that this owner made durable."""
        return self._kept.durable.batch_number if self._kept.durable else 0

    @property
    def has_undurable_changes(self) -> bool:
        """Whether `make_durable` has anything to do."""
        return self._kept.has_undurable_changes

    # --- waiting

    @property
    def waiting(self) -> int:
        """How many URLs are queued and not admitted: in turns, over budget, or parked."""
        return len(self._state)

    @property
    def revisits(self) -> int:
        """How many URLs wait for the time of their next visit. They are not counted in `waiting`."""
        return len(self._state.turns.revisits)

    @property
    def overdue_revisits(self) -> int:
        """How many of them are due, and were not released by the last step, because there were too many."""
        return self._state.turns.revisits.overdue

    @property
    def next_revisit_s(self) -> int:
        """When the first of them is due, in seconds since 1970; `NEVER_S` if none waits."""
        return self._state.turns.revisits.next_s

    @property
    def waiting_by_level(self) -> tuple[int, ...]:
        """How many URLs each priority level has in the front queues, lowest level first, extra ones included."""
        counts = self._state.turns.front.counts()
        return tuple(sum(counts[level::LEVELS]) for level in range(LEVELS))

    @property
    def has_only_extra(self) -> bool:
        """Whether all URLs in the front queues are beyond their PLD's budget in this turn. False if there are none."""
        return self._state.turns.front.has_only_extra

    @property
    def turn(self) -> TurnState:
        """The state of the turns."""
        return self._state.turns.state

    @property
    def waiting_by_turn(self) -> dict[int, int]:
        """The number of URLs in each turn that has any. Those of the current turn are in the front queues."""
        return self._state.turns.by_turn

    @property
    def over_budget(self) -> int:
        """How many URLs are over budget, because no turn of the window had room for them."""
        return len(self._state.turns.over)

    @property
    def is_withheld(self) -> bool:
        """Whether all waiting URLs are over budget, and stay so until budgets change."""
        return bool(self.over_budget) and self.withheld() == self.waiting

    def withheld(self, away: Iterable[str] = ()) -> int:
        """How many URLs stay on disk until budgets change, or until one of the hosts that are `away` comes back.

        URLs over budget only count if no others wait, and if the last re-read found no room for any of them.
        """
        parked = sum(map(self._state.parked.urls_of, away))
        is_vain = self.waiting == parked + self.over_budget and self.turn.is_resting
        return parked + (self.over_budget if is_vain else 0)

    @property
    def parked(self) -> int:
        """How many URLs are parked, because their host may have no more in Redis."""
        return len(self._state.parked)

    @property
    def parked_hosts(self) -> int:
        """How many hosts have parked URLs."""
        return self._state.parked.host_count

    def longest_queue(self, hot: Mapping[str, int], away: Container[str] = ()) -> tuple[str, int]:
        """Return the host with the most URLs parked or `hot`, and how many: the last to be done, if delays are alike.

        Hosts that the crawl does not wait for are `away`. URLs that were not chosen yet are not counted.
        """
        return self._state.parked.longest(hot, away)

    # --- known of URLs and PLDs

    @property
    def seen(self) -> int:
        """How many distinct keys were ever folded."""
        return len(self._state.tables.seen)

    @property
    def in_degree_counts(self) -> InDegreeCounts:
        """How many PLDs of the partition have each in-degree."""
        return self._state.in_degrees

    def ends(self, keys: KeyArray) -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any]]:
        """Return which URLs have ended, and how, as values of `outcomes.VALUE`. URLs are given by their keys.

        Raises:
            TransientStoreError: the disk failed.
            CorruptionError: a file is damaged.
        """
        with store_errors(self._directory):
            return self._state.tables.ends.values(keys)

    def in_degrees(self, plds: KeyArray) -> npt.NDArray[np.uint32]:
        """Return the in-degree of each PLD, given its key. It is 0 if no link to the PLD is known.

        Raises:
            TransientStoreError: the disk failed.
            CorruptionError: a file is damaged.
        """
        with store_errors(self._directory):
            return self._state.tables.plds.values(plds)[1]["in_degree"]

    def budget_divisors(self, plds: KeyArray) -> npt.NDArray[np.uint32] | None:
        """Return the divisors of PLDs' budgets, given their keys, or None if none of them is a trap or mirror.

        Raises:
            TransientStoreError: the disk failed.
            CorruptionError: a file is damaged.
        """
        with store_errors(self._directory):
            tables, limits = self._state.tables, self._limits
            return divisors_of(Traps(tables.traps, limits.traps), Mirrors(tables.mirrors, limits.mirrors), plds)
