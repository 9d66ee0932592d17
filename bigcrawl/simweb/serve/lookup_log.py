"""The log of the resolver: a text file, one line a look-up, fields separated by tabs.

The first line names format and columns; then, per query:

    time_ms     when it had arrived, ms since the Unix epoch, rounded down
    client      address:port
    transport   udp or tcp
    name        lower-case, without the final dot; "-" if the query could not be parsed
    type        the requested record type, such as A; "-" as above
    outcome     a `LookupOutcome`'s value
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.simweb.basics.line_file import LineFile, LineFormat, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class LookupOutcome(Enum):
    """How a look-up ended."""

    FOUND = "found"  # with an address
    NO_DATA = "nodata"  # the name exists, but has no such record
    NO_NAME = "nxdomain"
    SERVFAIL = "servfail"
    SILENT = "silent"  # nothing was sent
    REFUSED = "refused"  # the query could not be parsed, or is not supported


class Lookup(NamedTuple):
    """One line of the log. The fields are those of the module's table; `record_type` is its `type`."""

    time_ms: int
    client: str
    transport: str
    name: str
    record_type: str
    outcome: LookupOutcome


_FORMAT: Final = LineFormat(
    "log of look-ups", "# simweb lookups 1", ("time_ms", "client", "transport", "name", "type", "outcome")
)


class LookupLog:
    """Appends to a log file, creating it if necessary."""

    def __init__(self, path: Path) -> None:
        self._file = LineFile(path, _FORMAT)

    def __repr__(self) -> str:
        return f"LookupLog({self._file!r})"

    def write(self, lookup: Lookup) -> None:
        """Append one line. It is with the kernel when this returns."""
        time_ms, client, transport, name, record_type, outcome = lookup
        self._file.append(f"{time_ms}\t{client}\t{transport}\t{name}\t{record_type}\t{outcome.value}\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_lookups(path: Path) -> Iterator[Lookup]:
    """Yield the look-ups of a log, in order of time.

    Raises:
        ConfigError: the file does not exist or has another format.
        CorruptionError: a line is invalid.
    """
    return read_lines(path, _FORMAT, _parsed)


def _parsed(fields: list[str]) -> Lookup:
    time_ms, client, transport, name, record_type, outcome = fields
    return Lookup(int(time_ms), client, transport, name, record_type, LookupOutcome(outcome))
