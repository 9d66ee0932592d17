"""Finds a page's encoding, and respells its references for the URL parser."""

from __future__ import annotations

import codecs
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from w3lib.encoding import html_body_declared_encoding, http_content_type_encoding, read_bom

import bigcrawl.links.labels  # noqa: F401 - adds labels to codecs
from bigcrawl.links.detection import JAPANESE, detected, is_shifted, text_in_japanese, top_level_domain
from bigcrawl.links.limits import IN_FORCE
from bigcrawl.markup import WEB_ENCODINGS
from bigcrawl.url.canonical import Joiner, UrlError

if TYPE_CHECKING:
    from collections.abc import Mapping

# Skipped before joining: a data URL can be megabytes.
_is_no_page = re.compile(r"[\x00-\x20]*(?:#|javascript:|mailto:|tel:|data:|$)", re.IGNORECASE).match

_NON_ASCII = re.compile(r"[^\x00-\x7f]+")

# WHATWG special-query percent-encode set, besides all bytes above 0x7E.
_ESCAPED_IN_QUERY = frozenset(b" \"#<>'")
_OCTETS_IN_QUERY = [
    f"%{octet:02X}" if octet <= 0x20 or octet >= 0x7F or octet in _ESCAPED_IN_QUERY else chr(octet)
    for octet in range(256)
]


class Page(Protocol):
    """A page to read links from: a Scrapy response, or any object with these attributes.

    It may have `text` instead of `body`.
    """

    @property
    def url(self) -> str: ...

    @property
    def body(self) -> bytes: ...

    @property
    def headers(self) -> Mapping[Any, Any]: ...


class Encoding:
    __slots__ = ("_body", "_bytes_max", "_name", "_page", "is_cut")

    def __init__(self, page: Page, bytes_max: int) -> None:
        self._page = page
        self._bytes_max = bytes_max
        body = getattr(page, "body", None) or b""
        self.is_cut = len(body) > bytes_max
        self._body = body[:bytes_max] if self.is_cut else body
        self._name: str | None = None

    def text(self) -> str:
        body = self._body
        if not body:
            text = str(getattr(self._page, "text", ""))
            self.is_cut = len(text) > self._bytes_max
            return text[: self._bytes_max]
        # In nearly all encodings ASCII bytes mean themselves, except after an ESC, or beside a NUL in UTF-16.
        if body.isascii() and b"\x1b" not in body and b"\0" not in body:
            return body.decode("ascii")
        name = self.name()
        if name in JAPANESE:
            return text_in_japanese(body, name)
        return body.decode(name, "replace")

    def name(self) -> str:
        """Return the page's codec: as declared, in the HTML standard's order of precedence, or detected by content."""
        if self._name is None:
            self._name = self._find()
        return self._name

    def respell(self, reference: str) -> str | None:
        """Return a reference in the spelling that the URL parser needs; None if it leads to no page."""
        if reference[:1] == "#":  # most of these
            return None
        if "\0" in reference:  # HTML, attribute value states
            reference = reference.replace("\0", "\ufffd")
        if _is_no_page(reference):
            return None
        if reference.isascii() or len(reference) > IN_FORCE.limits.url_bytes:
            return reference
        return _in_encoding(reference, self)

    def _find(self) -> str:
        body = self._body
        if not body:
            return str(getattr(self._page, "encoding", None) or "utf-8")
        marked, _ = read_bom(body)
        if marked is not None:
            return marked
        declared = self._in_header()
        if declared not in WEB_ENCODINGS:
            declared = html_body_declared_encoding(body)
            if declared is not None and declared.startswith("utf-16"):
                return "utf-8"  # the tag was ASCII, so the page is not UTF-16
        if declared in WEB_ENCODINGS:
            return declared
        try:
            body.decode("utf-8")
        except UnicodeDecodeError:
            return "iso2022_jp" if is_shifted(body) else detected(body, top_level_domain(self._page.url))
        return "iso2022_jp" if is_shifted(body) else "utf-8"

    def _in_header(self) -> str | None:
        headers = getattr(self._page, "headers", None)
        if not headers:
            return None
        # dict.get skips Scrapy's slow normalisation of the name.
        values = dict.get(headers, b"Content-Type") if isinstance(headers, dict) else None
        return _declared_in(values[-1] if values and isinstance(values, list) else headers.get("Content-Type"))


@lru_cache(256)
def _declared_in(content_type: bytes | str | None) -> str | None:
    return http_content_type_encoding(
        content_type.decode("latin-1") if isinstance(content_type, bytes) else content_type
    )


def joiner_of(page_url: str, base_href: str | None) -> Joiner | None:
    """Return a function that joins references with the page's base, by default its URL; None if that is no web URL."""
    try:
        joiner = Joiner(page_url)
    except UrlError:
        return None
    # A base that is not a web URL is ignored.
    base = None if base_href is None else joiner(base_href)
    return joiner if base is None else Joiner(base)


def _in_encoding(reference: str, encoding: Encoding) -> str:
    before, question_mark, query = reference.partition("?")
    if not question_mark or "#" in before or query.isascii():
        return reference
    name = encoding.name()
    if name.startswith(("utf-8", "utf-16", "utf-32")):
        return reference
    query, hash_sign, fragment = query.partition("#")
    return before + "?" + _NON_ASCII.sub(lambda run: _escaped(run[0], name), query) + hash_sign + fragment


def _escaped(text: str, encoding: str) -> str:
    return "".join(map(_OCTETS_IN_QUERY.__getitem__, text.encode(encoding, _AS_REFERENCE)))


_AS_REFERENCE = "bigcrawl.reference"


def _references_for(error: UnicodeError) -> tuple[str, int]:
    """Replace characters missing from the page's encoding by escaped character references (&#...;), as browsers do."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    return "".join(f"%26%23{ord(character)}%3B" for character in text), error.end


codecs.register_error(_AS_REFERENCE, _references_for)
