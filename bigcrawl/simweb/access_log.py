"""The access log of the simulated web: a text file, one line a request, fields separated by tabs.

The first line names format and columns; then, per request:

    start_ms    when the head of the request had arrived, ms since the Unix epoch, rounded down
    end_ms      just before the last bytes of the answer were handed to the kernel, likewise
    client      address:port of the client, one for each connection
    host        the local address of the connection: which host was asked, whatever its Host header said
    method      "-" when the request could not be understood
    target      path and query as they were sent; "-" as above
    status      the answer's; 499: the client went away before it had all of it
    bytes       of the answer with its head; 0 with a 499

A line is written by one write(2) in append mode when the exchange has ended, so killing the server loses no
exchange that had. A full disk may leave half a line at the end: the reader passes over it, and the next
server cuts it off.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError, CorruptionError
from bigcrawl.simweb.checker import Exchange

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_COLUMNS: Final = ("start_ms", "end_ms", "client", "host", "method", "target", "status", "bytes")
_HEADER: Final = "\t".join(("# simweb log 1", *_COLUMNS)) + "\n"
_TAIL_BYTES_MAX: Final = 65_536  # longer than any line: the server takes no head above 16 KB


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of the log; the fields are those of the module's table."""

    start_ms: int
    end_ms: int
    client: str
    host: str
    method: str
    target: str
    status: int
    sent_bytes: int


class AccessLog:
    """Appends to a log file; makes it when there is none."""

    def __init__(self, path: Path) -> None:
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ConfigError(f"access log {path} cannot be opened: {error.strerror}") from error
        self._path = path
        self._cut_torn_tail()
        if os.fstat(self._fd).st_size == 0:
            os.write(self._fd, _HEADER.encode())

    def __repr__(self) -> str:
        return f"AccessLog({str(self._path)!r})"

    def write(self, line: LogLine) -> None:
        """Append one line; it is in the kernel's hands when this returns."""
        fields = (line.start_ms, line.end_ms, line.client, line.host, line.method, line.target, line.status)
        os.write(self._fd, ("\t".join(map(str, fields)) + f"\t{line.sent_bytes}\n").encode())

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)

    def _cut_torn_tail(self) -> None:
        size = os.fstat(self._fd).st_size
        start = max(0, size - _TAIL_BYTES_MAX)
        tail = os.pread(self._fd, _TAIL_BYTES_MAX, start)
        os.ftruncate(self._fd, start + tail.rfind(b"\n") + 1)


def read_log(path: Path) -> Iterator[LogLine]:
    """The lines of a log, in the order in which the exchanges ended.

    Raises:
        ConfigError: there is no such file, or it is no log of this format.
        CorruptionError: a line is not one.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise ConfigError(f"access log {path} cannot be read: {error.strerror}") from error
    with file:
        offset = len(header := file.readline())
        if header != _HEADER.encode():
            raise ConfigError(f"{path} is not a simweb log of format 1; give the file that serve --log wrote")
        for line in file:
            if line.endswith(b"\n"):
                yield _parsed(line, path, offset)
            offset += len(line)


def read_exchanges(path: Path) -> Iterator[Exchange]:
    """The same, as the checker takes them."""
    for line in read_log(path):
        yield Exchange(line.start_ms, line.end_ms, line.host, line.target, line.status)


def _parsed(line: bytes, path: Path, offset: int) -> LogLine:
    try:
        start, end, client, host, method, target, status, sent = line[:-1].decode().split("\t")
        return LogLine(int(start), int(end), client, host, method, target, int(status), int(sent))
    except ValueError as error:
        raise CorruptionError(path, offset, f"{len(_COLUMNS)} fields", line[:80]) from error
