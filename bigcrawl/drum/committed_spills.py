"""What a DRUM has committed: its manifest, and its spills in the order of their tuples.

`drum` has the states of a tuple, which a spill has as a whole. A spill is *loose* while its files are written and the
manifest does not name it: then its tuples count as buffered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.drum.files import store_errors

if TYPE_CHECKING:
    from bigcrawl.drum.bucket import BucketState
    from bigcrawl.drum.repository import Repository
    from bigcrawl.drum.spills.spill import Spill


class CommittedSpills:
    """The manifest of a DRUM, and spills that it does not name yet, or no longer.

    Attributes:
        state: what is committed. A commit replaces it.
    """

    def __init__(self, repository: Repository) -> None:
        """Open the directory.

        Raises:
            ConfigError, CorruptionError, OSError: as `Repository.open`.
        """
        self._repository = repository
        self.state, self._log = repository.open()
        self._loose: list[Spill] = []
        self._done: list[Spill] = []  # told ones whose files still exist

    def __repr__(self) -> str:
        return f"<CommittedSpills {len(self.state.spills)} loose={len(self._loose)} told={self.state.told}>"

    def __len__(self) -> int:
        """How many spills wait for a merge or for their receiver."""
        return len(self.state.spills) + len(self._loose)

    @property
    def end(self) -> int:
        """Ordinal of the first tuple that is in no spill."""
        return self._loose[-1].end if self._loose else self.state.end

    @property
    def disk_bytes(self) -> int:
        """How much keys and aux of all of them take."""
        tuple_bytes = self._repository.layout.tuple_bytes
        return sum(spill.aux_bytes + spill.tuples * tuple_bytes for spill in (*self.state.spills, *self._loose))

    @property
    def unanswered(self) -> list[Spill]:
        """The flushed spills."""
        return [spill for spill in self.state.spills if spill.first >= self.state.answered]

    # --- loose -> flushed

    def add(self, spill: Spill) -> None:
        """Add a spill whose files are written."""
        self._loose.append(spill)

    def flush(self) -> None:
        """Commit the loose spills, and make that durable. Raises OSError: the disk failed; call it again."""
        if not self._loose:
            return
        self._repository.sync_spills(self._loose)
        while self._loose:
            self._log.append_spill(self._loose[0])
            self.state = self.state.with_spill(self._loose.pop(0))
        self._log.sync()

    # --- flushed -> answered

    def commit_merge(self, buckets: tuple[BucketState, ...]) -> None:
        """Commit a merge: buckets with all that was flushed, and its answers. Raises OSError: nothing was committed."""
        state = self.state._replace(buckets=buckets, answered=self.state.end)
        self._log.begin(state)
        self.state = state

    def sync_name(self) -> None:
        """Return once the last merge is durable, so that its answers may be told."""
        self._log.sync_name()

    # --- answered -> told

    @property
    def next_answered(self) -> Spill | None:
        """The spill whose answers are to be delivered next; None if there is none."""
        return self.state.spills[0] if self.state.told < self.state.answered else None

    def acknowledge(self, told: int) -> None:
        """Commit that the receiver has all answers before that ordinal.

        Raises:
            TransientStoreError: the disk failed. They count as acknowledged, unless the process ends now.
        """
        self._done += [spill for spill in self.state.spills if spill.end <= told]
        self.state = self.state.with_told(told)
        with store_errors(self._repository.directory):
            self._log.append_told(told)

    def remove_told(self) -> None:
        """Delete spills whose answers are all acknowledged, once that is durable.

        Raises:
            TransientStoreError: the disk failed; call it again.
        """
        if self._done:
            with store_errors(self._repository.directory):
                self._log.append_told(self.state.told)
                self._log.sync()
            for spill in self._done:
                self._repository.remove_spill(spill)
            self._done = []
