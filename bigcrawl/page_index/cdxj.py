"""Lines of a CDXJ file, sorted by bytes, in the form of pywb and OpenWayback.

    com,example)/page 20261125220512 {"url": "https://example.com/page", "mime": "text/html", "status": "200",
    "digest": "X2...", "length": "5120", "offset": "903", "filename": "crawl-20261125220500123-00000-node.warc.gz"}

(on one line): search key, time to the second, and JSON. Length and offset are those of the gzip member; the digest is
the payload's SHA-1 in base 32. A ``revisit`` has the media type ``warc/revisit``.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from bigcrawl.json_text import read_json
from bigcrawl.page_index.search_key import search_key
from bigcrawl.page_index.sorted_lines import SortedLines
from bigcrawl.url.header import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl.page_index.page_records import PageRecord

SUFFIX: Final = ".cdxj"
REVISIT: Final = "warc/revisit"
_NO_DIGIT = re.compile(rb"[^0-9]+")
_STAMP_DIGITS: Final = 14


class Capture(NamedTuple):
    """A parsed line; offset and size are those of the gzip member.

    `stamp` is YYYYMMDDhhmmss in UTC; `status` is 0 for a ``revisit``.
    """

    key: bytes
    stamp: str
    url: str
    filename: str
    offset: int
    size: int
    mime: str
    status: int
    digest: str


class CdxjIndex:
    def __init__(self, directory: Path, filename: str) -> None:
        self._lines = SortedLines(directory)
        self._filename = filename

    def add(self, page: PageRecord) -> None:
        self._lines.add(cdxj_line(page, self._filename))

    def lines(self) -> Iterator[bytes]:
        """Return all lines, sorted. Call this once, after the last `add`."""
        return iter(self._lines)

    def write(self, file: BinaryIO) -> None:
        file.writelines(self.lines())

    def close(self) -> None:
        self._lines.close()


def cdxj_line(page: PageRecord, filename: str) -> bytes:
    url = page.fields[b"warc-target-uri"].strip(b"<>")
    values = {"url": text_of(url), "mime": media_type(page)}
    if page.kind == b"response" and page.status:
        values["status"] = str(page.status)
    digest = digest_of(page.fields)
    if digest:
        values["digest"] = digest
    values |= {"length": str(page.size), "offset": str(page.offset), "filename": filename}
    stamp = stamp_of(page.fields.get(b"warc-date", b"")).ljust(_STAMP_DIGITS, "0")
    return b"%s %s %s\n" % (search_key(url), stamp.encode(), json.dumps(values).encode())


def read_line(line: bytes) -> Capture:
    key, _, rest = line.partition(b" ")
    stamp, _, text = rest.partition(b" ")
    try:
        values = read_json(text)
        return Capture(
            key,
            stamp.decode("ascii"),
            str(values["url"]),
            str(values["filename"]),
            int(values["offset"]),
            int(values["length"]),
            str(values.get("mime", "")),
            status_of(str(values.get("status", ""))),
            str(values.get("digest", "")),
        )
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{line[:80]!r} is not a line of a CDXJ index") from error


def digest_of(fields: dict[bytes, bytes]) -> str:
    return decode_header(fields.get(b"warc-payload-digest", b"")).removeprefix("sha1:")


def stamp_of(date: bytes) -> str:
    return _NO_DIGIT.sub(b"", date)[:_STAMP_DIGITS].decode()


def status_of(told: str) -> int:
    return int(told) if len(told) == 3 and told.isascii() and told.isdigit() else 0


def media_type(page: PageRecord) -> str:
    if page.kind == b"revisit":
        return REVISIT
    return page.media_type or "unk"


def decode_header(value: bytes) -> str:
    """Return a header's value as UTF-8, or else Latin-1."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
