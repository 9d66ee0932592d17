"""Parquet files: one row per capture, in the order of its WARC file (extra `parquet`).

docs/file-formats.md describes the columns of `SCHEMA`.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, BinaryIO, Final

import pyarrow as pa
from pyarrow import parquet

from bigcrawl.page_index.cdxj import decode_header, media_type
from bigcrawl.url.canonical import host_of
from bigcrawl.url.domain import PublicSuffixes
from bigcrawl.url.header import text_of

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.page_index.page_records import PageRecord

SCHEMA: Final = pa.schema(
    [
        ("url", pa.string()),
        ("host", pa.string()),
        ("pld", pa.string()),
        ("time", pa.timestamp("ms", tz="UTC")),
        ("status", pa.int16()),
        ("type", pa.string()),
        ("length", pa.int64()),
        ("digest", pa.string()),
        ("language", pa.string()),
        ("parent", pa.string()),
        ("depth", pa.int32()),
        ("priority", pa.int32()),
        ("ip", pa.string()),
        ("server", pa.string()),
        ("fetch_ms", pa.int32()),
        ("outcome", pa.string()),
        ("filename", pa.string()),
        ("offset", pa.int64()),
        ("size", pa.int64()),
        ("key", pa.string()),
        ("found", pa.timestamp("ms", tz="UTC")),
        ("found_ip", pa.string()),
    ]
)
_REPEATING: Final = [
    *("host", "pld", "status", "type", "language", "parent", "depth", "priority", "ip", "server", "fetch_ms"),
    *("outcome", "filename", "found_ip"),
]
_ENCODINGS: Final = {"time": "DELTA_BINARY_PACKED", "offset": "DELTA_BINARY_PACKED"}
_ROWS_MAX: Final = 1 << 15
_TEXT_BYTES_MAX: Final = 16 << 20
_TOLD_CHARS_MAX: Final = 128
_INT32_MAX: Final = (1 << 31) - 1
_DIGITS_MAX: Final = 18


class ParquetIndex:
    def __init__(self, directory: Path, filename: str) -> None:
        self._filename = filename
        self._suffixes = PublicSuffixes.bundled()
        self._rows: list[tuple[object, ...]] = []
        self._text_bytes = 0
        self._file: BinaryIO = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 - closed by `close`
        self._writer = parquet.ParquetWriter(
            self._file,
            SCHEMA,
            compression="zstd",
            use_dictionary=_REPEATING,
            column_encoding=_ENCODINGS,
            write_statistics=["time", "status", "pld", "host"],
        )

    def add(self, page: PageRecord) -> None:
        row = row_of(page, self._suffixes, self._filename)
        self._rows.append(row)
        self._text_bytes += sum(len(value) for value in row if isinstance(value, str))
        if len(self._rows) >= _ROWS_MAX or self._text_bytes >= _TEXT_BYTES_MAX:
            self._end_group()

    def write(self, file: BinaryIO) -> None:
        if self._rows:
            self._end_group()
        self._writer.close()
        self._file.seek(0)
        shutil.copyfileobj(self._file, file)

    def close(self) -> None:
        self._writer.close()
        self._file.close()

    def _end_group(self) -> None:
        columns = zip(zip(*self._rows, strict=True), SCHEMA.types, strict=True)
        arrays = [pa.array(values, kind) for values, kind in columns]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA))
        self._rows, self._text_bytes = [], 0


def row_of(page: PageRecord, suffixes: PublicSuffixes, filename: str) -> tuple[object, ...]:
    fields, http, notes = page.fields, page.http, page.notes
    url = text_of(fields[b"warc-target-uri"].strip(b"<>"))
    host = _host_or_none(url)
    parent = notes.get(b"via") or page.request.get(b"referer")
    return (
        url,
        host,
        suffixes.pld(host) if host else None,
        to_ms(fields.get(b"warc-date", b"")),
        page.status or None,
        _declared_type(page),
        _declared_length(page),
        decode_header(fields.get(b"warc-payload-digest", b"")).removeprefix("sha1:") or None,
        _first_language(http.get(b"content-language", b"")),
        decode_header(parent) if parent else None,
        _bounded_number(notes.get(b"depth")),
        _bounded_number(notes.get(b"priority")),
        _cut_value(fields.get(b"warc-ip-address")),
        _cut_value(http.get(b"server")),
        _bounded_number(notes.get(b"fetchtimems")),
        outcome_of(page),
        filename,
        page.offset,
        page.size,
        _cut_value(notes.get(b"key")),
        to_ms(notes.get(b"foundtime", b"")),
        _cut_value(notes.get(b"foundaddress")),
    )


def outcome_of(page: PageRecord) -> str:
    """Return the outcome of a capture: ok, copy, truncated, unchanged, redirect, client-error, server-error, other."""
    if page.kind == b"response" and b"warc-truncated" in page.fields:
        return "truncated"
    match page.status // 100:
        case 2:
            return "copy" if page.kind == b"revisit" else "ok"
        case 3:
            return "unchanged" if page.status == 304 else "redirect"
        case 4:
            return "client-error"
        case 5:
            return "server-error"
    return "other"


def _declared_type(page: PageRecord) -> str | None:
    told = media_type(page._replace(kind=b"response"))
    return None if told == "unk" else told[:_TOLD_CHARS_MAX].lower()


def _declared_length(page: PageRecord) -> int | None:
    if page.kind != b"revisit":
        return page.body_bytes if page.body_bytes >= 0 else None
    told = page.http.get(b"content-length", b"")
    return int(told) if told.isdigit() and len(told) <= _DIGITS_MAX else None


def _first_language(told: bytes) -> str | None:
    return decode_header(told.partition(b",")[0].strip()).lower()[:_TOLD_CHARS_MAX] or None


def _cut_value(value: bytes | None) -> str | None:
    return decode_header(value)[:_TOLD_CHARS_MAX] if value else None


def _bounded_number(told: bytes | None) -> int | None:
    digits = told.removeprefix(b"-") if told else b""
    if told is None or not digits.isdigit() or len(digits) > _DIGITS_MAX:
        return None
    return max(-_INT32_MAX, min(int(told), _INT32_MAX))


def _host_or_none(url: str) -> str | None:
    if not url.startswith(("http://", "https://")):
        return None
    try:
        return host_of(url) or None
    except (ValueError, IndexError):
        return None


_parts_of = re.compile(rb"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?Z").fullmatch


def to_ms(date: bytes) -> int | None:
    found = _parts_of(date)
    seconds = _to_seconds(found[1]) if found else None
    if found is None or seconds is None:
        return None
    return seconds * 1000 + int((found[2] or b"").ljust(3, b"0")[:3])


@lru_cache(16)
def _to_seconds(date: bytes) -> int | None:
    try:
        return int(datetime.strptime(date.decode(), "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None
