"""Reads a WARC file once, and joins each captured page with its request and its notes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.exceptions import CorruptionError
from bigcrawl.media_types import BINARY, sniffed, type_told
from bigcrawl.warc.record_heads import head_fields, record_heads

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl.warc.record_heads import RecordHead

CAPTURES: Final = frozenset({b"response", b"revisit", b"resource"})
_HEAD: Final = b"HEAD "
_HEAD_END: Final = b"\r\n\r\n"
_DIGITS_MAX: Final = 18  # of a number of 64 bits
_PACKINGS: Final = frozenset({b"content-encoding", b"transfer-encoding"})
_find_types = re.compile(rb"^content-type[ \t]*+:([^\r\n]*+)", re.IGNORECASE | re.MULTILINE).findall
_status_of = re.compile(rb"HTTP/[0-9.]+ +([0-9]{3})(?![0-9])").match


class PageRecord(NamedTuple):
    """A capture: one answer of a server, with what its request and its notes say.

    Attributes:
        kind: ``response``, ``revisit`` or ``resource``.
        offset: of its gzip member in the file.
        size: bytes of the member.
        fields: of the record's head; names in lower case, here and below.
        status: of the HTTP message; 0 if it has none.
        body_bytes: of the body in the record; -1 if unknown.
        http: fields of the HTTP head.
        request: fields of the request's HTTP head; empty if the request is elsewhere.
        notes: fields of its metadata record, if that follows directly.
        body: a digest, as of `RecordHead`.
    """

    kind: bytes
    offset: int
    size: int
    fields: dict[bytes, bytes]
    status: int
    body_bytes: int
    http: dict[bytes, bytes]
    request: dict[bytes, bytes]
    notes: dict[bytes, bytes]
    body: bytes = b""
    media_type: str = ""
    """As told, or by the first bytes if it is not; empty if neither says more than text or binary."""


def page_records(path: Path, *, has_bodies: bool = False) -> Iterator[PageRecord]:
    """Yield the captures of a file, in its order, without answers to HEAD: they would be replayed as empty pages.

    Raises:
        CorruptionError: as `record_heads`; the captures before the damage were yielded.
    """
    page: PageRecord | None = None
    page_id = b""
    damage: CorruptionError | None = None
    try:
        for record in record_heads(path, has_bodies=has_bodies):
            fields = record.fields
            kind = fields.get(b"warc-type", b"")
            if kind in CAPTURES and fields.get(b"warc-target-uri"):
                if page is not None:
                    yield page
                page, page_id = _begun(kind, record), fields.get(b"warc-record-id", b"")
            elif page is not None and fields.get(b"warc-concurrent-to") == page_id:
                if record.block.startswith(_HEAD):
                    page = None
                    continue
                page.request.update(head_fields(record.block.partition(_HEAD_END)[0]))
            elif page is not None and fields.get(b"warc-refers-to") == page_id:
                page.notes.update(head_fields(record.block))
    except CorruptionError as error:
        damage = error
    if page is not None:
        yield page
    if damage is not None:
        raise damage


def _begun(kind: bytes, record: RecordHead) -> PageRecord:
    head, end, _ = record.block.partition(_HEAD_END)
    found = _status_of(head)
    status, http = (int(found[1]), head_fields(head)) if found else (0, {})
    told = record.fields.get(b"content-length", b"")
    body_bytes = -1
    if told.isdigit() and len(told) <= _DIGITS_MAX and (end or not status):
        body_bytes = int(told) - (len(head) + len(end) if status else 0)
    media_type = type_told(_find_types(head) if status else [record.fields.get(b"content-type", b"")])
    if status and not media_type and not http.keys() & _PACKINGS:
        by_bytes = sniffed(record.block[len(head) + len(end) :])
        media_type = "" if by_bytes in ("text/plain", BINARY) else by_bytes
    return PageRecord(
        kind, record.offset, record.size, record.fields, status, body_bytes, http, {}, {}, record.body, media_type
    )
