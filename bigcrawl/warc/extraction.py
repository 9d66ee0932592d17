"""Copies the HTTP message of one record out of a WARC file, in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from bigcrawl.exceptions import CorruptionError
from bigcrawl.warc.heads import HEAD_BYTES_MAX, HEAD_END, NEXT_BYTES, http_head, is_http, length_of, record_head
from bigcrawl.warc.members import TORN, packing_of, spans_of_file

if TYPE_CHECKING:
    from pathlib import Path


class ExtractedPage(NamedTuple):
    fields: dict[bytes, bytes]
    http_head: bytes
    body_bytes: int


def extract_payload(path: Path, offset: int, body: BinaryIO) -> ExtractedPage:
    """Write the payload of the record at an offset into `body`, as stored; on failure, perhaps only part of it."""
    record = _RecordSink(body)
    packing = packing_of(path)
    with path.open("rb") as file:
        span = next(spans_of_file(file, lambda: record, packing, offset), None)
    if span is None or span.problem == TORN:
        raise CorruptionError(path, offset, "a whole record", "the end of the file")
    if span.problem:
        raise CorruptionError(path, offset, "a record", span.problem)
    return ExtractedPage(record.fields, record.http_head, record.body_bytes)


class _RecordSink:
    def __init__(self, body: BinaryIO) -> None:
        self._body = body
        self._begun: bytes | None = b""
        self._missing = 0
        self._held = b""  # line ends follow a block that is shorter than its Content-Length
        self.fields: dict[bytes, bytes] = {}
        self.http_head = b""
        self.body_bytes = 0

    def feed(self, piece: bytes) -> None:
        if self._begun is not None:
            self._begun += piece
            if not self._take_heads(len(self._begun) > len(piece) + HEAD_BYTES_MAX):
                return
            piece, self._begun = self._begun, None
        piece = piece[: self._missing]
        self._missing -= len(piece)
        self._held += piece
        self._write_held(max(len(self._held) - len(HEAD_END), 0))

    def end(self) -> str:
        if self._begun is not None and not self._take_heads(True):
            return f"is no WARC record, but begins with {self._begun[:16]!r}"
        if self._begun is not None:
            piece, self._begun = self._begun, None
            self.feed(piece)
        is_short = self._missing and self._held == HEAD_END
        self._write_held(0 if is_short else len(self._held))
        return ""

    def _write_held(self, size: int) -> None:
        self._body.write(self._held[:size])
        self.body_bytes += size
        self._held = self._held[size:]

    def _take_heads(self, is_all: bool) -> bool:
        assert self._begun is not None
        found = record_head(self._begun)
        if found is None:
            return False
        fields, at = found
        rest = self._begun[at:]
        told = length_of(fields)
        http, body_at = http_head(rest) if is_http(fields, rest) else (b"", 0)
        if not body_at and not is_all and (http or len(rest) < NEXT_BYTES):
            return False
        self.http_head = http + b"\r\n" if body_at else b""
        self.fields, self._begun = fields, rest[body_at:]
        self._missing = 1 << 62 if told is None else max(told - body_at, 0)
        return True
