from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.exceptions import CorruptionError
from bigcrawl.warc.files import OPEN_SUFFIX, WARC_SUFFIX
from bigcrawl.warc.heads import head_fields
from bigcrawl.warc.record_heads import record_heads

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_PAGES = (b"response", b"revisit")
_find_locations = re.compile(rb"^location:[ \t]*+([^\r\n]*)", re.IGNORECASE | re.MULTILINE).findall
_MARGIN_S = 2.0


class StoredPage(NamedTuple):
    path: Path
    offset: int
    size: int
    date: str
    locations: list[bytes]
    referrer: str


def find_page(directory: Path, is_wanted: Callable[[bytes], bool], ended_s: float) -> StoredPage | None:
    """Return the last stored response of a URL whose fetch ended at `ended_s`, from all files changed since then."""
    # Open files first: one may be sealed meanwhile.
    paths = [path for end in (f"{WARC_SUFFIX}{OPEN_SUFFIX}", WARC_SUFFIX) for path in directory.glob(f"*{end}")]
    pages = (_last_in(path, is_wanted, ended_s - _MARGIN_S) for path in paths)
    return max(filter(None, pages), key=lambda page: page.date, default=None)


def _last_in(path: Path, is_wanted: Callable[[bytes], bool], since_s: float) -> StoredPage | None:
    found, found_id = None, b""
    with suppress(CorruptionError, FileNotFoundError):
        if path.stat().st_mtime < since_s:
            return None
        for record in record_heads(path):
            fields = record.fields
            head = record.block.partition(b"\r\n\r\n")[0]
            http = head_fields(head)
            if found is not None and fields.get(b"warc-concurrent-to") == found_id:
                found = found._replace(referrer=http.get(b"referer", b"").decode("latin-1"))
            is_page = fields.get(b"warc-type") in _PAGES
            if is_page and is_wanted(fields.get(b"warc-target-uri", b"").strip(b"<>")):
                found_id = fields.get(b"warc-record-id", b"")
                date = fields.get(b"warc-date", b"").decode("latin-1")
                found = StoredPage(path, record.offset, record.size, date, _find_locations(head), "")
    return found
