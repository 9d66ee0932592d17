"""The access log: a tab-separated text file with one line per request, written at the end of the exchange.

Columns:

    start_ms        arrival of the request's head, ms since the Unix epoch, rounded down, at most 20 ms late
    end_ms          just before the kernel received the last bytes of the answer; or, if the client left first, when it
                    left, at most 20 ms early if the kernel knows, or when the server noticed
    client          address:port of the client, one for each connection
    host            the requested host, by name or by address
    server          the address of that host, which differs from the connection's only through a proxy; "-" if unknown
    method          "-" if the request could not be parsed
    target          path and query as sent; "-" as above
    status          of the answer, even if no byte of it was sent; 499: the client left before it had all
    bytes           of the answer with its head that the kernel has received
    fault           "-", the value of a `Fault`, or "short" or "long" for a body that is shorter or longer than its
                    Content-Length; only "-" and "long" are complete
    retry_after_ms  the delay in Retry-After, counted from `end_ms`; 0 without it
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl_simweb.basics.exchange import Exchange
from bigcrawl_simweb.basics.line_file import LineFile, LineFormat, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class LogLine(NamedTuple):
    """One line of the log, see the module; `sent_bytes` is the column `bytes`."""

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
# The fields of LogLine. The log has some thousand lines per second, and this is the fastest way.
_LINE: Final = "%d\t%d\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%d\n"


class AccessLog:
    def __init__(self, path: Path) -> None:
        self._file = LineFile(path, _FORMAT)
        self._append = self._file.append

    def __repr__(self) -> str:
        return f"AccessLog({self._file!r})"

    def write(self, line: LogLine) -> None:
        """Append one line. The kernel has it when this returns."""
        self._append(_LINE % line)

    def close(self) -> None:
        self._file.close()


def read_log(path: Path) -> Iterator[LogLine]:
    return read_lines(path, _FORMAT, _parse_line)


def read_exchanges(path: Path) -> Iterator[Exchange]:
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


def _parse_line(fields: list[str]) -> LogLine:
    start, end, client, host, server, method, target, status, sent, fault, retry_after = fields
    return LogLine(
        int(start), int(end), client, host, server, method, target, int(status), int(sent), fault, int(retry_after)
    )
