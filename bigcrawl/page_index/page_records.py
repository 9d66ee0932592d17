"""Reads a WARC file once, and joins each captured page with its request and its metadata."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.exceptions import CorruptionError
from bigcrawl.media_types import BINARY, sniff_media_type, type_told
from bigcrawl.warc.heads import head_fields, http_head, is_http, parse_status
from bigcrawl.warc.record_heads import record_heads

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl.warc.record_heads import RecordHead

CAPTURES: Final = frozenset({b"response", b"revisit", b"resource"})
_HEAD: Final = b"HEAD "
_HEAD_END: Final = b"\r\n\r\n"
_PACKINGS: Final = frozenset({b"content-encoding", b"transfer-encoding"})
_find_types = re.compile(rb"^content-type[ \t]*+:([^\r\n]*+)", re.IGNORECASE | re.MULTILINE).findall


class PageRecord(NamedTuple):
    """A capture: an answer of a server, with its request and notes if they are in the file. Field names are lower-case.

    `offset` and `size` are those of the gzip member. `status` is 0 without an HTTP message, `body_bytes` -1 if unknown.
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
    """The type as sent, or else by the first bytes; empty if unknown."""


def page_records(path: Path, *, has_bodies: bool = False) -> Iterator[PageRecord]:
    """Yield the captures of a file, except answers to HEAD, which would be replayed as empty pages."""
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
                page, page_id = _new_record(kind, record), fields.get(b"warc-record-id", b"")
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


def _new_record(kind: bytes, record: RecordHead) -> PageRecord:
    has_head = is_http(record.fields, record.block)
    head, body_at = http_head(record.block) if has_head else (b"", 0)
    found = parse_status(head)
    status, http = (int(found[2]), head_fields(head)) if found else (0, {})
    body_bytes = record.block_bytes - body_at if body_at or not status else -1
    media_type = type_told(_find_types(head) if status else [record.fields.get(b"content-type", b"")])
    if status and not media_type and not http.keys() & _PACKINGS:
        by_bytes = sniff_media_type(record.block[body_at:] if body_at else b"")
        media_type = "" if by_bytes in ("text/plain", BINARY) else by_bytes
    return PageRecord(
        kind, record.offset, record.size, record.fields, status, body_bytes, http, {}, {}, record.body, media_type
    )
