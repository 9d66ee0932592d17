"""The epoch directories of a partition, each the files of one owner.

    <state>/p0007/e3/    what the owner of epoch 3 wrote: runs, segments, MANIFEST
    <state>/p0007/e5/    what the owner of epoch 5 writes; runs and segments taken over are hard links into e3/
    <state>/p0007/rejected/              what could not be read of the inbox, see `rejected`

Disk is fenced by epoch: an owner writes, renames and deletes only in its own directory, and deletes older ones once
its own is durable.
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


MANIFEST = "MANIFEST"
