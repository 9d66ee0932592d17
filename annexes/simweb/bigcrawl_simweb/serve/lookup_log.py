"""The log of the resolver: a tab-separated text file with one line per look-up.

Columns:

    time_ms     arrival, ms since the Unix epoch, rounded down
    client      address:port
    transport   udp or tcp
    name        lower-case, without the final dot; "-" if the query could not be parsed
    type        the requested record type, such as A; "-" as above
    outcome     a `LookupOutcome`'s value
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl_simweb.basics.line_file import LineFile, LineFormat, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class LookupOutcome(Enum):
    FOUND = "found"  # with an address
    NO_DATA = "nodata"  # the name exists, but has no such record
    NO_NAME = "nxdomain"
    SERVFAIL = "servfail"
    SILENT = "silent"  # no reply was sent
    REFUSED = "refused"  # the query could not be parsed, or is not supported


class Lookup(NamedTuple):
    """One line of the log, see the module; `record_type` is the column `type`."""

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
    def __init__(self, path: Path) -> None:
        self._file = LineFile(path, _FORMAT)

    def __repr__(self) -> str:
        return f"LookupLog({self._file!r})"

    def write(self, lookup: Lookup) -> None:
        time_ms, client, transport, name, record_type, outcome = lookup
        self._file.append(f"{time_ms}\t{client}\t{transport}\t{name}\t{record_type}\t{outcome.value}\n")

    def close(self) -> None:
        self._file.close()


def read_lookups(path: Path) -> Iterator[Lookup]:
    return read_lines(path, _FORMAT, _parse_line)


def _parse_line(fields: list[str]) -> Lookup:
    time_ms, client, transport, name, record_type, outcome = fields
    return Lookup(int(time_ms), client, transport, name, record_type, LookupOutcome(outcome))
