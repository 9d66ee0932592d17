"""Finds payloads that are stored more than once in some WARC files, with bounded memory.

Records are sorted by digest. The first response by date keeps its body; other responses, and ``revisit`` records of
them, are to refer to it.

Bodies stay that are short, incomplete, or the original of an unchanged record. So do bodies that share a SHA-1 but not
a BLAKE2b, because anybody can publish two pages with one SHA-1. For the same reason a ``revisit`` of a record in none
of the files stays unchanged. Check the files first, so that no body is dropped in favour of a damaged one.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.exceptions import CorruptionError
from bigcrawl.page_index.page_records import page_records
from bigcrawl.page_index.sorted_lines import SortedLines
from bigcrawl.warc.origins import COPY_BYTES_MIN, URL_CHARS_MAX
from bigcrawl.warc.records import SAME_PAYLOAD
from bigcrawl.warc.rewriting import NewReference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from bigcrawl.page_index.page_records import PageRecord

_KEPT, _RESPONSE, _REVISIT = b"0", b"1", b"2"
_DIGEST: Final = b"sha1:"


class _FoundRecord(NamedTuple):
    """A record of a payload, or the id of a record that must be kept; numbers are zero-padded for sorting."""

    digest: bytes
    kind: bytes
    date: bytes
    file: bytes
    offset: bytes
    body: bytes  # BLAKE2b digest, or - for a revisit
    record_id: bytes
    original: bytes  # id of the record that has its body
    target: bytes


class CopyFinder:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._found = SortedLines(directory)
        self.redirected = SortedLines(directory)
        """``revisit`` records whose original will lose its body; change these first."""
        self.referred = SortedLines(directory)

    def close(self) -> None:
        for lines in (self._found, self.redirected, self.referred):
            lines.close()

    def add_file(self, number: int, path: Path) -> None:
        for page in page_records(path, has_bodies=True):
            line = _line_of(number, page) or _kept_line(page)
            if line:
                self._found.add(line)

    def keep_originals(self, path: Path) -> None:
        with suppress(CorruptionError):
            for page in page_records(path):
                line = _kept_line(page)
                if line:
                    self._found.add(line)

    def find_copies(self) -> None:
        records = (_FoundRecord(*line[:-1].split(b" ", 8)) for line in self._found)
        for _, group in groupby(records, lambda found: found.digest):
            self._find_in_group(group)

    def _find_in_group(self, group: Iterator[_FoundRecord]) -> None:
        kept = set()
        first: _FoundRecord | None = next(group)
        while first is not None and first.kind == _KEPT:
            kept.add(first.record_id)
            first = next(group, None)
        if first is None or first.kind != _RESPONSE:
            return
        waiting = SortedLines(self._directory)
        waiting.add(b"%s %s\n" % (first.record_id, _KEPT))
        try:
            for found in group:
                if found.kind == _RESPONSE and found.body != first.body:
                    return
                waiting.add(b"%s %s\n" % (found.record_id, _KEPT))
                if found.original != first.record_id and (found.kind != _RESPONSE or found.record_id not in kept):
                    waiting.add(b"%s %s %s" % (found.original, found.kind, _change_line(found, first)))
            there = b""
            for line in waiting:
                record_id, kind, *change = line.split(b" ", 2)
                if not change:
                    there = record_id
                elif record_id == there:
                    (self.referred if kind == _RESPONSE else self.redirected).add(change[0])
        finally:
            waiting.close()


def by_file(lines: Iterable[bytes]) -> Iterator[tuple[int, Iterator[NewReference]]]:
    """Yield each file's number and its changes in order of offset; use them up before the next file."""
    for number, group in groupby(lines, lambda line: line.partition(b" ")[0]):
        yield int(number), map(_reference_of, group)


def _line_of(number: int, page: PageRecord) -> bytes:
    fields = page.fields
    digest = fields.get(b"warc-payload-digest", b"")
    target, date = fields[b"warc-target-uri"].strip(b"<>"), fields.get(b"warc-date", b"")
    record_id = fields.get(b"warc-record-id", b"")
    is_copy = page.kind == b"revisit"
    if is_copy:
        body, original = b"-", fields.get(b"warc-refers-to", b"")
        is_wanted = fields.get(b"warc-profile") == SAME_PAYLOAD
    else:
        body, original = page.body.hex().encode(), record_id
        is_wanted = page.status > 0 and page.body_bytes >= COPY_BYTES_MIN and b"warc-truncated" not in fields
        is_wanted = is_wanted and len(target) <= URL_CHARS_MAX
    words = (digest.removeprefix(_DIGEST), date, record_id, original)
    if not is_wanted or not digest.startswith(_DIGEST) or any(not word or b" " in word for word in words):
        return b""
    kind = _REVISIT if is_copy else _RESPONSE
    place = b"%s %s %s %08d %015d" % (words[0], kind, date, number, page.offset)
    return b"%s %s %s %s %s\n" % (place, body, record_id, original, target)


def _kept_line(page: PageRecord) -> bytes:
    digest, record_id = (page.fields.get(name, b"") for name in (b"warc-payload-digest", b"warc-refers-to"))
    words = (digest.removeprefix(_DIGEST), record_id)
    if page.kind != b"revisit" or not digest.startswith(_DIGEST) or any(not word or b" " in word for word in words):
        return b""
    return b"%s %s - - - - %s - -\n" % (words[0], _KEPT, record_id)


def _change_line(found: _FoundRecord, first: _FoundRecord) -> bytes:
    return b"%s %s %s %s %s\n" % (found.file, found.offset, first.record_id, first.date, first.target)


def _reference_of(line: bytes) -> NewReference:
    _, offset, record_id, date, target = line[:-1].split(b" ", 4)
    return NewReference(int(offset), record_id, date, target)
