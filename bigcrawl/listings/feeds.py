"""Reads the entries of an RSS or Atom feed, and finds the feeds that a page names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.listings.elements import EntryRecord, ListReader, ListShape
from bigcrawl.listings.encodings import NO_HINTS, EncodingHints, begin_in_utf8, codec_of, in_utf8
from bigcrawl.markup import attributes_of, resolved, tags

if TYPE_CHECKING:
    from collections.abc import Generator

FEED_BYTES_MAX: Final = 4 << 20
"""How much of a feed is read."""
TAGS_MAX: Final = 200_000
NAMED_MAX: Final = 100_000  # of them entries and values
REFERENCES_MAX: Final = 200_000
URL_CHARS_MAX: Final = 8 << 10  # a longer one is ignored
TITLE_CHARS_MAX: Final = 500
FEEDS_OF_PAGE_MAX: Final = 20
_ROOT_BYTES: Final = 64 << 10
_ROOT_TAGS: Final = 1_000
_PAGE_CHARS: Final = 256 << 10
_LOOKS: Final = 2_000  # tags of a page

_is_feed_type = re.compile(r"\s*application/(?:rss|atom|rdf)\+xml\s*(?:;|$)", re.IGNORECASE).match
_TEXTS: Final = {
    b"link": "link",
    b"guid": "guid",
    b"title": "title",
    b"pubDate": "published",
    b"date": "published",
    b"published": "published",
    b"issued": "published",
    b"updated": "updated",
    b"modified": "updated",
}
_SHAPE: Final = ListShape(
    roots=frozenset((b"rss", b"feed", b"RDF")),
    entries=frozenset((b"item", b"entry")),
    values=frozenset(_TEXTS),
)
# Namespaces, or undeclared prefixes, whose dates count in any item.
_DATES: Final = re.compile(rb"dc:|http://purl\.org/dc/|a10:|atom:|http://www\.w3\.org/2005/Atom").match
_ATOM: Final = b"http://www.w3.org/2005/Atom"  # whose titles are HTML only if they say so (RFC 4287, section 3.1.1)
_HTML: Final = ("html", "text/html")
_RELATIONS: Final = "http://www.iana.org/assignments/relation/"  # RFC 4287, section 4.2.7.2


class FeedEntry(NamedTuple):
    """An entry of a feed, as written; missing values are empty. `bases` are relative, each to the one before."""

    url: str
    title: str = ""
    published: str = ""
    updated: str = ""
    bases: tuple[str, ...] = ()


def is_feed(body: bytes, hints: EncodingHints = NO_HINTS) -> bool:
    """Return whether the body's root element is that of a feed; junk may precede it."""
    reader = ListReader(begin_in_utf8(body, codec_of(body, hints), _ROOT_BYTES), _SHAPE, _ROOT_TAGS, _ROOT_TAGS, 1)
    while not reader.root and not reader.is_at_end:
        reader.read(to_root=True)
    return bool(reader.root)


def feeds_of_page(text: str) -> list[str]:
    """Return the feeds in a page's `<link rel=alternate>`, at most `FEEDS_OF_PAGE_MAX`."""
    found: list[str] = []
    for name, _, written in tags(text[:_PAGE_CHARS], _LOOKS):
        if name != "link" or len(found) == FEEDS_OF_PAGE_MAX:
            continue
        values = attributes_of(written)
        if "alternate" in values.get("rel", "").lower().split() and _is_feed_type(values.get("type", "")):
            found.append(values.get("href", ""))
    return [reference for reference in found if reference]


def feed_entries(body: bytes, most: int, hints: EncodingHints = NO_HINTS) -> Generator[list[FeedEntry], None, str]:
    """Yield a feed's entries that have a URL, slice by slice, up to `most`. Return why the rest was not read."""
    size = len(body)
    body = yield from in_utf8(body[:FEED_BYTES_MAX], codec_of(body, hints))
    reader = ListReader(body, _SHAPE, TAGS_MAX, NAMED_MAX, REFERENCES_MAX)
    while most > 0 and not reader.is_at_end:
        found = [entry for record in reader.read() if (entry := _parse_entry(record))]
        yield found[:most]
        most -= len(found)
    if reader.limit or size > FEED_BYTES_MAX:
        return reader.limit or "bytes"
    return "entries" if most < 0 or not reader.is_at_end else ""


def _parse_entry(record: EntryRecord) -> FeedEntry | None:
    """Return a feed's record as an entry; None if it has no URL. Elements of other namespaces are ignored."""
    said: dict[str, str] = {}
    bases: dict[str, tuple[str, ...]] = {}
    for value in record.values:
        field = _TEXTS[value.name]
        if value.space != record.space and not (field in ("published", "updated") and _DATES(value.space)):
            continue
        text = value.text.strip()
        if field == "link" and (href := value.attributes().get("href")) is not None:
            if value.attributes().get("rel", "alternate").removeprefix(_RELATIONS) != "alternate":
                continue
            text = href.strip()
        elif value.name == b"guid" and value.attributes().get("ispermalink", "true").lower() == "false":
            continue
        elif field == "title" and (record.space != _ATOM or value.attributes().get("type") in _HTML):
            text = resolved(text)
        if text and (field not in ("link", "guid") or len(text) <= URL_CHARS_MAX):
            said.setdefault(field, text)
            bases.setdefault(field, value.bases)
    named = "link" if "link" in said else "guid"
    if named not in said:
        return None
    title = " ".join(said.get("title", "").split())[:TITLE_CHARS_MAX]
    published, updated = said.get("published", ""), said.get("updated", "")
    return FeedEntry(said[named], title, published or updated, updated, bases[named])
