"""Reads the entries of a feed, RSS or Atom, in slices and without a tree, at a cost linear in its bytes.

The parser is expat. A feed that declares entities or attributes is not read at all, so that none can grow; names that
HTML has, such as `&nbsp;`, are resolved without a declaration. What stands before the first error of a broken feed is
read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from xml.parsers import expat

from bigcrawl.markup import attributes_of, resolved, tags

if TYPE_CHECKING:
    from collections.abc import Iterator

FEED_BYTES_MAX: Final = 4 << 20
"""What is beyond is not read."""
ELEMENTS_MAX: Final = 200_000
"""Elements and named references; what is beyond is not read."""

SLICE_BYTES: Final = 64 << 10
SILENT_SLICES_MAX: Final = 4  # within one tag; a tag of megabytes would take a second
VALUE_CHARS_MAX: Final = 8 << 10  # a longer URL is ignored
TITLE_CHARS_MAX: Final = 500
FEEDS_OF_PAGE_MAX: Final = 20
_ROOT_BYTES: Final = 64 << 10
_PAGE_CHARS: Final = 256 << 10
_LOOKS: Final = 2_000  # tags of a page

_find_root = re.compile(rb"<(?:[\w.-]++:)?+(?:rss|feed|RDF)(?=[\s/>])").search
_is_feed_type = re.compile(r"\s*application/(?:rss|atom|rdf)\+xml\s*(?:;|$)", re.IGNORECASE).match
_ITEMS: Final = frozenset(("item", "entry"))
_TEXTS: Final = {
    "link": "link",
    "guid": "guid",
    "title": "title",
    "pubDate": "published",
    "date": "published",
    "published": "published",
    "updated": "updated",
}
_OF_ITEM: Final = frozenset(("dc",))  # prefixes of values that belong to the item


class FeedEntry(NamedTuple):
    """An entry of a feed, as it is written there; empty for what it does not say."""

    url: str
    title: str = ""
    published: str = ""
    updated: str = ""


class _EnoughError(Exception):
    """Nothing more of the feed is read."""


def is_feed(body: bytes) -> bool:
    """Return whether its first tags are those of a feed."""
    return _find_root(body, 0, _ROOT_BYTES) is not None


def feeds_of_page(text: str) -> list[str]:
    """Return the references to feeds that an HTML page names by `<link rel=alternate>`, at most `FEEDS_OF_PAGE_MAX`."""
    found: list[str] = []
    for name, _, written in tags(text[:_PAGE_CHARS], _LOOKS):
        if name != "link" or len(found) == FEEDS_OF_PAGE_MAX:
            continue
        values = attributes_of(written)
        if "alternate" in values.get("rel", "").lower().split() and _is_feed_type(values.get("type", "")):
            found.append(values.get("href", ""))
    return [reference for reference in found if reference]


def entries(body: bytes, most: int) -> Iterator[list[FeedEntry]]:
    """Yield the entries of a feed that have a URL, slice by slice, at most `most` in all; a list may be empty."""
    reader, body = _Reader(), body[:FEED_BYTES_MAX]
    for at in range(0, len(body), SLICE_BYTES):
        goes_on = reader.read(body[at : at + SLICE_BYTES])
        found = reader.take_found()
        yield found[:most]
        most -= len(found)
        if most <= 0 or not goes_on:
            return


class _Reader:
    """Reads a feed slice by slice."""

    def __init__(self) -> None:
        self._found: list[FeedEntry] = []
        self._elements = self._depth = self._silent = 0
        self._item_depth = 0  # of the item that is being read; 0: none
        self._prefix = ""
        self._values: dict[str, str] = {}
        self._field = ""
        self._text: list[str] = []
        self._room = 0
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.UseForeignDTD(True)  # else a name of HTML's is an error
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add
        parser.SkippedEntityHandler = self._add_named
        parser.EntityDeclHandler = self._refuse
        parser.AttlistDeclHandler = self._refuse  # each element would be given all attributes that it declares
        self._parser = parser

    def read(self, part: bytes) -> bool:
        """Read on. Return whether there may be more."""
        self._silent += 1
        try:
            self._parser.Parse(part, False)
        except (expat.ExpatError, _EnoughError, ValueError, LookupError):  # the last two: an unknown encoding
            return False
        return self._silent < SILENT_SLICES_MAX

    def take_found(self) -> list[FeedEntry]:
        """Return the entries that have ended since the last call."""
        found, self._found = self._found, []
        return found

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        self._count_tag()
        self._depth += 1
        self._silent = 0
        prefix, _, own = name.rpartition(":")
        if not self._item_depth:
            if own in _ITEMS:
                self._item_depth, self._prefix, self._values = self._depth, prefix, {}
        elif self._depth == self._item_depth + 1 and (prefix == self._prefix or prefix in _OF_ITEM):
            self._begin_value(own, attributes)

    def _begin_value(self, own: str, attributes: dict[str, str]) -> None:
        if own == "link" and (href := attributes.get("href")) is not None:
            if attributes.get("rel", "alternate") == "alternate":
                self._values.setdefault("link", href[:VALUE_CHARS_MAX])
        elif own in _TEXTS and not (own == "guid" and attributes.get("isPermaLink", "true").lower() == "false"):
            self._field, self._text, self._room = _TEXTS[own], [], VALUE_CHARS_MAX

    def _end(self, _: str) -> None:
        if self._field and self._depth == self._item_depth + 1:
            self._values.setdefault(self._field, "".join(self._text).strip())
            self._field = ""
        elif self._depth == self._item_depth:
            self._item_depth = 0
            value = self._values.get
            if url := value("link") or value("guid"):
                title = " ".join(resolved(value("title", "")).split())[:TITLE_CHARS_MAX]
                self._found.append(
                    FeedEntry(url, title, value("published") or value("updated", ""), value("updated", ""))
                )
        self._depth -= 1

    def _add(self, text: str) -> None:
        self._silent = 0
        if self._field and self._room > 0:
            self._text.append(text[: self._room])
            self._room -= len(text)

    def _add_named(self, name: str, is_parameter: bool) -> None:
        self._count_tag()
        if not is_parameter and self._room > 0:
            self._add(resolved(f"&{name};"))

    def _count_tag(self) -> None:
        self._elements += 1
        if self._elements > ELEMENTS_MAX:
            raise _EnoughError

    def _refuse(self, *_: object) -> None:
        raise _EnoughError
