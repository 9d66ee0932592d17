"""What one owner of a partition has committed: the manifest, its log, and the files that it names (steps 4 to 7).

    commit        a record appended to MANIFEST    no fsync
    make_durable  fsync all that MANIFEST names, MANIFEST, the directory; then delete what it does not name

Nothing here knows what a step does. Whoever has written a step's files hands over the manifest that names them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bigcrawl.drum.files import store_errors
from bigcrawl.scheduler.partition.admit_batch import AdmitBatch, decode_admit_batch, encode_admit_batch
from bigcrawl.scheduler.partition.copies import PartitionCopy
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID
from bigcrawl.scheduler.partition.manifest_log import decode_manifest
from bigcrawl.scheduler.partition.takeover import new_epoch, remove_older_epochs
from bigcrawl.scheduler.queues.epoch_directory import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bigcrawl.scheduler.partition.manifest import BatchPlace, Manifest
    from bigcrawl.scheduler.partition.manifest_log import ManifestLog
    from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory


class CommittedFiles:
    """The committed manifest of an epoch, and the last one that was made durable.

    Attributes:
        own: the directory of the epoch.
        manifest: the committed manifest.
        durable: the last one that this owner made durable; None before the first.

    Later manifests drop what is no longer needed, and was named by `forget_batches`, `forget_text` or `note_told`.
    """

    def __init__(
        self,
        directory: Path,
        own: EpochDirectory,
        log: ManifestLog,
        manifest: Manifest,
        require_place: Callable[[], None] | None = None,
    ) -> None:
        """Begin with the first manifest of an epoch, which its log holds already, unless it is still to be begun."""
        self.own = own
        self.manifest = manifest
        self.durable: Manifest | None = None
        self._directory = directory
        self._require_place = require_place
        self._log = log
        self._forgotten = 0
        self._without_text_upto = 0
        self._told = 0  # bytes of the manifest's `untold` that were sent
        self._older_removed = False
        self._lent: frozenset[str] = frozenset()  # files that a copy is being made of

    def __repr__(self) -> str:
        return f"<CommittedFiles {self.own.path} manifest={self.manifest.number}>"

    # --- committing

    @property
    def _is_begun(self) -> bool:
        return self._log.size > 0

    def begin(self) -> None:
        """Make the directory and the log of the epoch, if they are still to be made; before any other file of it.

        Raises:
            OwnershipLostError: the epoch, or a later one, was opened before. Nothing was changed.
            OSError, TransientStoreError: the disk failed, or is another one. The call may be repeated.
        """
        if not self._is_begun:
            if self._require_place is not None:
                self._require_place()
            with new_epoch(self._directory, self.own.epoch, self.own.files):
                self.manifest = self._log.begin(self.manifest, ())

    def commit(self, manifest: Manifest, batch: AdmitBatch | None = None) -> None:
        """Append a manifest with the next number, and its batch. What is no longer needed is left out.

        The manifest is the committed one with changes. Its `untold` may only have become longer.
        """
        number, durable = self.manifest.number + 1, self.durable.number if self.durable else 0
        untold, retained = manifest.untold[self._told :], self._still_retained()
        manifest = replace(manifest, number=number, durable=durable, untold=untold, retained=retained)
        self.manifest = self._log.append(manifest, encode_admit_batch(batch) if batch else b"")
        self._told = 0

    def _still_retained(self) -> tuple[BatchPlace, ...]:
        places = self.manifest.retained
        if not places or places[0].number > self._forgotten:
            return places
        return tuple(place for place in places if place.number > self._forgotten)

    # --- admit batches

    def batches(self, above: int) -> Iterator[AdmitBatch]:
        """Yield the committed batches above the last one that Redis knows, in order.

        The text of an old batch is dropped, and later its keys. See `AdmitBatch.has_text`.

        Raises:
            CorruptionError: one of them is damaged.
        """
        for number in range(above + 1, self.manifest.batch_number + 1):
            # The log may be begun anew between two batches, so places are looked up each time.
            place = next((place for place in self.manifest.retained if place.number == number), None)
            if place is None:
                yield AdmitBatch(number, 0, [])
                continue
            _, offset, length = place
            with store_errors(self._directory):
                data = self.own.read(MANIFEST, offset, length)
            yield decode_admit_batch(self.own.place(MANIFEST), data, offset)

    def forget_batches(self, upto: int) -> None:
        """Let later manifests drop the batches up to a number, because Redis has persisted them."""
        self._forgotten = max(self._forgotten, min(upto, self.manifest.batch_number))

    def forget_text(self, upto: int) -> None:
        """Let later logs keep only the keys of batches up to a number."""
        self._without_text_upto = max(self._without_text_upto, upto)

    # --- what other partitions are told

    @property
    def untold(self) -> bytes:
        """Rows for the partitions of contents, see `records.contents`. They may have been sent by an owner before."""
        return self.manifest.untold[self._told :]

    def note_told(self, rows: bytes) -> None:
        """These first bytes of `untold` were sent. The next manifest forgets them."""
        assert self.untold.startswith(rows), "what was sent waited first"
        self._told += len(rows)

    # --- durability

    @property
    def durable_inbox_id(self) -> str:
        """The last inbox entry folded by a manifest that this owner made durable. The inbox may be trimmed up to it."""
        return self.durable.inbox_id if self.durable else NO_INBOX_ID

    @property
    def durable_batch_number(self) -> int:
        """The last admit batch of a manifest that this owner made durable."""
        return self.durable.batch_number if self.durable else 0

    @property
    def has_undurable_changes(self) -> bool:
        """Whether `make_durable` has anything to do."""
        return self._is_begun and self.durable is not self.manifest

    def make_durable(self) -> None:
        """Sync what is committed, then delete files that it no longer needs.

        Raises:
            TransientStoreError: the disk failed. What was durable still is, and the call may be repeated.
            CorruptionError: a retained admit batch is damaged.
        """
        if not self.has_undurable_changes:
            return
        with store_errors(self._directory):
            needed = self.manifest.files_needed()
            self.own.sync_files(needed)
            if self._log.has_grown:
                self.own.note_renamed()
                self.manifest = self._log.begin_anew(self._without_text_upto)
            else:
                self._log.sync()
            self.own.sync_names()
            self.durable = self.manifest
            self.own.remove_all_but(needed.keys() | self._lent)
            if not self._older_removed:
                remove_older_epochs(self.own)
                self._older_removed = True

    # --- copies

    def lend_copy(self) -> PartitionCopy:
        """Return what a copy of the committed state consists of. Its files stay until `end_copy`.

        Raises:
            TransientStoreError: the disk failed.
        """
        with store_errors(self._directory):
            self.begin()
            lengths = self.manifest.files_needed()
            self._lent = frozenset(lengths)
            return PartitionCopy(self.own, self.manifest, self._log.copy(), lengths)

    def end_copy(self) -> None:
        """The files of the last copy need not stay any longer."""
        self._lent = frozenset()

    # --- checking

    def _check(self) -> None:
        manifest = self.manifest
        numbers = [place.number for place in manifest.retained]
        assert numbers == sorted(set(numbers)), "batches are numbered once"
        assert all(number <= manifest.batch_number for number in numbers), "none is ahead"
        for name, length in manifest.files_needed().items():
            assert self.own.files.size(self.own.place(name)) >= length, f"{name} holds what is committed"
        if not self._is_begun:
            return
        committed = decode_manifest(self.own.place(MANIFEST), self.own.read(MANIFEST, 0, self._log.size))
        assert committed == manifest, "what is on disk is what is in memory"
        assert list(committed.parked.chains) == list(manifest.parked.chains), "and hosts have the same turns"
