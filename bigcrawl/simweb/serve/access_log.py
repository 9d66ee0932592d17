"""The access log of the simulated web: a text file, one line a request, fields separated by tabs.

The first line names format and columns; then, per request:

    start_ms        when the head of the request had arrived, ms since the Unix epoch, rounded down; if the server
                    read it late, according to the kernel, up to 20 ms after that
    end_ms          just before the last bytes of the answer were handed to the kernel, likewise; with status 499 and
                    the faults silent, stalled and endless, when the client left according to the kernel, up to 20 ms
                    before that; when the server noticed, if the kernel does not know
    client          address:port of the client, one for each connection
    host            the requested host, by name or by address
    server          the address of that host, which is the connection's own except through a proxy; "-" if a proxy is
                    asked for an unknown name
    method          "-" if the request could not be parsed
    target          path and query as sent; "-" as above
    status          the answer's, even if no byte of it was sent; 499: the client left before it had all
    bytes           of the answer with its head, as far as the kernel took them
    fault           the fault of the answer: "-", the value of a `Fault`, "short" or "long" if its body is shorter or
                    longer than its Content-Length. Only with "-" and "long" can the client have all of it.
    retry_after_ms  the delay in the answer's Retry-After, counted from `end_ms`; 0: it has none

A line is written when the exchange has ended, by one write(2) in append mode, so killing the server loses no ended
exchange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.simweb.basics.exchange import Exchange
from bigcrawl.simweb.basics.line_file import LineFile, LineFormat, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class LogLine(NamedTuple):
    """One line of the log. The fields are those of the module's table; `sent_bytes` is its `bytes`."""

    start_ms: int
    end_ms: int
    client: str
    host: str
    server: str
    method: str
    target: str
    status: int
    sent_bytes: int
    fault: str = "-"
    retry_after_ms: int = 0


_FORMAT: Final = LineFormat(
    "access log",
    "# simweb log 2",
    ["bytes" if name == "sent_bytes" else name for name in LogLine._fields],
)
# The fields of LogLine. Some thousand lines are made a second, and this is the fastest way.
_LINE: Final = "%d\t%d\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%d\n"


class AccessLog:
    """Appends to a log file, creating it if necessary."""

    def __init__(self, path: Path) -> None:
        self._file = LineFile(path, _FORMAT)
        self._append = self._file.append

    def __repr__(self) -> str:
        return f"AccessLog({self._file!r})"

    def write(self, line: LogLine) -> None:
        """Append one line. It is with the kernel when this returns."""
        self._append(_LINE % line)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_log(path: Path) -> Iterator[LogLine]:
    """Yield the lines of a log, in order of the exchanges' ends.

    Raises:
        ConfigError: the file does not exist or has another format.
        CorruptionError: a line is invalid.
    """
    return read_lines(path, _FORMAT, _parsed)


def read_exchanges(path: Path) -> Iterator[Exchange]:
    """Yield the lines of a log as the checker takes them."""
    for line in read_log(path):
        yield Exchange(
            line.start_ms,
            line.end_ms,
            line.host,
            line.target,
            line.status,
            "" if line.server == line.host else line.server,
            line.fault,
            line.retry_after_ms,
        )


def _parsed(fields: list[str]) -> LogLine:
    start, end, client, host, server, method, target, status, sent, fault, retry_after = fields
    return LogLine(
        int(start), int(end), client, host, server, method, target, int(status), int(sent), fault, int(retry_after)
    )
