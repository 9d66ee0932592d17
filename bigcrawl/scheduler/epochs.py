"""The epoch directories of a partition, and how one owner's state becomes the next one's.

    <state>/p0007/e3/    what the owner of epoch 3 wrote: runs, segments, admit batches, MANIFEST
    <state>/p0007/e5/    what the owner of epoch 5 writes; what it took over are hard links into e3/
    <state>/p0007/rejected/<inbox id>    batches that could not be decoded

Disk is fenced by epoch: an owner writes, renames and deletes only in its own directory (and deletes older
ones once its own is durable). The highest epoch with a manifest is the truth. A crash while taking over
leaves a directory without one, which is ignored, and removed by a later owner.
"""

from __future__ import annotations

import contextlib
import errno
import re
from typing import TYPE_CHECKING

from bigcrawl.exceptions import ContractError, CorruptionError, TransientStoreError
from bigcrawl.scheduler.manifest import (
    DURABLE,
    DURABLE_TEMPORARY,
    MANIFEST,
    MANIFEST_TEMPORARY,
    decode_manifest,
    encode_manifest,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from bigcrawl.drum.files import Files
    from bigcrawl.scheduler.manifest import Manifest

REJECTED = "rejected"

_EPOCH_NAME = re.compile(r"e(\d+)")

# A predecessor that still lives may commit, and delete, between our reading its manifest and linking.
_TAKE_OVER_TRIES = 4


class EpochDirectory:
    """The directory one owner writes, and what of it is not synced yet."""

    def __init__(self, path: Path, epoch: int, files: Files) -> None:
        self.path = path
        self.epoch = epoch
        self.files = files
        self._present: set[str] = set()
        self._unsynced: set[str] = set()
        # Whether the directory's own name, and its parent's, are on the medium.
        self._is_named = False

    def __repr__(self) -> str:
        return f"<EpochDirectory {self.path} files={len(self._present)} unsynced={len(self._unsynced)}>"

    def read(self, name: str, offset: int = 0, size: int | None = None) -> bytes:
        """Return bytes of a file."""
        return self.files.read(self.path / name, offset, size)

    def write_new(self, name: str, data: bytes) -> None:
        """Write a file whole."""
        self.note_written(name)
        self.files.write_new(self.path / name, (data,))

    def write_at(self, name: str, offset: int, data: bytes) -> None:
        """Write to a file at an offset."""
        self.note_written(name)
        self.files.write_at(self.path / name, offset, data)

    def note_written(self, name: str) -> None:
        """Remember that a file is being written, so that it is synced or, unreferenced, deleted."""
        self._present.add(name)
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

    def commit(self, manifest: Manifest) -> None:
        """Rename the manifest into place: from here on it is the truth."""
        temporary, final = self.path / MANIFEST_TEMPORARY, self.path / MANIFEST
        data = encode_manifest(manifest)
        self.files.write_new(temporary, (data,))
        try:
            self.files.replace(temporary, final)
        except OSError:
            # A network file system may fail to answer for a rename that it has done.
            if not self.files.exists(final) or self.files.read(final) != data:
                raise

    def sync(self, names: Iterable[str]) -> None:
        """Sync the files that the manifest names, then the manifest, then the directories.

        Files that were not written since they were last synced are left out.
        """
        for name in sorted(self._unsynced.intersection(names)):
            self.files.sync_file(self.path / name)
            self._unsynced.discard(name)
        self.files.sync_file(self.path / MANIFEST)
        self.files.unlink(self.path / DURABLE_TEMPORARY)
        self.files.link(self.path / MANIFEST, self.path / DURABLE_TEMPORARY)
        self.files.replace(self.path / DURABLE_TEMPORARY, self.path / DURABLE)
        self.files.sync_directory(self.path)
        if not self._is_named:
            self.files.sync_directory(self.path.parent)
            self.files.sync_directory(self.path.parent.parent)
            self._is_named = True

    def remove_all_but(self, names: Iterable[str]) -> None:
        """Delete the files that no manifest, current or durable, refers to."""
        for name in sorted(self._present.difference(names)):
            self.files.unlink(self.path / name)
            self._present.discard(name)
            self._unsynced.discard(name)


@contextlib.contextmanager
def store_errors(directory: Path) -> Iterator[None]:
    """Translate what the file system raises; whatever was being done may be tried again."""
    try:
        yield
    except OSError as error:
        raise TransientStoreError(f"{directory}: {error}; nothing was committed, try again") from error


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
    for name in (MANIFEST, DURABLE, *sorted(names - {MANIFEST, DURABLE})):
        if name in names:
            files.unlink(path / name)
    try:
        files.remove_directory(path)
    except OSError as error:
        # A fenced owner wrote there just now; the next durable point tries again.
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def take_over(
    directory: Path, epoch: int, files: Files, *, fall_back: bool = False
) -> tuple[EpochDirectory, Manifest | None]:
    """Make the directory of a new epoch, with links to all that the newest manifest refers to.

    Args:
        directory: the partition's; made if need be.
        epoch: higher than any with a manifest.
        files: the file system.
        fall_back: go back to the last durable manifest where the newest is damaged or names lost bytes,
            as a power cut may leave it.

    Returns:
        the directory, without a manifest yet, and the manifest it took over; None for a new partition.

    Raises:
        ContractError: the epoch was used before, or a later one was.
        CorruptionError: the manifest, or a file it refers to, is not what was written.
    """
    own = EpochDirectory(epoch_path(directory, epoch), epoch, files)
    error: Exception | None = None
    for _ in range(_TAKE_OVER_TRIES):
        committed = list_committed(directory, files)
        if committed and committed[0] >= epoch:
            raise ContractError(f"{directory}: epoch {epoch} cannot be opened; {committed[0]} was used already")
        _make_empty(own.path, files)
        if not committed and error is None:
            return own, None
        for source in _sources(directory, committed, files, fall_back=fall_back):
            try:
                return own, _inherit(source, own)
            except FileNotFoundError as missing:
                error = CorruptionError(missing.filename or source, 0, "a file the manifest names", "none")
                error.__cause__ = missing
            except CorruptionError as damaged:
                error = damaged
            _make_empty(own.path, files)
    assert error is not None
    raise error


def _make_empty(path: Path, files: Files) -> None:
    files.make_directory(path)
    for name in files.list_directory(path):
        files.unlink(path / name)


def remove_older_epochs(own: EpochDirectory) -> None:
    """Delete the directories of all epochs before this one; a later one is a successor's."""
    directory = own.path.parent
    for epoch in list_epochs(directory, own.files):
        if epoch < own.epoch:
            remove_epoch(epoch_path(directory, epoch), own.files)


def _sources(directory: Path, committed: list[int], files: Files, *, fall_back: bool) -> list[Path]:
    """Return the manifests to try, the newest first."""
    sources = []
    for epoch in committed:
        path = epoch_path(directory, epoch)
        sources.append(path / MANIFEST)
        if files.exists(path / DURABLE):
            sources.append(path / DURABLE)
    return sources if fall_back else sources[:1]


def _inherit(source: Path, own: EpochDirectory) -> Manifest:
    manifest = decode_manifest(source, own.files.read(source))
    for name, length in manifest.files_needed().items():
        path = source.parent / name
        own.link(path, name)
        size = own.files.size(path)
        if size < length:
            raise CorruptionError(path, size, f"{length} bytes", f"{size} bytes")
    return manifest
