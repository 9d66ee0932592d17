"""Tells which captures are pages, and reads their titles."""

from __future__ import annotations

import json
from io import BytesIO
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.exceptions import CorruptionError
from bigcrawl.links import page_title
from bigcrawl.media_types import HTML
from bigcrawl.middlewares.compression import unpacked_by
from bigcrawl.warc.extraction import extract_payload
from bigcrawl.warc.heads import head_fields

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.page_index.page_records import PageRecord

BODY_BYTES_MAX: Final = 1 << 20
"""How much of a page is read for its title, packed and unpacked."""
HEADER: Final = b'{"format": "json-pages-1.0", "id": "pages", "title": "Pages"}\n'
_OK: Final = 200
_EMBED: Final = b"E"  # a step of Heritrix's path from a seed


class _Page(NamedTuple):
    url: str
    body: bytes
    headers: dict[str, bytes]


class _Begin(BytesIO):
    """Keeps the beginning of what is written."""

    def write(self, data: bytes) -> int:  # type: ignore[override]
        super().write(data[: BODY_BYTES_MAX - self.tell()])
        return len(data)


def is_page(capture: PageRecord) -> bool:
    """Return whether a capture is an HTML page that was found, and neither robots.txt nor part of another page."""
    if capture.status != _OK or capture.media_type not in HTML or capture.kind not in (b"response", b"revisit"):
        return False
    return _EMBED not in capture.notes.get(b"hopsfromseed", b"") and not _url_of(capture).endswith("/robots.txt")


def page_line(path: Path, capture: PageRecord) -> bytes:
    """Return a page's line in pages.jsonl; a copy that is stored by reference has no title."""
    record_id, date = (capture.fields.get(name, b"").decode("latin-1") for name in (b"warc-record-id", b"warc-date"))
    line = {"id": record_id.strip("<>").removeprefix("urn:uuid:"), "url": _url_of(capture), "ts": date}
    title = _title_of(path, capture) if capture.kind == b"response" else ""
    return json.dumps(line | ({"title": title} if title else {})).encode() + b"\n"


def _url_of(capture: PageRecord) -> str:
    return capture.fields[b"warc-target-uri"].strip(b"<>").decode("utf-8", "replace")


def _title_of(path: Path, capture: PageRecord) -> str:
    begin = _Begin()
    try:
        head = head_fields(extract_payload(path, capture.offset, begin).http_head)
        body = begin.getvalue()
        for encoding in reversed(head.get(b"content-encoding", b"").lower().replace(b",", b" ").split()[:4]):
            body, _ = unpacked_by(encoding, body, BODY_BYTES_MAX)
    except CorruptionError:
        return ""
    except Exception:  # noqa: BLE001 - codecs raise any exception, and such a page is longer, or shows no title either
        return ""
    return page_title(_Page(_url_of(capture), body, {"Content-Type": head.get(b"content-type", b"")}))
