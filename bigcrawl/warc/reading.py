"""Finds the page of a URL in WARC files without an index, by reading and unpacking files from the start."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.warc.files import OPEN_SUFFIX
from bigcrawl.warc.recovery import member_ends

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_KEPT = 64 * 1024  # bytes of a record: its own head, and that of the HTTP message
_LINE = re.compile(rb"^(?P<name>[A-Za-z-]+):[ \t]*(?P<value>[^\r\n]*)", re.MULTILINE)
_PAGES = (b"response", b"revisit")
_MARGIN_S = 2.0  # file times come from the kernel's clock, outcomes from the node's


class StoredPage(NamedTuple):
    """Where a response is stored.

    Attributes:
        path: the file.
        offset: of its gzip member.
        size: bytes of the member.
        date: when it was fetched, as in the record.
        location: the Location header; empty if there is none.
        referrer: the request's Referer; empty if there is none, or the request is not in the file.
    """

    path: Path
    offset: int
    size: int
    date: str
    location: str
    referrer: str


def find_page(directory: Path, is_wanted: Callable[[str], bool], ended_s: float) -> StoredPage | None:
    """Return the last stored response of a URL whose fetch ended at `ended_s` (Unix time), or None.

    Cost: reads all files written to since then, some 3 s a gibibyte; 64 KiB of memory.
    """
    paths = [path for end in (".warc.gz", f".warc.gz{OPEN_SUFFIX}") for path in directory.glob(f"*{end}")]
    recent = [path for path in paths if path.stat().st_mtime >= ended_s - _MARGIN_S]
    found = [page for path in recent if (page := _last_in(path, is_wanted)) is not None]
    return max(found, key=lambda page: page.date, default=None)


def _last_in(path: Path, is_wanted: Callable[[str], bool]) -> StoredPage | None:
    found, found_id = None, b""
    for offset, size, data in _records(path):
        head, _, block = data.partition(b"\r\n\r\n")
        fields = _fields(head)
        http = _fields(block.partition(b"\r\n\r\n")[0])
        if found is not None and fields.get(b"warc-concurrent-to") == found_id:
            found = found._replace(referrer=http.get(b"referer", b"").decode("latin-1"))
        is_page = fields.get(b"warc-type") in _PAGES
        if is_page and is_wanted(fields.get(b"warc-target-uri", b"").decode("latin-1")):
            found_id = fields.get(b"warc-record-id", b"")
            date, location = (value.decode("latin-1") for value in (fields[b"warc-date"], http.get(b"location", b"")))
            found = StoredPage(path, offset, size, date, location, "")
    return found


def _records(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield offset, size and beginning of each whole record; stops at an incomplete or damaged one."""
    begun: list[_Beginning] = []

    def sink() -> _Beginning:
        begun[:] = [_Beginning()]
        return begun[0]

    with path.open("rb") as file:
        offset = 0
        try:
            for end in member_ends(file, sink):
                yield offset, end - offset, begun[0].data
                offset = end
        except (EOFError, ValueError):
            return


def _fields(head: bytes) -> dict[bytes, bytes]:
    return {field["name"].lower(): field["value"] for field in _LINE.finditer(head)}


class _Beginning:
    """Keeps the first bytes that a member unpacks to."""

    def __init__(self) -> None:
        self.data = b""

    def feed(self, piece: bytes) -> None:
        if len(self.data) < _KEPT:
            self.data += piece[: _KEPT - len(self.data)]

    def end(self) -> None:
        """Do nothing; the beginning is complete."""
