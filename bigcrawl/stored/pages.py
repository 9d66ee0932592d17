from __future__ import annotations

import os
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.page_index.cdxj import decode_header, digest_of, stamp_of
from bigcrawl.url.canonical import UrlError, canonicalize
from bigcrawl.url.header import text_of
from bigcrawl.warc.heads import (
    HEAD_BYTES_MAX,
    block_of,
    head_fields,
    http_head,
    is_http,
    length_of,
    parse_status,
    record_head,
)
from bigcrawl.warc.members import packing_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl.stored.catalogue import StoredPlace
    from bigcrawl.warc.members import RecordPacking

FILES_OPEN_MAX: Final = 64
ORIGINALS_TRIED_MAX: Final = 64
_BEHIND_BYTES: Final = 4_096  # usually enough for request and metadata
_UNPACKED_BYTES: Final = 1 << 16  # at first; a much larger buffer costs as much as decompressing a page
_HEADS_BYTES_MAX: Final = 1 << 20  # of a record, besides its body
_URL_BYTES_MAX: Final = 1 << 20
_NOT_MODIFIED: Final = 304
_COPIES_DEEP_MAX: Final = 2
_BY_TIME, _BY_DIGEST, _BY_RECORD = 1, 2, 3
_HEAD_END: Final = b"\r\n\r\n"
# The download handlers' flags for an incomplete answer, see `bigcrawl.pipelines.warc`.
_FLAGS: Final = {
    b"length": "truncated",
    b"time": "truncated-time",
    b"disconnect": "dataloss",
    b"unspecified": "download_stopped",
}


class UnreadablePageError(BigcrawlError):
    """A page cannot be read; `reason` is damaged, too-large or no-original."""

    def __init__(self, place: StoredPlace, reason: str, why: str) -> None:
        super().__init__(f"{place.path}: the record at byte {place.offset} {why}")
        self.reason = reason


class Answers(Protocol):
    def answers(self, canonical: str, near: str = "") -> Iterator[StoredPlace]: ...

    def earlier_answers(self, canonical: str, stamp: str) -> Iterator[StoredPlace]: ...

    def answers_of_digest(self, digest: str) -> Iterator[StoredPlace]: ...


class _PageReference(NamedTuple):
    record_id: bytes
    digest: bytes
    stamp: str

    def agreement(self, fields: dict[bytes, bytes]) -> int:
        if self.record_id and fields.get(b"warc-record-id") == self.record_id:
            return _BY_RECORD
        digest = fields.get(b"warc-payload-digest", b"")
        if self.digest and digest == self.digest:
            return _BY_DIGEST
        is_comparable = bool(self.digest) and len(digest) == len(self.digest)
        is_then = bool(self.stamp) and stamp_of(fields.get(b"warc-date", b"")) == self.stamp
        return _BY_TIME if is_then and not is_comparable else 0


@dataclass(slots=True)
class StoredPage:
    """A stored answer, with data of its request.

    Attributes:
        headers: by names in Scrapy's case.
        body: without chunk framing.
        flags: what the download handler set.
        took_ms: how long the fetch took; 0 if unknown.
        depth: the number of links from a seed; None if unknown.
        via: the page that linked to this one; empty if unknown.
        original_url: URL of the page with this body, if the record refers to one, else empty.
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
    """Reads pages in any order, of at most `body_bytes_max` (0: any); `answers` finds the originals of copies."""

    def __init__(self, answers: Answers, body_bytes_max: int) -> None:
        self._answers = answers
        self._bytes_max = (body_bytes_max or 1 << 40) + _HEADS_BYTES_MAX
        self._files: OrderedDict[Path, tuple[int, RecordPacking]] = OrderedDict()

    def close(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1][0])

    def read_page(self, place: StoredPlace) -> StoredPage:
        """Raise UnreadablePageError if a record is damaged or too large, or refers to a missing one."""
        records = self._records_from(place)
        fields, block = _divide_record(next(records), place)
        page = _page_of_record(fields, block, place)
        with suppress(UnreadablePageError):  # records after a complete page may be cut off
            _add_companions(page, fields.get(b"warc-record-id", b""), records)
        if fields.get(b"warc-type") == b"revisit":
            self._complete_page(page, fields, place)
        return page

    def _complete_page(self, page: StoredPage, fields: dict[bytes, bytes], place: StoredPlace, depth: int = 0) -> None:
        """Give a copy the body of its original; replace a 304 by the unchanged page."""
        original = self._find_original(page, fields, place, depth)
        page.body = original.body
        if not page.status or page.status == _NOT_MODIFIED:
            page.status, page.protocol, page.headers = original.status, original.protocol, original.headers
        elif original.status == page.status:
            page.original_url = original.url

    def _find_original(self, page: StoredPage, fields: dict[bytes, bytes], copy: StoredPlace, depth: int) -> StoredPage:
        """Find a copy's original by record, digest, time, or the URL's previous answer; tools omit some of these."""
        told = text_of(fields.get(b"warc-refers-to-target-uri", b"").strip(b"<>"))
        target = told or page.url
        try:
            canonical = canonicalize(target, _URL_BYTES_MAX)
        except UrlError as error:
            raise UnreadablePageError(copy, "no-original", f"refers to {target[:200]!r}, which is not a URL") from error
        is_unmodified = fields.get(b"warc-profile", b"").endswith(b"/server-not-modified")
        digest = b"" if is_unmodified and not told else fields.get(b"warc-payload-digest", b"")
        near = stamp_of(fields.get(b"warc-refers-to-date", b""))
        wanted = _PageReference(fields.get(b"warc-refers-to", b""), digest, near)
        found = self._find_referred(self._answers.answers(canonical, near), wanted)
        if found is None and digest and not told:
            found = self._find_referred(self._answers.answers_of_digest(digest_of(fields)), wanted)
        if found is None and not told and (is_unmodified or not digest) and depth < _COPIES_DEEP_MAX:
            found = self._previous_answer(canonical, fields, copy, depth)
        if found is None:
            raise UnreadablePageError(copy, "no-original", f"is a copy of {canonical}, which none of the files has")
        return found

    def _find_referred(self, places: Iterator[StoredPlace], wanted: _PageReference) -> StoredPage | None:
        equal: StoredPage | None = None
        rank = 0
        for _, place in zip(range(ORIGINALS_TRIED_MAX), (one for one in places if not one.is_copy), strict=False):
            with suppress(UnreadablePageError):  # another one may be the original
                found, block = _divide_record(next(self._records_from(place)), place)
                agrees = wanted.agreement(found)
                if agrees > rank:
                    equal, rank = _page_of_record(found, block, place), agrees
                if rank == _BY_RECORD or (rank == _BY_DIGEST and not wanted.record_id):
                    break
        return equal

    def _previous_answer(
        self, canonical: str, fields: dict[bytes, bytes], copy: StoredPlace, depth: int
    ) -> StoredPage | None:
        places = self._answers.earlier_answers(canonical, stamp_of(fields.get(b"warc-date", b"")))
        for _, place in zip(range(ORIGINALS_TRIED_MAX), places, strict=False):
            if place == copy:
                continue
            with suppress(UnreadablePageError):
                found, block = _divide_record(next(self._records_from(place)), place)
                page = _page_of_record(found, block, place)
                if place.is_copy:
                    if page.status and page.status != _NOT_MODIFIED:
                        self._complete_page(page, found, place, depth + 1)
                        return page
                elif page.status != _NOT_MODIFIED:
                    return page
        return None

    def _records_from(self, place: StoredPlace) -> Iterator[bytes]:
        """Yield the record at a place, and those after it, each of bounded length."""
        packing = self._open_file(place)[1]
        data = self._bytes_at(place, min(place.size, self._bytes_max) + _BEHIND_BYTES, place.offset)
        if not data:
            raise _cut_off(place)
        if packing.unpacker is None:
            yield from self._plain_records(place)
            return
        at = place.offset + len(data)
        while data:
            member = packing.unpacker()
            try:
                record = member.decompress(data, _UNPACKED_BYTES)
                while not member.eof and len(record) < self._bytes_max:
                    more = b""
                    if member.needs_input:
                        more = self._bytes_at(place, max(_BEHIND_BYTES, len(record)), at)
                        at += len(more)
                        if not more:
                            raise _cut_off(place)
                    record += member.decompress(more, len(record) + _UNPACKED_BYTES)  # doubles the buffer
            except packing.errors as error:
                raise UnreadablePageError(place, "damaged", f"cannot be unpacked: {error}") from error
            if not member.eof or len(record) > self._bytes_max:
                raise UnreadablePageError(place, "too-large", "is larger than DOWNLOAD_MAXSIZE allows")
            yield record
            data = member.unused_data
            if not data:
                data = self._bytes_at(place, _BEHIND_BYTES, at)
                at += len(data)

    def _plain_records(self, place: StoredPlace) -> Iterator[bytes]:
        """Yield uncompressed records: the first has the length of the place, the others their declared length."""
        at, size = place.offset, place.size
        while True:
            if size > self._bytes_max:
                raise UnreadablePageError(place, "too-large", "is larger than DOWNLOAD_MAXSIZE allows")
            record = self._bytes_at(place, size, at)
            if len(record) < size:
                raise _cut_off(place)
            yield record
            at += size
            found = record_head(self._bytes_at(place, HEAD_BYTES_MAX, at))
            told = length_of(found[0]) if found else None
            if found is None or told is None:
                return
            size = found[1] + told + len(_HEAD_END)

    def _bytes_at(self, place: StoredPlace, size: int, at: int) -> bytes:
        try:
            return os.pread(self._open_file(place)[0], size, at)
        except (OSError, OverflowError) as error:
            raise UnreadablePageError(
                place, "damaged", f"cannot be read: {getattr(error, 'strerror', error)}"
            ) from error

    def _open_file(self, place: StoredPlace) -> tuple[int, RecordPacking]:
        found = self._files.get(place.path)
        if found is None:
            if len(self._files) >= FILES_OPEN_MAX:
                os.close(self._files.popitem(last=False)[1][0])
            try:
                found = self._files[place.path] = os.open(place.path, os.O_RDONLY), packing_of(place.path)
            except OSError as error:
                raise UnreadablePageError(place, "damaged", f"cannot be read: {error.strerror}") from error
        else:
            self._files.move_to_end(place.path)
        return found


def _cut_off(place: StoredPlace) -> UnreadablePageError:
    return UnreadablePageError(place, "damaged", "is cut off by the end of the file")


def _divide_record(record: bytes, place: StoredPlace) -> tuple[dict[bytes, bytes], bytes]:
    found = record_head(record)
    if found is None:
        raise UnreadablePageError(place, "damaged", "is not a complete record: its index may be that of another file")
    fields, block_at = found
    return fields, block_of(fields, record[block_at:])


def _page_of_record(fields: dict[bytes, bytes], block: bytes, place: StoredPlace) -> StoredPage:
    url, ip = (
        text_of(fields.get(b"warc-target-uri", b"").strip(b"<>")),
        decode_header(fields.get(b"warc-ip-address", b"")),
    )
    if not is_http(fields, block):
        is_copy = fields.get(b"warc-type") == b"revisit"
        told = fields.get(b"content-type", b"")
        headers = {b"Content-Type": [told]} if told and not is_copy else {}
        return StoredPage(url, 0 if is_copy else 200, "HTTP/1.1", headers, block, ip=ip)
    head, body_at = http_head(block)
    body = block[body_at:]
    status_line, _, lines = head.partition(b"\r\n")
    found = parse_status(status_line)
    if found is None or not body_at:
        raise UnreadablePageError(place, "damaged", f"has no HTTP response: {status_line[:40]!r}")
    headers = _parse_headers(lines)
    if headers.pop(b"Transfer-Encoding", None):
        body = without_chunks(body)
    protocol = (
        decode_header(fields.get(b"warc-protocol", found[1].upper()))
        .replace("ICY", "HTTP/1.0")
        .replace("http/", "HTTP/")
    )
    page = StoredPage(url, int(found[2]), protocol, headers, body, ip=ip)
    cut = fields.get(b"warc-truncated")
    if cut is None and (length_of(fields) or 0) > len(block) + len(_HEAD_END):
        cut = b"disconnect"
    if cut is not None and fields.get(b"warc-type") != b"revisit":
        page.flags.append(_FLAGS.get(cut, "download_stopped"))
    return page


def _add_companions(page: StoredPage, record_id: bytes, records: Iterator[bytes]) -> None:
    for record in records:
        fields, block_at = record_head(record) or ({}, 0)
        rest = record[block_at:]
        if fields.get(b"warc-concurrent-to") == record_id:
            page.method = decode_header(rest.partition(b" ")[0])
            page.request_body = rest.partition(_HEAD_END)[2].removesuffix(_HEAD_END)
        elif fields.get(b"warc-refers-to") == record_id:
            notes = head_fields(rest)
            page.took_ms, page.depth = _number_field(notes, b"fetchtimems"), _number_field(notes, b"depth")
            page.via = decode_header(notes.get(b"via", b""))
            return
        else:
            return


def _parse_headers(lines: bytes) -> dict[bytes, list[bytes]]:
    """Return headers as received; WARC files rename some of them, see `bigcrawl.warc.records`."""
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


def _number_field(fields: dict[bytes, bytes], name: bytes) -> int:
    value = fields.get(name, b"")
    return int(value) if value.isdigit() and len(value) < 10 else 0


def without_chunks(body: bytes) -> bytes:
    """Return a chunked body, as other crawlers store it, without its framing; others unchanged. Takes linear time."""
    pieces: list[bytes] = []
    at = 0
    while True:
        end = body.find(b"\r\n", at, at + 1024)
        size = body[at:end].partition(b";")[0].strip() if end >= 0 else b""
        if not size or not all(digit in b"0123456789abcdefABCDEF" for digit in size) or len(size) > 8:
            return b"".join(pieces) if pieces else body
        length = int(size, 16)
        if not length:
            return b"".join(pieces)
        pieces.append(body[end + 2 : end + 2 + length])
        at = end + 2 + length + 2
