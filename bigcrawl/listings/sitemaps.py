"""Reads the entries of a sitemap: XML, or plain text with a URL a line.

Elements of other namespaces, such as images, do not describe a page. Those of an undeclared prefix may be of any
namespace.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.listings.elements import SLICE_BYTES, VALUE_BYTES_MAX, ElementValue, EntryRecord, ListReader, ListShape
from bigcrawl.listings.encodings import NO_HINTS, EncodingHints, begin_in_utf8, codec_of, in_utf8

if TYPE_CHECKING:
    from collections.abc import Generator

LOCATION_BYTES_MAX: Final = VALUE_BYTES_MAX
HINT_CHARS_MAX: Final = 64
# Limits for each allowed URL, on average; a site uses a fraction of them.
TAGS_MAX: Final = 12  # without those of irrelevant elements
NAMED_MAX: Final = 6  # of them entries and values
REFERENCES_MAX: Final = 5  # character references in locations, except `&amp;`
ALTERNATES_MAX: Final = 500
_ROOT_BYTES: Final = 1 << 20
_ROOT_TAGS: Final = 1_000

_OWN: Final = b"/schemas/sitemap/"
_OTHERS: Final = frozenset((b"image:", b"video:", b"news:", b"xhtml:"))  # if they are not declared
_XHTML: Final = frozenset((b"http://www.w3.org/1999/xhtml", b"https://www.w3.org/1999/xhtml", b"xhtml:"))
_HINTS: Final = (b"lastmod", b"priority", b"changefreq")
_INDEX: Final = b"sitemapindex"
_SHAPE: Final = ListShape(
    roots=frozenset((b"urlset", _INDEX)),
    entries=frozenset((b"url", b"sitemap")),
    values=frozenset((b"loc", *_HINTS)),
    first=b"loc",
    is_text=frozenset((b"sitemap",)),
)
_WITH_LINKS: Final = _SHAPE._replace(values=_SHAPE.values | {b"link"})
_is_list = re.compile(rb"(?:\xef\xbb\xbf)?+(?:\s++|#[^\r\n]*+)*+(?i:https?+://)[^\s<>]++[ \t]*+(?:[\r\n]|\Z)").match
_find_urls = re.compile(rb"(?<![^\r\n\xbf])[ \t]*+((?i:https?+://)[^\r\n]*+)").finditer


class SitemapEntry(NamedTuple):
    """A location in a sitemap, with the site's claims as written, or empty.

    Attributes:
        is_too_long: whether the location is longer than `LOCATION_BYTES_MAX`; then it is left empty.
        alternates: the same page in other languages, if asked for.
    """

    location: str = ""
    modified: str = ""
    priority: str = ""
    changefreq: str = ""
    is_too_long: bool = False
    alternates: tuple[str, ...] = ()


def is_index(body: bytes, hints: EncodingHints = NO_HINTS) -> bool | None:
    """Return whether a sitemap is an index; None if it is no sitemap."""
    begin = begin_in_utf8(body, codec_of(body, hints), _ROOT_BYTES)
    reader = ListReader(begin, _SHAPE, _ROOT_TAGS, _ROOT_TAGS, 1)
    while not reader.root and not reader.is_at_end:
        reader.read(to_root=True)
    return reader.root == _INDEX if reader.root else None


def sitemap_entries(
    body: bytes, most: int, hints: EncodingHints = NO_HINTS, *, with_alternates: bool = False
) -> Generator[list[SitemapEntry], None, str]:
    """Yield the entries of a sitemap, slice by slice; a list may be empty. Return why the rest was not read, or "".

    Cost: linear in the bytes; a list takes some milliseconds, and 50 at worst.
    """
    body = yield from in_utf8(body, codec_of(body, hints))
    shape, named_max = (_WITH_LINKS, TAGS_MAX) if with_alternates else (_SHAPE, NAMED_MAX)
    reader = ListReader(body, shape, TAGS_MAX * most, named_max * most, REFERENCES_MAX * most)
    while most > 0 and not reader.is_at_end:
        found = [entry for record in reader.read() if (entry := _parse_entry(record, reader.space))]
        yield found[:most]
        most -= len(found)
    return reader.limit or ("entries" if most < 0 or not reader.is_at_end else "")


def is_list(body: bytes, hints: EncodingHints = NO_HINTS) -> bool:
    """Return whether the body begins like a plain-text sitemap: its first line, after any comments, is a URL."""
    return _is_list(begin_in_utf8(body, codec_of(body, hints), _ROOT_BYTES)) is not None


def text_sitemap_entries(
    body: bytes, most: int, hints: EncodingHints = NO_HINTS
) -> Generator[list[SitemapEntry], None, str]:
    """Yield the URLs of a plain-text sitemap, slice by slice; ignore other lines. Return as `sitemap_entries` does."""
    body = yield from in_utf8(body, codec_of(body, hints))
    for at in range(0, len(body), SLICE_BYTES):
        end, limit = at + SLICE_BYTES, at + SLICE_BYTES + LOCATION_BYTES_MAX
        found = []
        for line in _find_urls(body, at, limit):
            if line.start() >= end:
                break
            is_too_long = len(line[1]) > LOCATION_BYTES_MAX or line.end() == limit < len(body)
            location = "" if is_too_long else line[1].decode("utf-8", "replace").strip()
            found.append(SitemapEntry(location, is_too_long=is_too_long))
        yield found[:most]
        most -= len(found)
        if most <= 0:
            return "entries" if most < 0 or end < len(body) else ""
    return ""


def _parse_entry(record: EntryRecord, space: bytes) -> SitemapEntry | None:
    if not _is_own(record.space, space):
        return None
    said: dict[bytes, str] = {}
    alternates: list[str] = []
    is_too_long = False
    for value in record.values:
        if value.name == b"link":
            if value.space in _XHTML and len(alternates) < ALTERNATES_MAX:
                alternates += _alternate_url(value)
        elif value.space == space or _is_own(value.space, space):
            is_too_long = is_too_long or (value.is_cut and value.name == b"loc")
            said.setdefault(value.name, value.text.strip())
    location = "" if is_too_long else said.get(b"loc", "")
    if not location and not is_too_long:
        return None
    modified, priority, changefreq = (said.get(name, "")[:HINT_CHARS_MAX] for name in _HINTS)
    return SitemapEntry(location, modified, priority, changefreq, is_too_long, tuple(alternates))


def _is_own(space: bytes, of_root: bytes) -> bool:
    """Return whether a namespace is that of sitemaps or of the root, or is an undeclared, unknown prefix."""
    return space in (b"", of_root) or _OWN in space or (space.endswith(b":") and space not in _OTHERS)


def _alternate_url(link: ElementValue) -> list[str]:
    said = link.attributes()
    is_alternate = "alternate" in said.get("rel", "").lower().split() and "hreflang" in said
    reference = said.get("href", "").strip()
    return [reference] if is_alternate and 0 < len(reference) <= LOCATION_BYTES_MAX else []
