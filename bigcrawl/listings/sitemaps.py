"""Reads the entries of a sitemap, in slices and without a tree, at a cost linear in its bytes."""

from __future__ import annotations

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.markup import resolved

if TYPE_CHECKING:
    from collections.abc import Iterator

SLICE_BYTES: Final = 1 << 20
UTF16_BYTES: Final = 128 << 10  # decoded at a time
LOCATION_BYTES_MAX: Final = 8 << 10  # read beyond a slice's end
HINT_BYTES_MAX: Final = 64
LOOKS_MAX: Final = 10  # tags inspected per allowed URL
_UTF16: Final = (BOM_UTF16_LE, BOM_UTF16_BE)

_find_root = re.compile(rb"<(?:[\w.-]++:)?+(urlset|sitemapindex)(?=[\s/>])").search
# A comment, the begin of an entry, or a value; those of an entry's images, videos and news are not of the page.
_find_tags = re.compile(
    rb"<!--(?:[^-]++|-(?!->))*+|<(?:(?!image:|video:|news:)[\w.-]++:)?+(?:(?:url|sitemap)(?=[\s>])"
    rb"|(loc|lastmod|priority|changefreq)(?=[\s>])[^<>]*+>\s*+(<!\[CDATA\[)?+([^<\]]*+))"
).finditer


class SitemapEntry(NamedTuple):
    """A location of a sitemap and what the site says of it, unprocessed; empty if it says nothing."""

    location: str = ""
    modified: str = ""
    priority: str = ""
    changefreq: str = ""


_NOTHING: Final = SitemapEntry()
_FIELDS: Final = {b"loc": "location", b"lastmod": "modified", b"priority": "priority", b"changefreq": "changefreq"}


def is_index(body: bytes) -> bool | None:
    """Return whether it lists sitemaps; None if it is not a sitemap."""
    if body.startswith(_UTF16):
        body = body[:UTF16_BYTES].decode("utf-16", "replace").encode("utf-8", "replace")
    root = _find_root(body, 0, SLICE_BYTES)
    return None if root is None else root[1] == b"sitemapindex"


def entries(body: bytes, most: int) -> Iterator[list[SitemapEntry]]:
    """Yield the entries of a sitemap, slice by slice; a list may be empty.

    Cost: linear in the bytes; a list takes some milliseconds.
    """
    if body.startswith(_UTF16):
        decoder, pieces = getincrementaldecoder("utf-16")("replace"), []
        for at in range(0, len(body), UTF16_BYTES):  # what is no UTF-16 costs a hundred times as much as text
            pieces.append(decoder.decode(body[at : at + UTF16_BYTES]).encode("utf-8", "replace"))
            yield []
        body = b"".join(pieces)
    looks, at, entry = LOOKS_MAX * most, 0, _NOTHING
    while at < len(body) and most > 0 and looks > 0:
        end = at + SLICE_BYTES
        found: list[SitemapEntry] = []
        for tag in _find_tags(body, at, end + LOCATION_BYTES_MAX):
            looks -= 1
            if tag.start() >= end or not looks:
                break
            name = tag[1]
            if name is None and tag[0].startswith(b"<!--"):
                continue
            if entry.location and (name is None or name == b"loc"):
                found.append(entry)
                entry = _NOTHING
                if len(found) == most:
                    break
            entry = _NOTHING if name is None else _with_value(entry, tag)
        at = end
        if entry.location and (at >= len(body) or not looks):
            found.append(entry)
        yield found[:most]
        most -= len(found)


def _with_value(entry: SitemapEntry, tag: re.Match[bytes]) -> SitemapEntry:
    name, is_literal, written = tag.groups()
    if name != b"loc":
        written = written[:HINT_BYTES_MAX]
    text = written.decode("utf-8", "replace").strip()
    value = text if is_literal else resolved(text)
    return entry._replace(**{_FIELDS[name]: value})
