"""The committed state of a DRUM, and its spills in order of arrival."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.drum.files import store_errors

if TYPE_CHECKING:
    from bigcrawl.drum.bucket import BucketState
    from bigcrawl.drum.repository import Repository
    from bigcrawl.drum.spills.spill import Spill


class CommittedSpills:
    """A DRUM's manifest and its spills, including *loose* ones, which the manifest does not name yet."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self.state, self._log = repository.open()
        self._loose: list[Spill] = []
        self._done: list[Spill] = []  # to be deleted

    def __repr__(self) -> str:
        return f"<CommittedSpills {len(self.state.spills)} loose={len(self._loose)} told={self.state.told}>"

    def __len__(self) -> int:
        return len(self.state.spills) + len(self._loose)

    @property
    def end(self) -> int:
        return self._loose[-1].end if self._loose else self.state.end

    @property
    def disk_bytes(self) -> int:
        tuple_bytes = self._repository.layout.tuple_bytes
        return sum(spill.aux_bytes + spill.tuples * tuple_bytes for spill in (*self.state.spills, *self._loose))

    @property
    def unanswered(self) -> list[Spill]:
        return [spill for spill in self.state.spills if spill.first >= self.state.answered]

    # --- loose -> flushed

    def add(self, spill: Spill) -> None:
        self._loose.append(spill)

    def flush(self) -> None:
        """Commit the loose spills durably. May be repeated after an OSError."""
        if not self._loose:
            return
        self._repository.sync_spills(self._loose)
        while self._loose:
            self._log.append_spill(self._loose[0])
            self.state = self.state.with_spill(self._loose.pop(0))
        self._log.sync()

    # --- flushed -> answered

    def commit_merge(self, buckets: tuple[BucketState, ...]) -> None:
        state = self.state._replace(buckets=buckets, answered=self.state.end)
        self._log.begin(state)
        self.state = state

    def sync_name(self) -> None:
        """Return once the last merge is durable."""
        self._log.sync_name()

    # --- answered -> told

    @property
    def next_answered(self) -> Spill | None:
        return self.state.spills[0] if self.state.told < self.state.answered else None

    def acknowledge(self, told: int) -> None:
        """Commit that the receiver has all answers before that ordinal.

        If the disk fails, they count as acknowledged, unless the process ends now.
        """
        self._done += [spill for spill in self.state.spills if spill.end <= told]
        self.state = self.state.with_told(told)
        with store_errors(self._repository.directory):
            self._log.append_told(told)

    def remove_told(self) -> None:
        """Delete the spills whose answers are all acknowledged, once that is durable."""
        if self._done:
            with store_errors(self._repository.directory):
                self._log.append_told(self.state.told)
                self._log.sync()
            for spill in self._done:
                self._repository.remove_spill(spill)
            self._done = []
