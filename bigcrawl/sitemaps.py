"""Reads the URLs of a sitemap, in slices and without a tree, at a cost linear in its bytes."""

from __future__ import annotations

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from typing import TYPE_CHECKING, Final

from bigcrawl.markup import resolved

if TYPE_CHECKING:
    from collections.abc import Iterator

SLICE_BYTES: Final = 1 << 20
LOCATION_BYTES_MAX: Final = 8 << 10  # read beyond a slice's end
EMPTY_MAX: Final = 10  # entries inspected per allowed URL

_find_root = re.compile(rb"<(?:[\w.-]++:)?+(urlset|sitemapindex)(?=[\s/>])").search
# A comment, or a location; those of an entry's images and videos are not pages.
_find_entries = re.compile(
    rb"<!--(?:[^-]++|-(?!->))*+|<(?:(?!image:|video:)[\w.-]++:)?+loc(?=[\s>])[^<>]*+>\s*+(<!\[CDATA\[)?+([^<\]]*+)"
).finditer


def is_index(body: bytes) -> bool | None:
    """Return whether it lists sitemaps; None if it is not a sitemap."""
    root = _find_root(body, 0, SLICE_BYTES)
    return None if root is None else root[1] == b"sitemapindex"


def locations(body: bytes, most: int) -> Iterator[list[str]]:
    """Yield the locations of a sitemap, unprocessed, slice by slice; a list may be empty."""
    if body.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        body = body.decode("utf-16", "replace").encode("utf-8", "replace")
    looks, at = EMPTY_MAX * most, 0
    while at < len(body) and most > 0 and looks > 0:
        end = at + SLICE_BYTES
        found: list[str] = []
        for entry in _find_entries(body, at, end + LOCATION_BYTES_MAX):
            looks -= 1
            if entry.start() >= end or not looks:
                break
            if location := _location(entry):
                found.append(location)
        at = end
        yield found[:most]
        most -= len(found)


def _location(entry: re.Match[bytes]) -> str:
    is_literal, written = entry.groups()
    if not written:
        return ""
    text = written.decode("utf-8", "replace").strip()
    return text if is_literal else resolved(text)
