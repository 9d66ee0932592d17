"""Finds payloads that are stored more than once in some WARC files, with bounded memory.

All records with a payload's digest are brought together by sorting. The first response of them, by date, keeps its
body. Every other response is to refer to it, and so is every ``revisit`` of this payload that refers to another of
them. Then no record refers to one of them that has no body, and a second search finds nothing.

Files must be checked before, so that no body is dropped in favour of a damaged one. A body stays if a record refers to
it that is not to be changed, because its file is damaged or was not named. Bodies of less than `COPY_BYTES_MIN` bytes
and incomplete ones stay. So do all bodies of a SHA-1 that different bodies share: BLAKE2b of each is compared, because
anybody can publish two pages of one SHA-1. For the same reason a ``revisit`` that refers to a record in none of the
files stays as it is: the body that it means may be another one.
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
from bigcrawl.warc.rewriting import Reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from bigcrawl.page_index.page_records import PageRecord

_KEPT, _RESPONSE, _REVISIT = b"0", b"1", b"2"  # in this order
_DIGEST: Final = b"sha1:"


class _Found(NamedTuple):
    """A record of a payload; all numbers are in decimal, with leading zeros.

    Of a record that must be kept because another refers to it, only the id is known.
    """

    digest: bytes
    kind: bytes
    date: bytes
    file: bytes
    offset: bytes
    body: bytes  # its BLAKE2b; of a revisit: -
    record_id: bytes
    original: bytes  # the id of the record that has its body: of a response, its own
    target: bytes


class Copies:
    """Finds the records of each file that should become references.

    Args:
        directory: for lines that do not fit into memory.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._found = SortedLines(directory)
        self.redirected = SortedLines(directory)
        """``revisit`` records that refer to one that is to lose its body: to be changed first."""
        self.referred = SortedLines(directory)
        """Responses that are to lose their body."""

    def __repr__(self) -> str:
        return f"<Copies {self._found!r}>"

    def close(self) -> None:
        """Give up what it holds."""
        for lines in (self._found, self.redirected, self.referred):
            lines.close()

    def add_file(self, number: int, path: Path) -> None:
        """Take the records of a sound file.

        Raises:
            CorruptionError: it is damaged after all.
            OSError: it cannot be read, or there is no room.
        """
        for page in page_records(path, has_bodies=True):
            line = _line_of(number, page) or _kept_line(page)
            if line:
                self._found.add(line)

    def keep_originals(self, path: Path) -> None:
        """Keep the bodies to which the records of a file refer that will not be changed, up to its damage, if any.

        Raises:
            OSError: it cannot be read, or there is no room.
        """
        with suppress(CorruptionError):
            for page in page_records(path):
                line = _kept_line(page)
                if line:
                    self._found.add(line)

    def find(self) -> None:
        """Find what should be changed. Call it once, after the last file.

        Raises:
            OSError: there is no room.
        """
        records = (_Found(*line[:-1].split(b" ", 8)) for line in self._found)
        for _, group in groupby(records, lambda found: found.digest):
            self._look_at(group)

    def _look_at(self, group: Iterator[_Found]) -> None:
        """Look at all records of a payload: those to keep, then responses by date, then those that refer to one."""
        kept = set()
        first: _Found | None = next(group)
        while first is not None and first.kind == _KEPT:
            kept.add(first.record_id)
            first = next(group, None)
        if first is None or first.kind != _RESPONSE:
            return
        waiting = SortedLines(self._directory)  # until all bodies are known
        waiting.add(b"%s %s\n" % (first.record_id, _KEPT))
        try:
            for found in group:
                if found.kind == _RESPONSE and found.body != first.body:
                    return
                waiting.add(b"%s %s\n" % (found.record_id, _KEPT))
                if found.original != first.record_id and (found.kind != _RESPONSE or found.record_id not in kept):
                    waiting.add(b"%s %s %s" % (found.original, found.kind, _change(found, first)))
            there = b""  # the record whose referring ones come next
            for line in waiting:
                record_id, kind, *change = line.split(b" ", 2)
                if not change:
                    there = record_id
                elif record_id == there:
                    (self.referred if kind == _RESPONSE else self.redirected).add(change[0])
        finally:
            waiting.close()


def by_file(lines: Iterable[bytes]) -> Iterator[tuple[int, Iterator[Reference]]]:
    """Yield the number of each file with changes, and its changes by offset. Use each up before asking for the next."""
    for number, group in groupby(lines, lambda line: line.partition(b" ")[0]):
        yield int(number), map(_reference_of, group)


def _line_of(number: int, page: PageRecord) -> bytes:
    """Return the line of a record that may be a copy, or that has one; empty if it may not."""
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
    """Return the line of the record to which this one refers for its body; empty if it refers to none."""
    digest, record_id = (page.fields.get(name, b"") for name in (b"warc-payload-digest", b"warc-refers-to"))
    words = (digest.removeprefix(_DIGEST), record_id)
    if page.kind != b"revisit" or not digest.startswith(_DIGEST) or any(not word or b" " in word for word in words):
        return b""
    return b"%s %s - - - - %s - -\n" % (words[0], _KEPT, record_id)


def _change(found: _Found, first: _Found) -> bytes:
    return b"%s %s %s %s %s\n" % (found.file, found.offset, first.record_id, first.date, first.target)


def _reference_of(line: bytes) -> Reference:
    _, offset, record_id, date, target = line[:-1].split(b" ", 4)
    return Reference(int(offset), record_id, date, target)
