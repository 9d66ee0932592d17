"""Log files of one tab-separated record per line; the first line names format and columns.

One write(2) appends a line, so processes can share a file, and killing one loses no line. A full disk may leave half a
line at the end, which readers skip and the next writer removes.
"""

from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING, Final, TypeVar

from bigcrawl.exceptions import ConfigError, CorruptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

# Taken before any fork, so that all writers of a log share one clock.
_OFFSET_NS: Final = time.time_ns() - time.monotonic_ns()


def now_ms() -> int:
    """Return ms since the epoch, from a clock that does not jump when the machine's is set."""
    return (time.monotonic_ns() + _OFFSET_NS) // 1_000_000


_Fact = TypeVar("_Fact")

_TAIL_BYTES_MAX: Final = 65_536  # longer than any line: the server accepts no head above 16 KB


class LineFormat:
    def __init__(self, name: str, title: str, columns: Sequence[str]) -> None:
        self.name = name
        self.title = title
        self.columns = tuple(columns)
        self.header = "\t".join((title, *columns)).encode() + b"\n"

    def __repr__(self) -> str:
        return f"LineFormat({self.title!r})"


class LineFile:
    """Appends to a file, created if necessary; raises ConfigError if it cannot be opened or has another format."""

    def __init__(self, path: Path, kind: LineFormat) -> None:
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ConfigError(f"{kind.name} {path} cannot be opened: {error.strerror}") from error
        self._path = path
        try:
            self._write_header(kind)
        except BaseException:
            os.close(self._fd)
            raise

    def __repr__(self) -> str:
        return f"LineFile({str(self._path)!r})"

    def append(self, line: str) -> None:
        data = line.encode()
        if os.write(self._fd, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))

    def close(self) -> None:
        os.close(self._fd)

    def _write_header(self, kind: LineFormat) -> None:
        size = os.fstat(self._fd).st_size
        start = max(0, size - _TAIL_BYTES_MAX)
        tail = os.pread(self._fd, _TAIL_BYTES_MAX, start)
        end = start + tail.rfind(b"\n") + 1
        if end and os.pread(self._fd, len(kind.header), 0) != kind.header:
            raise ConfigError(f"{self._path} is not a file of '{kind.title}' to append to; move it away")
        os.ftruncate(self._fd, end)
        if not end:
            os.write(self._fd, kind.header)


def read_lines(path: Path, kind: LineFormat, parse: Callable[[list[str]], _Fact]) -> Iterator[_Fact]:
    """Yield the parsed lines of a file. `parse` raises ValueError for invalid fields.

    Raises:
        ConfigError: the file does not exist or has another format.
        CorruptionError: a line is invalid.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise ConfigError(f"{kind.name} {path} cannot be read: {error.strerror}") from error
    with file:
        offset = len(header := file.readline())
        if header != kind.header:
            raise ConfigError(
                f"{path} begins with {_first_column(header)}, not with '{kind.title}' and its columns; give the "
                f"{kind.name}"
            )
        for line in file:
            if line.endswith(b"\n"):
                try:
                    fact = parse(line[:-1].decode().split("\t"))
                except ValueError as error:
                    raise CorruptionError(path, offset, f"{len(kind.columns)} fields", line[:80]) from error
                yield fact
            offset += len(line)


def _first_column(header: bytes) -> str:
    return repr(header.partition(b"\t")[0].strip().decode("latin-1")[:40])
