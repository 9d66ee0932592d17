"""A file system whose machine can lose its power: it knows what was synced, and makes the medium from that."""

from __future__ import annotations

import shutil
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from bigcrawl.drum.files import DiskFiles

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.drum.files import AnyPath


class Lost(Enum):
    """What of the bytes that were not synced is lost."""

    ALL = "all of them"
    HALF = "the second half of each file's"
    ZEROED = "all of them, but the files are as long as they were"
    NAMES = "all of them, and the names that were not synced"
    OF_DATA = "all of them but the manifest's"


class PowerCutFiles(DiskFiles):
    """The real file system; `cut_power` copies what a medium would hold."""

    def __init__(self) -> None:
        # By inode, which the second name of a file shares, and a new file of an old name does not.
        self._synced: dict[int, bytes] = {}
        self._names: dict[Path, dict[str, int]] = {}

    def write_new(self, path: AnyPath, chunks: Iterable[bytes]) -> None:
        # A new inode, as when the old one has another name; and none is used twice while a copy needs it.
        self.unlink(path)
        super().write_new(path, chunks)
        self._synced.pop(Path(path).stat().st_ino, None)

    def write_at(self, path: AnyPath, offset: int, data: bytes, *, create: bool = True) -> None:
        is_new = not self.exists(path)
        super().write_at(path, offset, data, create=create)
        if is_new:
            self._synced.pop(Path(path).stat().st_ino, None)

    def sync_file(self, path: AnyPath) -> None:
        super().sync_file(path)
        self._synced[Path(path).stat().st_ino] = Path(path).read_bytes()

    def sync_directory(self, path: AnyPath) -> None:
        super().sync_directory(path)
        self._names[Path(path)] = {entry.name: entry.stat().st_ino for entry in Path(path).iterdir()}

    def cut_power(self, directory: Path, medium: Path, lost: Lost) -> None:
        """Copy a partition's directory as it would be found after a power cut."""
        shutil.copytree(directory, medium)
        for path in [path for path in directory.rglob("*") if path.is_file()]:
            copy = medium / path.relative_to(directory)
            copy.write_bytes(self._kept(path, lost))
        if lost is Lost.NAMES:
            self._lose_names(directory, medium)

    def _kept(self, path: Path, lost: Lost) -> bytes:
        written, synced = path.read_bytes(), self._synced.get(path.stat().st_ino, b"")
        unsynced = len(written) - len(synced)
        if lost is Lost.HALF:
            return written[: len(synced) + unsynced // 2]
        if lost is Lost.ZEROED:
            return synced + bytes(unsynced)
        if lost is Lost.OF_DATA and path.name == "MANIFEST":
            return written
        return synced

    def _lose_names(self, directory: Path, medium: Path) -> None:
        shutil.rmtree(medium)
        self._make_named(directory, medium)

    def _make_named(self, directory: Path, copy: Path) -> None:
        """Make what the medium has of a directory: files and directories by the names that it was last synced with."""
        copy.mkdir()
        for name, inode in self._names.get(directory, {}).items():
            if (directory / name).is_dir():
                self._make_named(directory / name, copy / name)
            elif inode in self._synced:
                (copy / name).write_bytes(self._synced[inode])
