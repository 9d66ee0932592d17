"""The epoch directories of a partition, `<state>/p<id>/e<epoch>/`; each holds the files of one owner.

The epoch is the fence on disk: an owner writes, renames and deletes files only in its own directory, where inherited
files are hard links. It deletes older directories once its own is durable.
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
    def __init__(self, path: Path, epoch: int, files: Files) -> None:
        self.path = path
        self.epoch = epoch
        self.files = files
        self._present: set[str] = set()
        self._unsynced: set[str] = set()
        self._base = str(path)
        # Whether the names in the directory are on the medium; and whether its own and its parent's name are.
        self._lists_all = False
        self._is_named = False

    def relative_path(self, name: str) -> str:
        return f"{self._base}/{name}"

    def read(self, name: str, offset: int = 0, size: int | None = None) -> bytes:
        return self.files.read(self.relative_path(name), offset, size)

    def write_at(self, name: str, offset: int, data: bytes) -> None:
        self.record_written(name)
        self.files.write_at(self.relative_path(name), offset, data)

    def record_written(self, name: str) -> None:
        if name not in self._present:
            self._present.add(name)
            self._lists_all = False
        self._unsynced.add(name)

    def link(self, source: Path, name: str) -> None:
        """Inherit a file under its old name. The file may never have been synced."""
        self.record_written(name)
        self.files.link(source, self.path / name)

    def set_aside(self, entry_id: str, data: bytes) -> None:
        """Store an undecodable inbox entry durably; repeating this changes nothing."""
        rejected = self.path.parent / REJECTED
        self.files.make_directory(rejected)
        self.files.write_new(rejected / entry_id, (data,))
        self.files.sync_file(rejected / entry_id)
        self.files.sync_directory(rejected)
        self.files.sync_directory(rejected.parent)

    def count_set_aside(self) -> int:
        return len(self.files.list_directory(self.path.parent / REJECTED))

    def sync_files(self, names: Iterable[str]) -> None:
        for name in sorted(self._unsynced.intersection(names)):
            self.files.sync_file(self.relative_path(name))
            self._unsynced.discard(name)

    def record_renamed(self) -> None:
        self._lists_all = False

    def sync_names(self) -> None:
        if not self._lists_all:
            self.files.sync_directory(self.path)
            self._lists_all = True
        if not self._is_named:
            self.files.sync_directory(self.path.parent)
            self.files.sync_directory(self.path.parent.parent)
            self._is_named = True

    def remove_all_but(self, names: Iterable[str]) -> None:
        for name in sorted(self._present.difference(names)):
            self.files.unlink(self.relative_path(name))
            self._present.discard(name)
            self._unsynced.discard(name)


def epoch_path(directory: Path, epoch: int) -> Path:
    return directory / f"e{epoch}"


def list_epochs(directory: Path, files: Files) -> list[int]:
    matches = map(_EPOCH_NAME.fullmatch, files.list_directory(directory))
    return sorted((int(match[1]) for match in matches if match), reverse=True)


def list_committed(directory: Path, files: Files) -> list[int]:
    epochs = list_epochs(directory, files)
    return [epoch for epoch in epochs if files.exists(epoch_path(directory, epoch) / MANIFEST)]


def remove_epoch(path: Path, files: Files) -> None:
    """Delete an epoch directory, the manifest first, so that the rest counts as leftover after a crash."""
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
