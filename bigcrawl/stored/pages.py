"""Reads a stored page: the records of its answer, its request and its metadata, which follow each other in a file."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from isal import igzip_lib

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.page_index.cdxj import decoded
from bigcrawl.stored.catalogue import stamp_of
from bigcrawl.stored.chunks import without_chunks
from bigcrawl.url.canonical import UrlError, canonicalize
from bigcrawl.url.header import text_of
from bigcrawl.warc.record_heads import head_fields

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl.stored.catalogue import Place

FILES_OPEN_MAX: Final = 64
ORIGINALS_TRIED_MAX: Final = 64
"""Answers of one URL that are read to find the one to which a copy refers."""
_BEHIND_BYTES: Final = 4_096  # nearly always enough for a request and its metadata
_UNPACKED_BYTES: Final = 1 << 16  # at first: room for much more costs as much as unpacking a page
_HEADS_BYTES_MAX: Final = 1 << 20  # of a record, besides its body
_URL_BYTES_MAX: Final = 1 << 20
_HEAD_END: Final = b"\r\n\r\n"
# How the download handlers mark an incomplete answer, see `bigcrawl.pipelines.warc`.
_FLAGS: Final = {
    b"length": "truncated",
    b"time": "truncated-time",
    b"disconnect": "dataloss",
    b"unspecified": "download_stopped",
}
_parse_status_line = re.compile(rb"(HTTP/[0-9.]+) +([0-9]{3})(?![0-9])").match
_BadGzipError: type[Exception] = igzip_lib.error  # type: ignore[assignment]


class UnreadablePageError(BigcrawlError):
    """A page cannot be read. `reason` is one of damaged, too-large, no-original."""

    def __init__(self, place: Place, reason: str, why: str) -> None:
        super().__init__(f"{place.path}: the record at byte {place.offset} {why}")
        self.reason = reason


class Answers(Protocol):
    """Finds the stored answers of URLs, as `Catalogue` does."""

    def answers(self, canonical: str, near: str = "") -> Iterator[Place]:
        """Yield the stored answers of a URL: the last one first, or beginning with those written near a time."""


@dataclass(slots=True)
class StoredPage:
    """An answer, with what is stored about its request.

    Attributes:
        url: as it is stored.
        status: of the answer.
        protocol: HTTP/1.1, h2 ...
        headers: by names in Scrapy's case.
        body: as it was sent, without chunks.
        flags: those that the download handler set.
        ip: the server's address; empty if it is not stored.
        method: of the request; GET if there is none.
        request_body: of the request.
        took_ms: how long the fetch took; 0 if that is not stored.
        depth: links from a seed; None if that is not stored.
        via: the page that led to it, if its request named one; else empty.
        original_url: of the page with this body, if the record refers to one; else empty.
    """

    url: str
    status: int
    protocol: str
    headers: dict[bytes, list[bytes]]
    body: bytes
    flags: list[str] = field(default_factory=list)
    ip: str = ""
    method: str = "GET"
    request_body: bytes = b""
    took_ms: int = 0
    depth: int | None = None
    via: str = ""
    original_url: str = ""


class PageReader:
    """Reads pages in any order. The order of a file is fastest.

    Args:
        answers: finds the originals of copies.
        body_bytes_max: a longer body is refused; 0 means no limit.
    """

    def __init__(self, answers: Answers, body_bytes_max: int) -> None:
        self._answers = answers
        self._bytes_max = (body_bytes_max or 1 << 40) + _HEADS_BYTES_MAX
        self._files: OrderedDict[Path, int] = OrderedDict()

    def __repr__(self) -> str:
        return f"<PageReader files={len(self._files)}>"

    def close(self) -> None:
        """Close the files."""
        while self._files:
            os.close(self._files.popitem()[1])

    def read(self, place: Place) -> StoredPage:
        """Return the page that is stored at a place.

        Raises:
            UnreadablePageError: its record is damaged or too large, or refers to a record that is missing.

        Cost: 0.1 ms for a page of 21 KB.
        """
        records = self._records(place)
        fields, block = _divided(next(records), place)
        page = _page(fields, block, place)
        with suppress(UnreadablePageError):  # records behind a whole page may be cut off
            _add_companions(page, fields.get(b"warc-record-id", b""), records)
        if fields.get(b"warc-type") == b"revisit":
            self._complete(page, fields, place)
        return page

    def _complete(self, page: StoredPage, fields: dict[bytes, bytes], place: Place) -> None:
        """Give a copy the body of its original. A 304 is replaced by the page that had not changed."""
        original = self._original(page, fields, place)
        page.body = original.body
        if not page.status or page.status == 304:
            page.status, page.protocol, page.headers = original.status, original.protocol, original.headers
        elif original.status == page.status:
            page.original_url = original.url

    def _original(self, page: StoredPage, fields: dict[bytes, bytes], copy: Place) -> StoredPage:
        target = text_of(fields.get(b"warc-refers-to-target-uri", b"").strip(b"<>")) or page.url
        try:
            canonical = canonicalize(target, _URL_BYTES_MAX)
        except UrlError as error:
            raise UnreadablePageError(copy, "no-original", f"refers to {target[:200]!r}, which is not a URL") from error
        record_id, digest = fields.get(b"warc-refers-to"), fields.get(b"warc-payload-digest")
        near = stamp_of(fields.get(b"warc-refers-to-date", b""))
        places = (place for place in self._answers.answers(canonical, near) if not place.is_copy)
        equal: StoredPage | None = None
        for _, place in zip(range(ORIGINALS_TRIED_MAX), places, strict=False):
            found, block = _divided(next(self._records(place)), place)
            if record_id is not None and found.get(b"warc-record-id") == record_id:
                return _page(found, block, place)
            if equal is None and digest is not None and found.get(b"warc-payload-digest") == digest:
                equal = _page(found, block, place)
                if record_id is None:
                    break
        if equal is not None:
            return equal
        raise UnreadablePageError(copy, "no-original", f"is a copy of {canonical}, which is in none of the files")

    def _records(self, place: Place) -> Iterator[bytes]:
        """Yield the record of a place, and those behind it as far as the caller asks; each is bounded in length."""
        data = self._bytes_at(place, min(place.size, self._bytes_max) + _BEHIND_BYTES, place.offset)
        if not data:
            raise _cut_off(place)
        at = place.offset + len(data)
        while data:
            member = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
            try:
                record = member.decompress(data, _UNPACKED_BYTES)
                while not member.eof and len(record) < self._bytes_max:
                    more = b""
                    if member.needs_input:
                        more = self._bytes_at(place, max(_BEHIND_BYTES, len(record)), at)
                        at += len(more)
                        if not more:
                            raise _cut_off(place)
                    record += member.decompress(more, len(record) + _UNPACKED_BYTES)  # twice as much each time
            except _BadGzipError as error:
                raise UnreadablePageError(place, "damaged", f"cannot be unpacked: {error}") from error
            if not member.eof or len(record) > self._bytes_max:
                raise UnreadablePageError(place, "too-large", "is larger than DOWNLOAD_MAXSIZE allows")
            yield record
            data = member.unused_data
            if not data:
                data = self._bytes_at(place, _BEHIND_BYTES, at)
                at += len(data)

    def _bytes_at(self, place: Place, size: int, at: int) -> bytes:
        try:
            return os.pread(self._open(place.path), size, at)
        except OSError as error:
            raise UnreadablePageError(place, "damaged", f"cannot be read: {error.strerror}") from error

    def _open(self, path: Path) -> int:
        fd = self._files.get(path)
        if fd is None:
            if len(self._files) >= FILES_OPEN_MAX:
                os.close(self._files.popitem(last=False)[1])
            fd = self._files[path] = os.open(path, os.O_RDONLY)
        else:
            self._files.move_to_end(path)
        return fd


def _cut_off(place: Place) -> UnreadablePageError:
    return UnreadablePageError(place, "damaged", "is cut off by the end of the file")


def _divided(record: bytes, place: Place) -> tuple[dict[bytes, bytes], bytes]:
    """Return the header fields of a record, and its block."""
    head, end, block = record.partition(_HEAD_END)
    fields = head_fields(head)
    length = fields.get(b"content-length", b"")
    if not end or not head.startswith(b"WARC/") or not length.isdigit() or len(block) < int(length):
        raise UnreadablePageError(place, "damaged", "is not a complete record: its index may be that of another file")
    return fields, block[: int(length)]


def _page(fields: dict[bytes, bytes], block: bytes, place: Place) -> StoredPage:
    url, ip = text_of(fields.get(b"warc-target-uri", b"").strip(b"<>")), decoded(fields.get(b"warc-ip-address", b""))
    if not fields.get(b"content-type", b"").startswith(b"application/http"):
        is_copy = fields.get(b"warc-type") == b"revisit"
        headers = {b"Content-Type": [fields[b"content-type"]]} if b"content-type" in fields and not is_copy else {}
        return StoredPage(url, 0 if is_copy else 200, "HTTP/1.1", headers, block, ip=ip)
    head, end, body = block.partition(_HEAD_END)
    status_line, _, lines = head.partition(b"\r\n")
    found = _parse_status_line(status_line)
    if found is None or not end:
        raise UnreadablePageError(place, "damaged", f"has no HTTP response: {status_line[:40]!r}")
    headers = _headers(lines)
    if headers.pop(b"Transfer-Encoding", None):
        body = without_chunks(body)
    protocol = decoded(fields.get(b"warc-protocol", found[1]))
    page = StoredPage(url, int(found[2]), protocol, headers, body, ip=ip)
    cut = fields.get(b"warc-truncated")
    if cut is not None and fields.get(b"warc-type") != b"revisit":
        page.flags.append(_FLAGS.get(cut, "download_stopped"))
    return page


def _add_companions(page: StoredPage, record_id: bytes, records: Iterator[bytes]) -> None:
    """Add what the next records say, if they are the page's request and metadata."""
    for record in records:
        head, _, rest = record.partition(_HEAD_END)
        fields = head_fields(head)
        if fields.get(b"warc-concurrent-to") == record_id:
            page.method = decoded(rest.partition(b" ")[0])
            page.request_body = rest.partition(_HEAD_END)[2].removesuffix(_HEAD_END)
        elif fields.get(b"warc-refers-to") == record_id:
            notes = head_fields(rest)
            page.took_ms, page.depth = _number(notes, b"fetchtimems"), _number(notes, b"depth")
            page.via = decoded(notes.get(b"via", b""))
            return
        else:
            return


def _headers(lines: bytes) -> dict[bytes, list[bytes]]:
    """Return headers as they were received; WARC files have some under other names, see `bigcrawl.warc.records`."""
    headers: dict[bytes, list[bytes]] = {}
    for line in lines.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if colon:
            headers.setdefault(name.strip().title(), []).append(value.strip(b" \t"))
    sent = headers.pop(b"X-Crawler-Content-Length", None)
    if sent is not None:
        headers[b"Content-Length"] = sent
    headers.pop(b"X-Crawler-Transfer-Encoding", None)
    return headers


def _number(fields: dict[bytes, bytes], name: bytes) -> int:
    value = fields.get(name, b"")
    return int(value) if value.isdigit() and len(value) < 10 else 0
