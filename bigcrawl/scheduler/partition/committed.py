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
from bigcrawl.scheduler.partition.manifest_log import decode_manifest
from bigcrawl.scheduler.partition.takeover import remove_older_epochs
from bigcrawl.scheduler.queues.epoch_directory import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterator
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
    """

    def __init__(self, directory: Path, own: EpochDirectory, log: ManifestLog, manifest: Manifest) -> None:
        """Begin with the first manifest of an epoch, which its log holds already."""
        self.own = own
        self.manifest = manifest
        self.durable: Manifest | None = None
        self._directory = directory
        self._log = log
        self._forgotten = 0
        self._without_text_upto = 0
        self._older_removed = False
        self._lent: frozenset[str] = frozenset()  # files that a copy is being made of

    def __repr__(self) -> str:
        return f"<CommittedFiles {self.own.path} manifest={self.manifest.number}>"

    # --- committing

    def commit(self, manifest: Manifest, batch: AdmitBatch | None = None) -> None:
        """Append a manifest with the next number, and its batch. Batches that are no longer needed are left out."""
        number, durable = self.manifest.number + 1, self.durable.number if self.durable else 0
        manifest = replace(manifest, number=number, durable=durable, retained=self._still_retained())
        self.manifest = self._log.append(manifest, encode_admit_batch(batch) if batch else b"")

    def _still_retained(self) -> tuple[BatchPlace, ...]:
        places = self.manifest.retained
        if not places or places[0].number > self._forgotten:
            return places
        return tuple(place for place in places if place.number > self._forgotten)

    # --- admit batches

    def batches(self, above: int) -> Iterator[AdmitBatch]:
        """Yield the committed batches with higher numbers. See `Partition.pending_batches`."""
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
        """Let later manifests drop the batches up to a number."""
        self._forgotten = max(self._forgotten, min(upto, self.manifest.batch_number))

    def forget_text(self, upto: int) -> None:
        """Let later logs keep only the keys of batches up to a number."""
        self._without_text_upto = max(self._without_text_upto, upto)

    # --- durability

    @property
    def has_undurable_changes(self) -> bool:
        """Whether `make_durable` has anything to do."""
        return self.durable is not self.manifest

    def make_durable(self) -> None:
        """Sync what is committed, then delete what it no longer needs. Raises what `Partition.make_durable` does."""
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
        """Return what a copy consists of. Its files stay until `end_copy`."""
        with store_errors(self._directory):
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
        committed = decode_manifest(self.own.place(MANIFEST), self.own.read(MANIFEST, 0, self._log.size))
        assert committed == manifest, "what is on disk is what is in memory"
        assert list(committed.parked.chains) == list(manifest.parked.chains), "and hosts have the same turns"
