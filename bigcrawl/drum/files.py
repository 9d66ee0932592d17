"""`Files`, through which all durable state reaches the file system; private, unbuffered. Tests replace it."""

# Making a Path costs as much as the most frequent calls.
# ruff: noqa: PTH102, PTH105, PTH106, PTH108, PTH116, PTH208

from __future__ import annotations

import contextlib
import mmap
import os
from typing import TYPE_CHECKING, Protocol

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.private_files import DIRECTORY_MODE, FILE_MODE, FULL, make_private_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    AnyPath = str | os.PathLike[str]


class Files(Protocol):
    def write_new(self, path: AnyPath, chunks: Iterable[bytes]) -> None:
        """Write a whole file, replacing any existing one, without syncing it."""

    def write_at(self, path: AnyPath, offset: int, data: bytes, *, create: bool = True) -> None:
        """Write bytes at an offset, without syncing; earlier bytes stay."""

    def truncate(self, path: AnyPath, size: int) -> None: ...

    def read(self, path: AnyPath, offset: int = 0, size: int | None = None) -> bytes: ...

    def map(self, path: AnyPath) -> mmap.mmap:
        """Map a file that is not empty, read-only."""

    def size(self, path: AnyPath) -> int: ...

    def exists(self, path: AnyPath) -> bool: ...

    def replace(self, source: AnyPath, target: AnyPath) -> None: ...

    def link(self, source: AnyPath, target: AnyPath) -> None: ...

    def unlink(self, path: AnyPath) -> None: ...

    def make_directory(self, path: AnyPath) -> None: ...

    def make_new_directory(self, path: AnyPath) -> None: ...

    def list_directory(self, path: AnyPath) -> list[str]:
        """Return the names in a directory; none if it is missing."""

    def remove_directory(self, path: AnyPath) -> None: ...

    def sync_file(self, path: AnyPath) -> None: ...

    def sync_directory(self, path: AnyPath) -> None: ...


def replace_surely(files: Files, source: AnyPath, target: AnyPath, data: bytes) -> None:
    """Rename a file that holds `data`; ignore a network file system's error if the rename took place all the same."""
    try:
        files.replace(source, target)
    except OSError:
        if not files.exists(target) or files.read(target) != data:
            raise


class DiskFiles:
    def write_new(self, path: AnyPath, chunks: Iterable[bytes]) -> None:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
        try:
            for chunk in chunks:
                _write_all(handle, chunk)
        finally:
            os.close(handle)

    def write_at(self, path: AnyPath, offset: int, data: bytes, *, create: bool = True) -> None:
        handle = os.open(path, os.O_WRONLY | (os.O_CREAT if create else 0) | os.O_CLOEXEC, FILE_MODE)
        try:
            written = os.pwrite(handle, data, offset)
            while written < len(data):
                written += os.pwrite(handle, data[written:], offset + written)
        finally:
            os.close(handle)

    def truncate(self, path: AnyPath, size: int) -> None:
        os.truncate(path, size)

    def read(self, path: AnyPath, offset: int = 0, size: int | None = None) -> bytes:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _read_all(handle, offset, os.fstat(handle).st_size - offset if size is None else size)
        finally:
            os.close(handle)

    def map(self, path: AnyPath) -> mmap.mmap:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
        finally:
            os.close(handle)

    def size(self, path: AnyPath) -> int:
        return os.stat(path).st_size

    def exists(self, path: AnyPath) -> bool:
        return os.path.lexists(path)

    def replace(self, source: AnyPath, target: AnyPath) -> None:
        os.replace(source, target)

    def link(self, source: AnyPath, target: AnyPath) -> None:
        os.link(source, target)

    def unlink(self, path: AnyPath) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def make_directory(self, path: AnyPath) -> None:
        make_private_directory(path)

    def make_new_directory(self, path: AnyPath) -> None:
        os.mkdir(path, DIRECTORY_MODE)

    def list_directory(self, path: AnyPath) -> list[str]:
        try:
            return os.listdir(path)
        except FileNotFoundError:
            return []

    def remove_directory(self, path: AnyPath) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(path)

    def sync_file(self, path: AnyPath) -> None:
        _sync_path(path, os.O_RDONLY)

    def sync_directory(self, path: AnyPath) -> None:
        _sync_path(path, os.O_RDONLY | os.O_DIRECTORY)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _read_all(handle: int, offset: int, size: int) -> bytes:
    # One read returns at most 2 GiB, and less if a signal arrives.
    data = os.pread(handle, size, offset) if size > 0 else b""
    while 0 < len(data) < size:
        more = os.pread(handle, size - len(data), offset + len(data))
        if not more:
            break
        data += more
    return data


def _sync_path(path: AnyPath, flags: int) -> None:
    handle = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def store_errors(directory: AnyPath) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = "is it mounted, and there?" if isinstance(error, FileNotFoundError) else "try again"
        remedy = "make room there" if error.errno in FULL else remedy
        raise TransientStoreError(f"{directory}: {error}; nothing was committed, {remedy}") from error
