"""A disk whose machine can lose its power: it knows what was synced, and says what a medium might hold.

What is certain is the least that file systems promise: the bytes of a file up to its last sync, and the names of the
directory as of its last sync. Of what came later, anything may be there: of bytes, any sectors; of names, those of any
moment since. A sync of a file says nothing about its name.
"""

from __future__ import annotations

import random
import threading
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.warc.files import OsFiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECTOR: Final = 512


class Lost(Enum):
    """What of bytes and names that were not synced is lost."""

    ALL = "all of both"
    HALF = "the second half of each file's bytes"
    ZEROED = "all bytes, but the files are as long as they were"
    BYTES = "all bytes, and the files end where they were synced"
    NAMES = "all names"
    SECTORS = "any sectors of the bytes, and the names behind any moment"
    NOTHING = "nothing: the process is killed"


class Survivors:
    """What was written to a directory, and what of it was synced.

    Args:
        found: contents of the files that are there, by name; all of them are on the medium.
    """

    def __init__(self, found: dict[str, bytes] | None = None) -> None:
        self._written = dict(enumerate(map(bytearray, (found or {}).values())))
        self._synced = {inode: bytes(data) for inode, data in self._written.items()}
        self.names = {name: inode for inode, name in enumerate(found or {})}
        self._since = [dict(self.names)]  # the names on the medium, and after each change since

    def create(self, name: str) -> int:
        inode = len(self._written)
        self._written[inode], self._synced[inode] = bytearray(), b""
        self.names[name] = inode
        self._since.append(dict(self.names))
        return inode

    def write(self, inode: int, data: bytes) -> None:
        self._written[inode] += data

    def truncate(self, inode: int, size: int) -> None:
        del self._written[inode][size:]

    def size(self, inode: int) -> int:
        return len(self._written[inode])

    def sync(self, inode: int, size: int) -> None:
        self._synced[inode] = bytes(self._written[inode][:size])

    def sync_names(self) -> None:
        self._since = [dict(self.names)]

    def rename(self, source: str, target: str) -> None:
        self.names[target] = self.names.pop(source)
        self._since.append(dict(self.names))

    def remove(self, name: str) -> None:
        if self.names.pop(name, None) is not None:
            self._since.append(dict(self.names))

    def after(self, lost: Lost, dice: random.Random) -> dict[str, bytes]:
        """What a medium holds, by name."""
        if lost is Lost.SECTORS:
            names = dice.choice(self._since)
        else:
            names = self._since[0] if lost in (Lost.ALL, Lost.NAMES) else self.names
        return {name: self._kept(inode, lost, dice) for name, inode in names.items()}

    def _kept(self, inode: int, lost: Lost, dice: random.Random) -> bytes:
        written, synced = bytes(self._written[inode]), self._synced[inode]
        unsynced = len(written) - len(synced)
        if lost in (Lost.NAMES, Lost.NOTHING):
            return written
        if lost is Lost.HALF:
            return written[: len(synced) + unsynced // 2]
        if lost is Lost.ZEROED:
            return synced + bytes(max(0, unsynced))
        if lost is not Lost.SECTORS:
            return synced
        longest = max(len(written), len(synced))
        either = written.ljust(longest, b"\0"), synced.ljust(longest, b"\0")
        kept = b"".join(dice.choice(either)[at : at + SECTOR] for at in range(0, longest, SECTOR))
        return kept[: dice.randint(min(len(written), len(synced)), longest)]


class Medium(OsFiles):
    """The real files of one directory, never really synced, and a journal of what happens to them.

    A sync may be made to wait, or to fail once; a write may find no room.

    Attributes:
        found: what was in the directory before.
        journal: changes and syncs in order, each a function to apply to `Survivors`.
        room: bytes that may still be written; None: any number.
        error: what the next sync of a file raises.
    """

    def __init__(self, found: dict[str, bytes] | None = None) -> None:
        super().__init__()
        self._lock = threading.RLock()
        self._inodes: dict[int, int] = {}  # by descriptor
        self.journal: list[Callable[[Survivors], Any]] = []
        self.found = found
        self.now = Survivors(found)
        self.may_sync = threading.Event()
        self.may_sync.set()
        self.is_syncing = threading.Event()
        self.error: OSError | None = None
        self.room: int | None = None
        self.syncs = 0

    def create(self, path: Path) -> int:
        with self._lock:
            fd = super().create(path)
            self._inodes[fd] = self._happen(lambda files: files.create(path.name))
            return fd

    def open(self, path: Path) -> int:
        with self._lock:
            fd = super().open(path)
            self._inodes[fd] = self.now.names[path.name]
            return fd

    def write(self, fd: int, data: memoryview) -> int:
        with self._lock:
            if self.room is not None:
                if not self.room:
                    raise OSError(28, "No space left on device")
                data = data[: self.room]
                self.room -= len(data)
            count, inode = super().write(fd, data), self._inodes[fd]
            kept = bytes(data[:count])
            self._happen(lambda files: files.write(inode, kept))
            return count

    def truncate(self, fd: int, size: int) -> None:
        with self._lock:
            super().truncate(fd, size)
            inode = self._inodes[fd]
            self._happen(lambda files: files.truncate(inode, size))

    def sync(self, fd: int) -> None:
        self.syncs += 1
        inode = self._inodes[fd]
        size = self.now.size(inode)
        self.is_syncing.set()
        self.may_sync.wait()
        error, self.error = self.error, None
        if error:
            raise error
        with self._lock:
            self._happen(lambda files: files.sync(inode, size))

    def sync_directory(self, path: Path) -> None:
        with self._lock:
            self._happen(lambda files: files.sync_names())

    def close(self, fd: int) -> None:
        with self._lock:
            super().close(fd)
            del self._inodes[fd]

    def _rename(self, source: Path, target: Path) -> None:
        with self._lock:
            super()._rename(source, target)
            self._happen(lambda files: files.rename(source.name, target.name))

    def remove(self, path: Path) -> None:
        with self._lock:
            super().remove(path)
            self._happen(lambda files: files.remove(path.name))

    def cut_power(self, directory: Path, lost: Lost, dice: random.Random | None = None) -> None:
        """Make a directory of what would be found after a power cut now."""
        with self._lock:
            lay_out(directory, self.now.after(lost, dice or random.Random(0)))

    def _happen(self, change: Callable[[Survivors], Any]) -> Any:
        self.journal.append(change)
        return change(self.now)


def lay_out(directory: Path, contents: dict[str, bytes]) -> None:
    """Make a directory with these files."""
    directory.mkdir()
    for name, data in contents.items():
        (directory / name).write_bytes(data)


def contents_of(directory: Path) -> dict[str, bytes]:
    """The files of a directory."""
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}
