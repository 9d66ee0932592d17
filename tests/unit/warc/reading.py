"""Read WARC files with everything but bigcrawl: warcio's checker, fastwarc, and zlib."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING

from fastwarc.warc import ArchiveIterator as FastwarcIterator
from warcio.archiveiterator import ArchiveIterator as WarcioIterator
from warcio.checker import Checker

from bigcrawl.warc.records import Exchange

if TYPE_CHECKING:
    from pathlib import Path

CRLF = b"\r\n"


@dataclass(frozen=True)
class Record:
    """One record as the standard library sees it: its own headers and its block."""

    headers: dict[str, str]
    block: bytes

    @property
    def type(self) -> str:
        return self.headers["WARC-Type"]

    @property
    def http_head(self) -> list[bytes]:
        """The first line and the header lines of the HTTP message."""
        return self.block.partition(CRLF * 2)[0].split(CRLF)

    @property
    def body(self) -> bytes:
        return self.block.partition(CRLF * 2)[2]


def parse_record(data: bytes) -> Record:
    """One serialised record; asserts its outer form."""
    head, _, rest = data.partition(CRLF * 2)
    version, *lines = head.split(CRLF)
    assert version == b"WARC/1.1"
    pairs = [line.decode().split(": ", 1) for line in lines]
    headers = {name: value for name, value in pairs}  # pairs are lists of two  # noqa: C416
    assert len(headers) == len(pairs), "a field of the record's head is repeated"
    length = int(headers["Content-Length"])
    assert rest[length:] == CRLF * 2
    return Record(headers, rest[:length])


def gzip_members(data: bytes) -> list[bytes]:
    """What each gzip member unpacks to; raises EOFError when the last one is torn."""
    members = []
    while data:
        unpacker = zlib.decompressobj(31)
        members.append(unpacker.decompress(data))
        if not unpacker.eof:
            raise EOFError
        data = unpacker.unused_data
    return members


def read_checked(path: Path) -> list[Record]:
    """The file's records, after warcio and fastwarc have both found it sound, one member a record."""
    records = [parse_record(member) for member in gzip_members(path.read_bytes())]
    ids = [record.headers["WARC-Record-ID"] for record in records]
    assert len(set(ids)) == len(ids)
    checker = Checker(SimpleNamespace(inputs=[str(path)], verbose=False))
    assert checker.process_all() == 0
    with path.open("rb") as file:
        assert [record.rec_headers.get_header("WARC-Record-ID") for record in WarcioIterator(file)] == ids
    with path.open("rb") as file:
        assert [record.record_id for record in FastwarcIterator(file, verify_digests=True, parse_http=True)] == ids
    return records


def exchange(number: int, body: bytes = b"<p>a page</p>", **changes: object) -> Exchange:
    """A plain page whose URL carries `number`."""
    values: dict[str, object] = {
        "url": f"http://a.example/{number}",
        "method": "GET",
        "request_headers": [(b"User-Agent", b"bigcrawl")],
        "request_body": b"",
        "status": 200,
        "response_headers": [(b"Content-Type", b"text/html")],
        "response_body": body,
        "date_ms": 1_700_000_000_123,
        "ip": "127.0.0.1",
    }
    return Exchange(**(values | changes))  # type: ignore[arg-type]


def numbers_of(records: list[Record]) -> list[int]:
    """The numbers of the exchanges whose responses are among the records, in order."""
    return [
        int(record.headers["WARC-Target-URI"].rpartition("/")[2]) for record in records if record.type == "response"
    ]
