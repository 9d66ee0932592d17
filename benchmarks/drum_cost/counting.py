"""The real file system, with every byte that is read and written counted, by kind of file."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bigcrawl.drum.files import DiskFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from bigcrawl.drum.files import AnyPath

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)


class Moved(NamedTuple):
    """Bytes since counting began."""

    read: int
    written: int

    @property
    def both(self) -> int:
        return self.read + self.written


def kind_by_name(path: AnyPath) -> str:
    """Return the name up to its number: `run-17` is a `run`."""
    return Path(path).name.partition("-")[0].partition(".")[0]


class CountingFiles(DiskFiles):
    """Counts calls' bytes: written once for each byte handed over, read once for each byte handed out.

    Nothing is synced, which would move no bytes more and take most of the time.

    A mapped file counts the pages that were touched while it was mapped, found by putting the file out of the page
    cache first and asking for what is there at the end. Where the cache cannot be emptied (tmpfs) the whole file
    counts, never less than was read.
    """

    def __init__(self, kind_of: Callable[[AnyPath], str] = kind_by_name) -> None:
        self._kind_of = kind_of
        self._read: Counter[str] = Counter()
        self._written: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"<CountingFiles read={self.total.read} written={self.total.written}>"

    @property
    def total(self) -> Moved:
        """What all files moved."""
        return Moved(self._read.total(), self._written.total())

    def by_kind(self) -> dict[str, Moved]:
        """What each kind of file moved."""
        return {kind: Moved(self._read[kind], self._written[kind]) for kind in sorted({*self._read, *self._written})}

    def write_new(self, path: AnyPath, chunks: Iterable[bytes]) -> None:
        super().write_new(path, self._counted(path, chunks))

    def write_at(self, path: AnyPath, offset: int, data: bytes, *, create: bool = True) -> None:
        super().write_at(path, offset, data, create=create)
        self._written[self._kind_of(path)] += memoryview(data).nbytes

    def read(self, path: AnyPath, offset: int = 0, size: int | None = None) -> bytes:
        data = super().read(path, offset, size)
        self._read[self._kind_of(path)] += len(data)
        return data

    def map(self, path: AnyPath) -> mmap.mmap:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            mapped = _CountedMap(handle, 0, access=mmap.ACCESS_READ)
        finally:
            os.close(handle)
        mapped.watch(lambda size: self._add_read(path, size))
        return mapped

    def sync_file(self, path: AnyPath) -> None:
        """Return at once."""

    def sync_directory(self, path: AnyPath) -> None:
        """Return at once."""

    def _counted(self, path: AnyPath, chunks: Iterable[bytes]) -> Iterator[bytes]:
        kind = self._kind_of(path)
        for chunk in chunks:
            self._written[kind] += memoryview(chunk).nbytes
            yield chunk

    def _add_read(self, path: AnyPath, size: int) -> None:
        self._read[self._kind_of(path)] += size


class _CountedMap(mmap.mmap):
    """A mapped file that says, when the last view of it has gone, how many bytes of it were brought in."""

    _tell: Callable[[int], None] | None = None
    _address = 0

    def watch(self, tell: Callable[[int], None]) -> None:
        # Without this a fault brings its neighbours too, which nobody asked for.
        self.madvise(mmap.MADV_RANDOM)
        self._address = np.frombuffer(self, dtype=np.uint8).ctypes.data
        self._tell = tell

    def __del__(self) -> None:
        if self._tell:
            self._tell(self._touched_bytes())

    def _touched_bytes(self) -> int:
        size = len(self)
        pages = -(-size // mmap.PAGESIZE)
        present = ctypes.create_string_buffer(pages)
        if _libc.mincore(self._address, size, present):
            raise OSError(ctypes.get_errno(), "mincore")
        touched = int((np.frombuffer(present.raw, dtype=np.uint8) & 1).sum())
        return min(touched * mmap.PAGESIZE, size)
