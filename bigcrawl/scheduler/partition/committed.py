"""The committed state of one owner: the manifest, its log, and the files that it names, and copies of them in a store.

A copy is restored into `fetched/`, which becomes the epoch directory by one rename.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bigcrawl.drum.files import Files, store_errors
from bigcrawl.exceptions import CorruptionError
from bigcrawl.scheduler.partition.admit_batch import AdmitBatch, decode_admit_batch, encode_admit_batch
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID, BatchPlace, Manifest
from bigcrawl.scheduler.partition.manifest_log import ManifestLog, decode_manifest
from bigcrawl.scheduler.partition.takeover import new_epoch, remove_older_epochs
from bigcrawl.scheduler.queues.epoch_directory import (
    MANIFEST,
    REJECTED,
    EpochDirectory,
    epoch_path,
    list_committed,
    remove_epoch,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Write = Callable[[str, int, bytes], None]

_FETCHED = "fetched"


class PartitionCopy:
    def __init__(self, own: EpochDirectory, manifest: Manifest, log: bytes, lengths: dict[str, int]) -> None:
        self._own = own
        self.epoch, self.number = manifest.epoch, manifest.number
        self.inbox_id, self.batch_number = manifest.inbox_id, manifest.batch_number
        self.log = log
        below = own.path.parent / REJECTED
        aside = {f"{REJECTED}/{name}": own.files.size(below / name) for name in own.files.list_directory(below)}
        self.lengths = lengths | aside

    def read(self, name: str, offset: int, size: int) -> bytes:
        directory = self._own.path.parent if name.startswith(f"{REJECTED}/") else self._own.path
        with store_errors(directory):
            data = self._own.files.read(directory / name, offset, size)
        if len(data) < size:
            raise CorruptionError(directory / name, offset, f"{size} bytes", f"{len(data)} bytes")
        return data


def newest_manifest(directory: Path, files: Files) -> Manifest | None:
    with store_errors(directory):
        for epoch in list_committed(directory, files):
            path = epoch_path(directory, epoch) / MANIFEST
            return decode_manifest(path, files.read(path))
        return None


def newest_of(directory: Path, files: Files) -> tuple[int, int] | None:
    newest = newest_manifest(directory, files)
    return (newest.epoch, newest.number) if newest is not None else None


def put_back(directory: Path, epoch: int, files: Files, fetch: Callable[[Write], bytes]) -> None:
    """Restore a copy; `fetch` writes all its files and returns the manifest's log."""
    target = directory / _FETCHED

    def write(name: str, offset: int, data: bytes) -> None:
        folder, _, plain = name.rpartition("/")
        if folder not in ("", REJECTED) or plain != Path(plain).name:
            raise CorruptionError(directory, 0, "the name of a file", repr(name))
        if folder:
            files.make_directory(directory / folder)
        files.write_at((directory if folder else target) / name, offset, data)

    with store_errors(directory):
        files.make_directory(directory)
        remove_epoch(target, files)
        files.make_directory(target)
        files.write_new(target / MANIFEST, (fetch(write),))
        remove_epoch(epoch_path(directory, epoch), files)
        files.replace(target, epoch_path(directory, epoch))


class CommittedFiles:
    def __init__(
        self,
        directory: Path,
        own: EpochDirectory,
        log: ManifestLog,
        manifest: Manifest,
        require_place: Callable[[], None] | None = None,
    ) -> None:
        self.own = own
        self.manifest = manifest
        self.durable: Manifest | None = None
        self._directory = directory
        self._require_place = require_place
        self._log = log
        self._forgotten = 0
        self._without_text_upto = 0
        self._told = 0
        self._older_removed = False
        self._lent: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"<CommittedFiles {self.own.path} manifest={self.manifest.number}>"

    @property
    def _is_begun(self) -> bool:
        return self._log.size > 0

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was ever folded, so that there is no file."""
        return not self._is_begun and self.manifest.inbox_id == NO_INBOX_ID

    def begin(self) -> None:
        """Make the directory and the log of the epoch, unless they exist; call this before writing any other file."""
        if not self._is_begun:
            if self._require_place is not None:
                self._require_place()
            with new_epoch(self._directory, self.own.epoch, self.own.files):
                self.manifest = self._log.begin(self.manifest, ())

    def commit(self, manifest: Manifest, batch: AdmitBatch | None = None) -> None:
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

    def batches(self, above: int) -> Iterator[AdmitBatch]:
        """Yield the committed batches after number `above`, in order; old ones have only keys, or nothing."""
        for number in range(above + 1, self.manifest.batch_number + 1):
            # The log may be replaced between two batches, so places are looked up each time.
            place = next((place for place in self.manifest.retained if place.number == number), None)
            if place is None:
                yield AdmitBatch(number, 0, [])
                continue
            _, offset, length = place
            with store_errors(self._directory):
                data = self.own.read(MANIFEST, offset, length)
            yield decode_admit_batch(self.own.relative_path(MANIFEST), data, offset)

    def forget_batches(self, upto: int) -> None:
        self._forgotten = max(self._forgotten, min(upto, self.manifest.batch_number))

    def forget_text(self, upto: int) -> None:
        self._without_text_upto = max(self._without_text_upto, upto)

    @property
    def unsent_rows(self) -> bytes:
        """Rows that are owed to other partitions; an earlier owner may have sent them."""
        return self.manifest.untold[self._told :]

    def record_delivered(self, rows: bytes) -> None:
        assert self.unsent_rows.startswith(rows), "what was sent waited first"
        self._told += len(rows)

    @property
    def durable_inbox_id(self) -> str:
        """The last inbox entry in a durable manifest of this owner; the inbox may be trimmed up to it."""
        return self.durable.inbox_id if self.durable else NO_INBOX_ID

    @property
    def durable_batch_number(self) -> int:
        return self.durable.batch_number if self.durable else 0

    @property
    def has_undurable_changes(self) -> bool:
        return self._is_begun and self.durable is not self.manifest

    def make_durable(self) -> None:
        """Sync the committed files, then delete unneeded files. The call may be repeated after an error."""
        if not self.has_undurable_changes:
            return
        with store_errors(self._directory):
            needed = self.manifest.files_needed()
            self.own.sync_files(needed)
            if self._log.has_grown:
                self.own.record_renamed()
                self.manifest = self._log.begin_anew(self._without_text_upto)
            else:
                self._log.sync()
            self.own.sync_names()
            self.durable = self.manifest
            self.own.remove_all_but(needed.keys() | self._lent)
            if not self._older_removed:
                remove_older_epochs(self.own)
                self._older_removed = True

    def lend_copy(self) -> PartitionCopy:
        with store_errors(self._directory):
            self.begin()
            lengths = self.manifest.files_needed()
            self._lent = frozenset(lengths)
            return PartitionCopy(self.own, self.manifest, self._log.copy(), lengths)

    def end_copy(self) -> None:
        self._lent = frozenset()

    def _check(self) -> None:
        manifest = self.manifest
        numbers = [place.number for place in manifest.retained]
        assert numbers == sorted(set(numbers)), "batches are numbered once"
        assert all(number <= manifest.batch_number for number in numbers), "none is ahead"
        for name, length in manifest.files_needed().items():
            assert self.own.files.size(self.own.relative_path(name)) >= length, f"{name} holds what is committed"
        if not self._is_begun:
            return
        committed = decode_manifest(self.own.relative_path(MANIFEST), self.own.read(MANIFEST, 0, self._log.size))
        assert committed == manifest, "what is on disk is what is in memory"
        assert list(committed.parked.chains) == list(manifest.parked.chains), "and hosts have the same turns"
