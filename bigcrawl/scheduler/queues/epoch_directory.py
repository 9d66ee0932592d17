"""The epoch directories of a partition; each holds the files of one owner.

    <state>/p0007/e3/    written by the owner of epoch 3: runs, segments, MANIFEST
    <state>/p0007/e5/    written by the owner of epoch 5; inherited runs and segments are hard links into e3/
    <state>/p0007/rejected/              inbox entries that could not be read, see `rejected`

The epoch is the fence on disk: an owner writes, renames and deletes files only in its own directory. It deletes older
directories once its own is durable.
"""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike
    from pathlib import Path

    from bigcrawl.drum.files import Files

    AnyPath = str | PathLike[str]


REJECTED = "rejected"

_EPOCH_NAME = re.compile(r"e(\d+)")


class EpochDirectory:
    """The files of one owner, except its manifest, and which of them are not synced yet."""

    def __init__(self, path: Path, epoch: int, files: Files) -> None:
        self.path = path
        self.epoch = epoch
        self.files = files
        self._present: set[str] = set()
        self._unsynced: set[str] = set()
        self._base = str(path)
        # Whether the directory's entries are on the medium; and its own name, and its parent's.
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
        """Record that a file is being written, so that it will be synced or, if unreferenced, deleted."""
        if name not in self._present:
            self._present.add(name)
            self._lists_all = False
        self._unsynced.add(name)

    def link(self, source: Path, name: str) -> None:
        """Inherit a file under its old name. It may never have been synced."""
        self.note_written(name)
        self.files.link(source, self.path / name)

    def set_aside(self, entry_id: str, data: bytes) -> None:
        """Store an inbox entry that could not be decoded, synced. Storing it again changes nothing."""
        rejected = self.path.parent / REJECTED
        self.files.make_directory(rejected)
        self.files.write_new(rejected / entry_id, (data,))
        self.files.sync_file(rejected / entry_id)
        self.files.sync_directory(rejected)
        self.files.sync_directory(rejected.parent)

    def count_set_aside(self) -> int:
        """Return how many rejected entries there are now; operators can retry or drop them."""
        return len(self.files.list_directory(self.path.parent / REJECTED))

    def sync_files(self, names: Iterable[str]) -> None:
        """Sync those of the named files that were written since their last sync."""
        for name in sorted(self._unsynced.intersection(names)):
            self.files.sync_file(self.place(name))
            self._unsynced.discard(name)

    def note_renamed(self) -> None:
        """Record that a manifest was renamed into place."""
        self._lists_all = False

    def sync_names(self) -> None:
        """Sync the directory and its parents, unless their entries are on the medium already."""
        if not self._lists_all:
            self.files.sync_directory(self.path)
            self._lists_all = True
        if not self._is_named:
            self.files.sync_directory(self.path.parent)
            self.files.sync_directory(self.path.parent.parent)
            self._is_named = True

    def remove_all_but(self, names: Iterable[str]) -> None:
        """Delete all files except those that a current or durable manifest refers to."""
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
    """Delete an epoch directory, manifest first, so that after a crash the rest counts as leftover."""
    names = set(files.list_directory(path))
    for name in (MANIFEST, *sorted(names - {MANIFEST})):
        if name in names:
            files.unlink(path / name)
    try:
        files.remove_directory(path)
    except OSError as error:
        # A fenced owner has just written there. The next durable point tries again.
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


MANIFEST = "MANIFEST"
