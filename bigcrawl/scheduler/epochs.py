"""The epoch directories of a partition, and how one owner's state becomes the next one's.

    <state>/p0007/e3/    what the owner of epoch 3 wrote: runs, segments, MANIFEST
    <state>/p0007/e5/    what the owner of epoch 5 writes; runs and segments taken over are hard links into e3/
    <state>/p0007/rejected/              what could not be read of the inbox, see `rejected`

Disk is fenced by epoch: an owner writes, renames and deletes only in its own directory (and deletes older
ones once its own is durable). The highest epoch with a manifest is the truth. A crash while taking over
leaves a directory without one, which is ignored, and removed by a later owner.

An epoch belongs to whoever makes its directory. Redis gives each epoch out once, but a Redis that forgot a claim
may give it out again, and a node that was stopped between its claim and the opening comes late: both find the
directory, or a later one, there.
"""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.exceptions import CorruptionError, OwnershipLostError
from bigcrawl.scheduler.admission import decode_admit_batch
from bigcrawl.scheduler.manifest import PARK_NAME
from bigcrawl.scheduler.manifest_log import MANIFEST, decode_manifest, decode_sound_manifests
from bigcrawl.scheduler.segments import SegmentLog
from bigcrawl.scheduler.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bigcrawl.drum.files import Files
    from bigcrawl.scheduler.manifest import Manifest

REJECTED = "rejected"

_EPOCH_NAME = re.compile(r"e(\d+)")

# A predecessor that still lives may commit, and delete, between our reading its manifest and linking.
_TAKE_OVER_TRIES = 4


class EpochDirectory:
    """The files of one owner but for its manifest, and what of them is not synced yet."""

    def __init__(self, path: Path, epoch: int, files: Files) -> None:
        self.path = path
        self.epoch = epoch
        self.files = files
        self._present: set[str] = set()
        self._unsynced: set[str] = set()
        self._base = str(path)
        # Whether all names in the directory are on the medium; and its own name, and its parent's.
        self._lists_all = False
        self._is_named = False

    def __repr__(self) -> str:
        return f"<EpochDirectory {self.path} files={len(self._present)} unsynced={len(self._unsynced)}>"

    def place(self, name: str) -> str:
        """Return the path of a file."""
        return f"{self._base}/{name}"

    def read(self, name: str, offset: int = 0, size: int | None = None) -> bytes:
        """Return bytes of a file."""
        return self.files.read(self.place(name), offset, size)

    def write_at(self, name: str, offset: int, data: bytes) -> None:
        """Write to a file at an offset."""
        self.note_written(name)
        self.files.write_at(self.place(name), offset, data)

    def note_written(self, name: str) -> None:
        """Remember that a file is being written, so that it is synced or, unreferenced, deleted."""
        if name not in self._present:
            self._present.add(name)
            self._lists_all = False
        self._unsynced.add(name)

    def link(self, source: Path, name: str) -> None:
        """Take a file over under its old name; whether it was ever synced is not known."""
        self.note_written(name)
        self.files.link(source, self.path / name)

    def set_aside(self, entry_id: str, data: bytes) -> None:
        """Keep, synced, an inbox entry that could not be decoded; the same entry again changes nothing."""
        rejected = self.path.parent / REJECTED
        self.files.make_directory(rejected)
        self.files.write_new(rejected / entry_id, (data,))
        self.files.sync_file(rejected / entry_id)
        self.files.sync_directory(rejected)
        self.files.sync_directory(rejected.parent)

    def count_set_aside(self) -> int:
        """Return how many entries lie there: they may have been taken in again, or dropped, by hand."""
        return len(self.files.list_directory(self.path.parent / REJECTED))

    def sync_files(self, names: Iterable[str]) -> None:
        """Sync the files of these names that were written since they were last synced."""
        for name in sorted(self._unsynced.intersection(names)):
            self.files.sync_file(self.place(name))
            self._unsynced.discard(name)

    def note_renamed(self) -> None:
        """Remember that a manifest was renamed into place."""
        self._lists_all = False

    def sync_names(self) -> None:
        """Sync the directory, and those that it lies in, unless their names are on the medium already."""
        if not self._lists_all:
            self.files.sync_directory(self.path)
            self._lists_all = True
        if not self._is_named:
            self.files.sync_directory(self.path.parent)
            self.files.sync_directory(self.path.parent.parent)
            self._is_named = True

    def remove_all_but(self, names: Iterable[str]) -> None:
        """Delete the files that no manifest, current or durable, refers to."""
        for name in sorted(self._present.difference(names)):
            self.files.unlink(self.place(name))
            self._present.discard(name)
            self._unsynced.discard(name)


def epoch_path(directory: Path, epoch: int) -> Path:
    """Return the directory of an epoch."""
    return directory / f"e{epoch}"


def list_epochs(directory: Path, files: Files) -> list[int]:
    """Return the epochs that have a directory, highest first."""
    matches = map(_EPOCH_NAME.fullmatch, files.list_directory(directory))
    return sorted((int(match[1]) for match in matches if match), reverse=True)


def list_committed(directory: Path, files: Files) -> list[int]:
    """Return the epochs that have a manifest, highest first."""
    epochs = list_epochs(directory, files)
    return [epoch for epoch in epochs if files.exists(epoch_path(directory, epoch) / MANIFEST)]


def remove_epoch(path: Path, files: Files) -> None:
    """Delete an epoch directory, its manifest first: what is left of a crash then counts as leftover."""
    names = set(files.list_directory(path))
    for name in (MANIFEST, *sorted(names - {MANIFEST})):
        if name in names:
            files.unlink(path / name)
    try:
        files.remove_directory(path)
    except OSError as error:
        # A fenced owner wrote there just now; the next durable point tries again.
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


class Inherited(NamedTuple):
    """What an owner takes over besides files: the manifest, and the retained batches that its log held."""

    manifest: Manifest
    batches: list[bytes]


def begin_epoch(directory: Path, epoch: int, files: Files) -> EpochDirectory:
    """Make the directory of an epoch that nobody has opened, nor a later one.

    Raises:
        OwnershipLostError: somebody has; nothing was changed.
    """
    files.make_directory(directory)
    last = next(iter(list_epochs(directory, files)), 0)
    if last > epoch:
        raise _is_over(directory, epoch, last)
    own = EpochDirectory(epoch_path(directory, epoch), epoch, files)
    try:
        files.make_new_directory(own.path)
    except FileExistsError:
        raise OwnershipLostError(f"{directory}: epoch {epoch} was opened before") from None
    return own


def take_over(directory: Path, own: EpochDirectory, *, fall_back: bool = False) -> Inherited | None:
    """Fill the directory of a new epoch with links to all that the newest manifest refers to.

    Args:
        directory: the partition's.
        own: as `begin_epoch` made it.
        fall_back: where the newest manifest is damaged or names lost bytes, as a power cut may leave it, go
            back to the last sound one, and then to the last durable one.

    Returns:
        what was taken over, without a manifest of its own yet; None for a new partition.

    Raises:
        OwnershipLostError: a later epoch was opened meanwhile.
        CorruptionError: the manifest, or a file it refers to, is not what was written.
    """
    files = own.files
    error: Exception | None = None
    for _ in range(_TAKE_OVER_TRIES):
        committed = list_committed(directory, files)
        if committed and committed[0] > own.epoch:
            raise _is_over(directory, own.epoch, committed[0])
        if not committed and error is None:
            return None
        for source in committed if fall_back else committed[:1]:
            try:
                return _inherit(epoch_path(directory, source), own, fall_back=fall_back)
            except FileNotFoundError as missing:
                error = _lost(missing)
            except CorruptionError as damaged:
                error = damaged
            _make_empty(own.path, files)
    assert error is not None
    raise error


def _is_over(directory: Path, epoch: int, last: int) -> OwnershipLostError:
    return OwnershipLostError(f"{directory}: epoch {epoch} is over; {last} was opened meanwhile")


def _make_empty(path: Path, files: Files) -> None:
    for name in files.list_directory(path):
        files.unlink(path / name)


def remove_older_epochs(own: EpochDirectory) -> None:
    """Delete the directories of all epochs before this one; a later one is a successor's."""
    directory = own.path.parent
    for epoch in list_epochs(directory, own.files):
        if epoch < own.epoch:
            remove_epoch(epoch_path(directory, epoch), own.files)


def _inherit(source: Path, own: EpochDirectory, *, fall_back: bool) -> Inherited:
    path = source / MANIFEST
    log = own.files.read(path)
    manifests = list(decode_sound_manifests(path, log)) if fall_back else [decode_manifest(path, log)]
    while True:
        manifest = manifests.pop(0)
        try:
            _link_all(source, manifest, own)
            if fall_back and (problems := _verify_files(own, manifest)):
                raise problems[0]
        except (FileNotFoundError, CorruptionError):
            if not manifests:
                raise
            _make_empty(own.path, own.files)
        else:
            return Inherited(manifest, [log[at : at + length] for _, at, length in manifest.retained])


def _link_all(source: Path, manifest: Manifest, own: EpochDirectory) -> None:
    for name, length in manifest.files_needed().items():
        path = source / name
        own.link(path, name)
        size = own.files.size(path)
        if size < length:
            raise CorruptionError(path, size, f"{length} bytes", f"{size} bytes")


def _lost(missing: FileNotFoundError) -> CorruptionError:
    error = CorruptionError(missing.filename, 0, "a file the manifest names", "none")
    error.__cause__ = missing
    return error


def is_unused(directory: Path, files: Files) -> bool:
    """Whether Redis may forget all of the partition: no URL of it is known to have ended, and every batch is kept.

    Raises:
        CorruptionError: the manifest is damaged.
    """
    committed = list_committed(directory, files)
    if not committed:
        return True
    path = epoch_path(directory, committed[0]) / MANIFEST
    log = files.read(path)
    manifest = decode_manifest(path, log)
    if (
        len(manifest.tables.ends.runs)
        or len(manifest.tables.ends.fresh)
        or len(manifest.retained) < manifest.batch_number
    ):
        return False
    batches = (decode_admit_batch(path, log[at : at + length], at) for _, at, length in manifest.retained[:1])
    return all(batch.has_text for batch in batches)


def verify_newest(directory: Path, files: Files) -> list[CorruptionError]:
    """Read every byte the newest manifest refers to and return what is damaged; empty when all is well.

    Changes nothing; an owner that steps meanwhile may delete a file before it is read.
    """
    committed = list_committed(directory, files)
    if not committed:
        return []
    own = EpochDirectory(epoch_path(directory, committed[0]), committed[0], files)
    path = own.path / MANIFEST
    try:
        manifest = decode_manifest(path, files.read(path))
        return _verify_files(own, manifest)
    except CorruptionError as error:
        return [error]
    except OSError as error:
        return [CorruptionError(error.filename or path, 0, "a readable file", error)]


def _verify_files(own: EpochDirectory, manifest: Manifest) -> list[CorruptionError]:
    logs = [SegmentLog(own, name, state.segments) for name, state in manifest.queues.items()]
    logs.append(SegmentLog(own, PARK_NAME, manifest.parked.segments))
    problems = Tables.restore(own, manifest.tables).verify()
    return problems + [problem for log in logs for problem in log.verify()]
