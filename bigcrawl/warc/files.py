"""The system calls used on WARC files; a single seam, so that tests can make the disk fail."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from bigcrawl.private_files import FILE_MODE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WARC_SUFFIX: Final = ".warc.gz"
OPEN_SUFFIX = ".open"


class Files(Protocol):
    """The disk operations that a writer needs. Every call may raise OSError."""

    def create(self, path: Path) -> int:
        """Create a new file for appending and return its descriptor; FileExistsError if there is one."""

    def write(self, fd: int, data: memoryview) -> int:
        """Append part of `data` and return how many bytes."""

    def truncate(self, fd: int, size: int) -> None: ...

    def sync(self, fd: int) -> None: ...

    def sync_directory(self, path: Path) -> None:
        """Force a directory's entries to the medium."""

    def close(self, fd: int) -> None: ...

    def rename(self, source: Path, target: Path) -> None:
        """Rename a file durably."""

    def remove(self, path: Path) -> None: ...


class OsFiles:
    """The operating system's implementation.

    Args:
        mode: of new files, minus the process's umask.
    """

    def __init__(self, mode: int = FILE_MODE) -> None:
        self._mode = mode

    def create(self, path: Path) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, self._mode)

    def write(self, fd: int, data: memoryview) -> int:
        return os.write(fd, data)

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        os.fsync(fd)

    def sync_directory(self, path: Path) -> None:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def close(self, fd: int) -> None:
        os.close(fd)

    def rename(self, source: Path, target: Path) -> None:
        source.rename(target)
        self.sync_directory(target.parent)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)


def lock_named(fd: int, path: Path) -> bool:
    """Lock the file without waiting. False if it is locked already, or if `path` refers to another file by now."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Lock a sealed file, as who indexes, uploads or rewrites it does; False if that is done already, or it is gone.

    Raises:
        OSError: the file cannot be opened.
    """
    try:
        fd = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        yield False
        return
    except OSError:
        fd = os.open(path, os.O_RDONLY)  # somebody else's, or on a medium that is only read
    try:
        yield lock_named(fd, path)
    finally:
        os.close(fd)


def beside(path: Path, suffix: str) -> Path:
    """Return the name of a file that belongs to a WARC file: X.warc.gz and .cdxj give X.cdxj."""
    return path.with_name(path.name.removesuffix(WARC_SUFFIX) + suffix)
