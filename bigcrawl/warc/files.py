"""The system calls that change WARC files and their indexes, in one place so that tests can make them fail.

A power cut may lose bytes since the last `sync`, and names since the last `sync_directory`.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol, cast

from bigcrawl.private_files import FILE_MODE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WARC_SUFFIX: Final = ".warc.gz"
READ_SUFFIXES: Final = (WARC_SUFFIX, ".warc", ".warc.zst", ".arc.gz", ".arc")
OPEN_SUFFIX = ".open"
NEW_SUFFIX: Final = ".new"
BEAT_S: Final = 60.0
"""How often a living writer touches its file."""
QUIET_S: Final = 600.0
"""How long a file is unchanged before its writer counts as dead, if that may live on another machine."""
LOCKS_REMEDY: Final = "mount it with locks (flock), or take a directory that has them"
_BUFFER_BYTES: Final = 256 << 10
_NO_LOCKS: Final = frozenset((errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL))
_GONE: Final = frozenset((errno.ENOENT, errno.ESTALE))


class Files(Protocol):
    def create(self, path: Path) -> int: ...

    def open(self, path: Path) -> int: ...

    def write(self, fd: int, data: memoryview) -> int: ...

    def truncate(self, fd: int, size: int) -> None: ...

    def sync(self, fd: int) -> None: ...

    def sync_directory(self, path: Path) -> None: ...

    def is_at(self, fd: int, path: Path) -> bool: ...

    def touch(self, fd: int) -> None:
        """Set a file's modification time to the file system's current time."""

    def close(self, fd: int) -> None: ...

    def rename(self, source: Path, target: Path) -> None: ...

    def remove(self, path: Path) -> None: ...


class OsFiles:
    def __init__(self, mode: int = FILE_MODE) -> None:
        self._mode = mode

    def create(self, path: Path) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, self._mode)

    def open(self, path: Path) -> int:
        return os.open(path, os.O_RDWR)

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

    def is_at(self, fd: int, path: Path) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), path.stat())
        except OSError as error:
            if error.errno in _GONE:
                return False
            raise

    def touch(self, fd: int) -> None:
        os.utime(fd)

    def close(self, fd: int) -> None:
        os.close(fd)

    def rename(self, source: Path, target: Path) -> None:
        self._rename(source, target)
        self.sync_directory(target.parent)

    def _rename(self, source: Path, target: Path) -> None:
        source.rename(target)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)


def lock_named(fd: int, path: Path) -> bool:
    """Lock a file without waiting; False if it is locked already, or `path` now names another file."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        problem = (
            f"its file system has no locks ({error.strerror}), so another process might be using it: {LOCKS_REMEDY}"
        )
        raise OSError(error.errno, problem, str(path)) from error
    return OsFiles().is_at(fd, path)


def lacks_locks(directory: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _NO_LOCKS
    return False


@contextmanager
def written_through(files: Files, path: Path) -> Iterator[BinaryIO]:
    fd = files.create(path)
    try:
        with io.BufferedWriter(_RawFile(files, fd), _BUFFER_BYTES) as file:
            yield cast("BinaryIO", file)
        files.sync(fd)
    finally:
        files.close(fd)


@contextmanager
def written_whole(path: Path, files: Files) -> Iterator[BinaryIO]:
    """Yield a file that replaces `path` once it is complete and durable; after an exception `path` is unchanged."""
    new = path.with_name(path.name + NEW_SUFFIX)
    files.remove(new)  # left by a killed process, perhaps with another mode
    try:
        with written_through(files, new) as file:
            yield file
        files.rename(new, path)
    except BaseException:
        with suppress(OSError):
            files.remove(new)
        raise


class _RawFile(io.RawIOBase):
    def __init__(self, files: Files, fd: int) -> None:
        self._files = files
        self._fd = fd

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return os.lseek(self._fd, 0, os.SEEK_CUR)

    def write(self, data: Any) -> int:
        return self._files.write(self._fd, memoryview(data))


@contextmanager
def locked_file(path: Path) -> Iterator[bool]:
    """Lock a sealed file; yield False if it is locked already or gone."""
    try:
        fd = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        yield False
        return
    except OSError:
        fd = os.open(path, os.O_RDONLY)  # not writable for us
    try:
        yield lock_named(fd, path)
    finally:
        os.close(fd)


@contextmanager
def locked_directory(directory: Path) -> Iterator[bool]:
    """Lock a directory without waiting; yield False if it is locked already or gone."""
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        yield False
        return
    try:
        yield lock_named(fd, directory)
    finally:
        os.close(fd)


def companion_path(path: Path, suffix: str) -> Path:
    """Return the name of a WARC file's companion: X.cdxj of X.warc.gz, X.arc.cdxj of X.arc."""
    return path.with_name(path.name.removesuffix(WARC_SUFFIX) + suffix)
