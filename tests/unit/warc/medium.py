"""A disk whose machine can lose its power: it knows what was synced, and makes the medium from that."""

from __future__ import annotations

import os
import threading
from enum import Enum
from typing import TYPE_CHECKING

from bigcrawl.warc.files import OsFiles

if TYPE_CHECKING:
    from pathlib import Path


class Lost(Enum):
    """What of the bytes that were not synced is lost; a file whose name was not synced is lost whole."""

    ALL = "all of them"
    HALF = "the second half"
    ZEROED = "all of them, but the files are as long as they were"


class Medium(OsFiles):
    """The real disk; `cut_power` makes what a medium would hold. A sync may be made to wait, or to fail once."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._synced: dict[int, int] = {}  # bytes by inode, which a new name of a file keeps
        self._names: dict[str, int] = {}
        self.may_sync = threading.Event()
        self.may_sync.set()
        self.is_syncing = threading.Event()
        self.error: OSError | None = None
        self.syncs = 0

    def sync(self, fd: int) -> None:
        self.syncs += 1
        self.is_syncing.set()
        self.may_sync.wait()
        error, self.error = self.error, None
        if error:
            raise error
        before = os.fstat(fd)
        super().sync(fd)
        with self._lock:
            self._synced[before.st_ino] = max(before.st_size, self._synced.get(before.st_ino, 0))

    def sync_directory(self, path: Path) -> None:
        super().sync_directory(path)
        with self._lock:
            self._names = {entry.name: entry.stat().st_ino for entry in path.iterdir()}

    def rename(self, source: Path, target: Path) -> None:
        with self._lock:  # no power cut finds it half noted
            source.rename(target)
        self.sync_directory(target.parent)

    def cut_power(self, directory: Path, medium: Path, lost: Lost) -> None:
        """Copy a directory as it would be found after a power cut."""
        medium.mkdir()
        with self._lock:
            contents = {path.stat().st_ino: path.read_bytes() for path in directory.iterdir()}
            for name, inode in self._names.items():
                written, synced = contents.get(inode, b""), self._synced.get(inode, 0)
                unsynced = len(written) - synced
                kept = {Lost.ALL: synced, Lost.HALF: synced + unsynced // 2, Lost.ZEROED: synced}[lost]
                (medium / name).write_bytes(written[:kept] + bytes(unsynced if lost is Lost.ZEROED else 0))
