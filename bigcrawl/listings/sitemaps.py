"""Reads the entries of a sitemap, in slices and without a tree, at a cost linear in its bytes."""

from __future__ import annotations

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.markup import resolved

if TYPE_CHECKING:
    from collections.abc import Iterator

SLICE_BYTES: Final = 32 << 10
"""What is read at a time: some thousand entries."""

LOCATION_BYTES_MAX: Final = 64 << 10
"""A longer location is ignored: no setting allows a longer URL. This much is read beyond a slice's end."""

UTF16_BYTES: Final = 128 << 10  # decoded at a time
HINT_BYTES_MAX: Final = 64
# What is looked at for each allowed URL, on average. What a site writes for one of its pages is a fraction of it.
LOOKS_MAX: Final = 6  # tags that matter
OPENINGS_MAX: Final = 50  # characters `<`
REFERENCES_MAX: Final = 5  # character references in locations, but for `&amp;`
_ROOT_BYTES: Final = 1 << 20
_UTF16: Final = (BOM_UTF16_LE, BOM_UTF16_BE)

_find_root = re.compile(rb"<(?:[\w.-]++:)?+(urlset|sitemapindex)(?=[\s/>])").search
# The begin of a comment, an entry or a value; those of an entry's images, videos and news are not of the page.
_find_tag = re.compile(
    rb"<(?:!--|(?:(?!image:|video:|news:)[\w.-]++:)?+(?:url|sitemap|(loc|lastmod|priority|changefreq))(?=[\s>]))"
).search
_TAG_BYTES_MAX: Final = 256
_value_at = re.compile(rb"[^<>]*+>\s*+(<!\[CDATA\[)?+([^<\]]*+)").match
_COMMENT, _COMMENT_END = b"<!--", b"-->"


class SitemapEntry(NamedTuple):
    """A location of a sitemap and what the site says of it, unprocessed; empty if it says nothing.

    Attributes:
        is_too_long: whether the location is longer than `LOCATION_BYTES_MAX`; it is empty then.
    """

    location: str = ""
    modified: str = ""
    priority: str = ""
    changefreq: str = ""
    is_too_long: bool = False


_NOTHING: Final = SitemapEntry()
_HINTS: Final = {b"lastmod": "modified", b"priority": "priority", b"changefreq": "changefreq"}


def is_index(body: bytes) -> bool | None:
    """Return whether it lists sitemaps; None if it is not a sitemap."""
    if body.startswith(_UTF16):
        body = body[:UTF16_BYTES].decode("utf-16", "replace").encode("utf-8", "replace")
    root = _find_root(body, 0, _ROOT_BYTES)
    return None if root is None else root[1] == b"sitemapindex"


def entries(body: bytes, most: int) -> Iterator[list[SitemapEntry]]:
    """Yield the entries of a sitemap, slice by slice; a list may be empty.

    Cost: linear in the bytes; a list takes some milliseconds, and 50 at worst.
    """
    if body.startswith(_UTF16):
        decoder, pieces = getincrementaldecoder("utf-16")("replace"), []
        for at in range(0, len(body), UTF16_BYTES):  # what is no UTF-16 costs a hundred times as much as text
            pieces.append(decoder.decode(body[at : at + UTF16_BYTES]).encode("utf-8", "replace"))
            yield []
        body = b"".join(pieces)
    reader = _Reader(body, most)
    while most > 0 and not reader.is_at_end:
        found = reader.read(most)
        most -= len(found)
        yield found


class _Reader:
    """Reads a sitemap slice by slice.

    Args:
        body: in an encoding that has ASCII.
        most: how many entries are wanted. The amount of text that is looked at grows with it.
    """

    def __init__(self, body: bytes, most: int) -> None:
        self._body = body
        self._looks = LOOKS_MAX * most
        self._openings = OPENINGS_MAX * most
        self._references = REFERENCES_MAX * most
        self._at = 0
        self._entry = _NOTHING  # what has begun

    @property
    def is_at_end(self) -> bool:
        """Whether nothing more is read: there is nothing, or too much has been looked at."""
        return self._at >= len(self._body) or min(self._looks, self._openings, self._references) <= 0

    def read(self, most: int) -> list[SitemapEntry]:
        """Read a slice. Return the entries that end in it, at most `most` of them."""
        found: list[SitemapEntry] = []
        end, limit = self._at + SLICE_BYTES, self._at + SLICE_BYTES + LOCATION_BYTES_MAX
        self._openings -= self._body.count(b"<", self._at, end)
        while len(found) < most and self._looks > 0:
            tag = _find_tag(self._body, self._at, end + _TAG_BYTES_MAX)
            if tag is None or tag.start() >= end:
                self._at = max(self._at, end)
                break
            self._looks -= 1
            self._at = tag.end()
            if tag[0] == _COMMENT:
                closed = self._body.find(_COMMENT_END, self._at)
                self._at = len(self._body) if closed < 0 else closed + len(_COMMENT_END)
            elif (name := tag[1]) is None:
                found += self._end_entry()
                self._entry = _NOTHING
            elif (value := _value_at(self._body, self._at, limit)) is not None:
                if name == b"loc":
                    found += self._end_entry()
                self._at = value.end()
                self._take(name, *value.groups(), is_cut=self._at == limit < len(self._body))
            if self._at >= end:
                break
        if self.is_at_end and len(found) < most:
            found += self._end_entry()
        return found

    def _take(self, name: bytes, is_literal: bytes | None, written: bytes, *, is_cut: bool) -> None:
        entry = self._entry
        if name != b"loc":
            hint: dict[str, Any] = {_HINTS[name]: _text(written[:HINT_BYTES_MAX], is_literal)}
            self._entry = entry._replace(**hint)
        elif is_cut or len(written) > LOCATION_BYTES_MAX:
            self._entry = entry._replace(location="", is_too_long=True)
        else:
            self._references -= written.count(b"&") - written.count(b"&amp;")
            self._entry = entry._replace(location=_text(written, is_literal), is_too_long=False)

    def _end_entry(self) -> list[SitemapEntry]:
        entry = self._entry
        if not entry.location and not entry.is_too_long:
            return []
        self._entry = _NOTHING
        return [entry]


def _text(written: bytes, is_literal: bytes | None) -> str:
    text = written.decode("utf-8", "replace").strip()
    return text if is_literal else resolved(text)
