"""What can be asked of an open partition; nothing here changes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.drum.files import store_errors
from bigcrawl.scheduler.budgets.traps import Traps
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID
from bigcrawl.scheduler.queues.front_queues import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.in_degrees import InDegreeCounts
    from bigcrawl.scheduler.partition.admission import PartitionLimits
    from bigcrawl.scheduler.partition.manifest import Manifest
    from bigcrawl.scheduler.partition.step import State
    from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory
    from bigcrawl.scheduler.queues.turns import TurnState


class Figures:
    """A partition's figures and look-ups: of the committed manifest, the durable one, and the state they describe."""

    _directory: Path
    _own: EpochDirectory
    _limits: PartitionLimits
    _manifest: Manifest
    _durable: Manifest | None
    _state: State

    def __repr__(self) -> str:
        return (
            f"<Partition {self._directory.name} epoch={self._own.epoch} manifest={self.manifest_number} "
            f"seen={self.seen} waiting={self.waiting} batch={self.batch_number}>"
        )

    # --- what is committed

    @property
    def epoch(self) -> int:
        """The epoch it was opened in."""
        return self._own.epoch

    @property
    def manifest_number(self) -> int:
        """The number of the committed manifest."""
        return self._manifest.number

    @property
    def inbox_id(self) -> str:
        """The last inbox entry that was folded."""
        return self._manifest.inbox_id

    @property
    def folded_urls(self) -> int:
        """URLs ever read from the inbox."""
        return self._manifest.folded_urls

    @property
    def duplicates(self) -> int:
        """URLs ever dropped because they had been seen."""
        return self._manifest.duplicates

    @property
    def rejected(self) -> int:
        """Inbox entries ever set aside because they could not be decoded."""
        return self._manifest.rejected

    @property
    def batch_number(self) -> int:
        """The last committed admit batch; 0 before the first."""
        return self._manifest.batch_number

    @property
    def admitted(self) -> int:
        """URLs ever admitted, which is the sequence number the next one gets."""
        return self._manifest.admitted

    # --- what is durable

    @property
    def durable_inbox_id(self) -> str:
        """The last entry folded by a manifest this owner made durable: the inbox may be trimmed to it."""
        return self._durable.inbox_id if self._durable else NO_INBOX_ID

    @property
    def durable_batch_number(self) -> int:
        """The last admit batch of a manifest this owner made durable."""
        return self._durable.batch_number if self._durable else 0

    @property
    def has_undurable_changes(self) -> bool:
        """Whether `make_durable` has anything to do."""
        return self._durable is not self._manifest

    # --- what waits

    @property
    def waiting(self) -> int:
        """URLs queued and not admitted: in turns, over budget, and parked."""
        return len(self._state)

    @property
    def waiting_by_level(self) -> tuple[int, ...]:
        """URLs in each front queue, lowest level first; ordinary and extra ones together."""
        counts = self._state.turns.front.counts()
        return tuple(sum(counts[level::LEVELS]) for level in range(LEVELS))

    @property
    def has_only_extra(self) -> bool:
        """Whether all in the front queues is beyond its PLD's budget in this turn; not when they are empty."""
        return self._state.turns.front.has_only_extra

    @property
    def turn(self) -> TurnState:
        """Where the turns stand."""
        return self._state.turns.state

    @property
    def waiting_by_turn(self) -> dict[int, int]:
        """URLs in the current turn, which are those in the front queues, and in each later one that has any."""
        return self._state.turns.by_turn

    @property
    def over_budget(self) -> int:
        """URLs for which no turn of the window has room."""
        return len(self._state.turns.over)

    @property
    def is_withheld(self) -> bool:
        """Whether all that waits is over budget, and stays so until there are other budgets."""
        return bool(self.over_budget) and self.withheld() == self.waiting

    def withheld(self, retired: Iterable[str] = ()) -> int:
        """URLs that stay on disk until there are other budgets, or until one of the retired hosts comes back.

        Those over budget are among them when they are all else that waits, and a re-read has passed none.
        """
        parked = sum(map(self._state.parked.urls_of, retired))
        is_vain = self.waiting == parked + self.over_budget and self.turn.is_resting
        return parked + (self.over_budget if is_vain else 0)

    @property
    def parked(self) -> int:
        """URLs parked behind a full host."""
        return len(self._state.parked)

    @property
    def parked_hosts(self) -> int:
        """Hosts with parked URLs."""
        return self._state.parked.host_count

    # --- what is known of URLs and PLDs

    @property
    def seen(self) -> int:
        """Distinct keys ever folded."""
        return len(self._state.tables.seen)

    @property
    def in_degree_counts(self) -> InDegreeCounts:
        """How many PLDs of the partition have which in-degree."""
        return self._state.in_degrees

    def ends(self, keys: KeyArray) -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any]]:
        """Return which URLs have ended, given their keys, and how: values of `outcomes.VALUE`.

        Raises:
            TransientStoreError: the disk failed.
            CorruptionError: a file is damaged.
        """
        with store_errors(self._directory):
            return self._state.tables.ends.values(keys)

    def in_degrees(self, plds: KeyArray) -> npt.NDArray[np.uint32]:
        """Return the in-degree of each PLD, given its key; 0 for one that is not known to be linked to.

        Raises:
            TransientStoreError: the disk failed.
            CorruptionError: a file is damaged.
        """
        with store_errors(self._directory):
            return self._state.tables.plds.values(plds)[1]["in_degree"]

    def trap_divisors(self, plds: KeyArray) -> npt.NDArray[np.uint32] | None:
        """Return what the budgets of PLDs, given their keys, are divided by; None when none is taken for a trap.

        Raises:
            TransientStoreError: the disk failed.
            CorruptionError: a file is damaged.
        """
        with store_errors(self._directory):
            return Traps(self._state.tables.traps, self._limits.traps).divisors(plds)
