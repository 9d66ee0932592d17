"""From a page to its links: parsed once, joined, canonical, and handed on as one batch.

    def parse(self, response):
        yield Links.from_page(response)

A page's 60 links as Requests would cost more than fetching and parsing it; as a `Links` they cost a
tenth of a millisecond on top of the parsing. Ordinary Requests work too, beside them or instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from selectolax.lexbor import LexborHTMLParser
from w3lib.encoding import html_body_declared_encoding, http_content_type_encoding, read_bom

from bigcrawl.directives import NOFOLLOW, is_wish, wishes
from bigcrawl.exceptions import ContractError, RequestNotStorableError
from bigcrawl.url.canonical import Joiner, UrlError
from bigcrawl.url.refresh import refresh_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

LINK_ATTRIBUTES = {"a": "href", "area": "href", "frame": "src", "iframe": "src", "meta": "content"}
"""Elements that lead to pages, and where each has its URL; of `meta`, those that refresh."""

# Read beside these: where references are joined, what is asked of robots, and how the page calls itself.
_ASIDE = ("base", "meta[name]", 'link[rel~="canonical" i]')

_SELECTORS = {"meta": 'meta[http-equiv="refresh" i]'}

# Meta elements of most pages, told apart before their content is looked at; any other may be named after a robot.
_NO_ROBOTS = frozenset(("viewport", "description", "keywords", "author", "generator", "theme-color", "referrer"))
METAS_MAX = 20
"""So many meta elements of a page that ask something of robots are kept."""

# What most often is no link to a page, told apart before it is joined: a data URL can be megabytes.
_is_no_page = re.compile(r"[\x00-\x20]*(?:#|javascript:|mailto:|tel:|data:|$)", re.IGNORECASE).match

_NON_ASCII = re.compile(r"[^\x00-\x7f]+")

# Bytes that escape in a query (WHATWG special-query percent-encode set), beside all above 0x7E.
_ESCAPED_IN_QUERY = frozenset(b" \"#<>'")

# The encodings of the web (WHATWG Encoding Standard) by the names of Python's codecs. Python has more, and
# a page may ask for any: some are no text encodings, and decoding IDNA takes quadratic time.
_WEB_ENCODINGS = frozenset(
    [
        *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic"),
        *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
        *(f"cp{page}" for page in (866, 874, 932, 949, *range(1250, 1259))),
        *("gbk", "gb18030", "big5", "big5hkscs", "euc_jp", "iso2022_jp", "shift_jis", "euc_kr", "tis-620"),
    ]
)

KEPT_FREE_BYTES = 4 << 20
"""A page's tree takes some hundred KB; those of nearly all pages fit into this."""


def _keep_freed_memory() -> None:
    """Make the C allocator keep the memory of one page's tree for the next one's.

    glibc gives freed memory at the top of the heap back to the system at once, and asks for it again
    with the next page: 80 page faults, and half of all the time that links take (0.36 ms instead of
    0.20). It learns when a large block is freed: from then on it keeps up to twice that block's size
    (mallopt(3), M_MMAP_THRESHOLD). Elsewhere this does nothing. A node has set the bound itself
    (`scheduler/garbage.py`).
    """
    bytearray(KEPT_FREE_BYTES)


_keep_freed_memory()


class Page(Protocol):
    """What links are read from: a Scrapy response, or anything with these.

    An object that only has `text` instead of `body` is read too.
    """

    @property
    def url(self) -> str: ...

    @property
    def body(self) -> bytes: ...

    @property
    def headers(self) -> Mapping[Any, Any]: ...


@dataclass(frozen=True, slots=True)
class Links:
    """A batch of URLs for the frontier, all to be fetched by GET and handled alike."""

    urls: Sequence[str]
    """Absolute, or relative to `base`; those that are no URL to crawl are counted and left out."""

    base: str | None = None
    """The URL of the page they stand on; None when all are absolute."""

    priority: int = 0
    """As of a Request: higher is sooner."""

    callback: str | Callable[..., Any] | None = None
    """A method of the spider, or its name; None is the spider's `parse`."""

    errback: str | Callable[..., Any] | None = None
    cb_kwargs: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None

    canonical: bool = False
    """Whether each URL is what `bigcrawl.url.canonical.canonicalize` returned, so that it need not be
    asked again; `from_page` sets it. Untrue, it makes one page look like several."""

    nofollow: Sequence[str] = ()
    """URLs that the page asks robots not to follow (`rel=nofollow`), as those of `urls` are: left out and
    counted, unless BIGCRAWL_NOFOLLOW says otherwise."""

    metas: tuple[tuple[str, str], ...] = ()
    """Name and content of the page's meta elements that ask something of robots; see `bigcrawl.directives`."""

    page_canonical: str | None = None
    """What the page calls its own canonical URL."""

    @classmethod
    def from_page(cls, page: Page, *, tags: Iterable[str] = tuple(LINK_ATTRIBUTES), **fields: Any) -> Self:
        """Return the links of an HTML page; `fields` are those of this class, such as `priority`."""
        urls, nofollow, metas, page_canonical = read_page(page, tags=tags)
        return cls(urls, canonical=True, nofollow=nofollow, metas=metas, page_canonical=page_canonical, **fields)

    @property
    def callback_name(self) -> str | None:
        """The name of the spider's method that gets the responses; None for `parse`.

        Raises:
            RequestNotStorableError: it is a function that no spider has as a method.
        """
        return self._method_name("callback", self.callback)

    @property
    def errback_name(self) -> str | None:
        """The name of the spider's method that gets the failures, or None; raises as `callback_name`."""
        return self._method_name("errback", self.errback)

    def _method_name(self, key_path: str, method: str | Callable[..., Any] | None) -> str | None:
        if method is None or isinstance(method, str):
            return method
        name = getattr(method, "__name__", "")
        owner = getattr(method, "__self__", None)
        if owner is None or not name or getattr(owner, name, None) != method:
            source = self.base or next(iter(self.urls), "(no URL)")
            raise RequestNotStorableError(source, key_path, f"is {method!r}: not a method of the spider")
        return name


class PageLinks(NamedTuple):
    """What `read_page` finds; see the attributes of `Links`."""

    urls: list[str]
    nofollow: Sequence[str]
    metas: tuple[tuple[str, str], ...]
    page_canonical: str | None


def extract_links(page: Page, *, tags: Iterable[str] = tuple(LINK_ATTRIBUTES)) -> list[str]:
    """Return the canonical URLs an HTML page links to and lets robots follow, as `read_page` finds them.

    What X-Robots-Tag, or a meta element for one robot by its name, asks for is not known here.
    """
    found = read_page(page, tags=tags)
    return [] if NOFOLLOW in wishes("", (), found.metas) else found.urls


def read_page(page: Page, *, tags: Iterable[str] = tuple(LINK_ATTRIBUTES)) -> PageLinks:
    """Return the canonical URLs an HTML page links to: in document order, each once.

    One that is linked to with `rel=nofollow` only is told apart. Relative references are joined with the first
    `<base href>`, or the page's URL. What leads to no page (fragments of this one, mailto:, javascript:, junk) is
    left out; the length of URLs is not looked at. The content of `<template>` is no part of the document; that of
    `<noscript>` is. Where a `<meta http-equiv="refresh">` leads is a link, whatever its delay; one without a URL is
    none.

    Args:
        page: with bytes in any encoding; byte-order mark, Content-Type and meta tags are honoured, also
            for the escapes in queries. Empty or binary bodies have no links.
        tags: elements to read, of those in LINK_ATTRIBUTES.

    Raises:
        ContractError: an element that is not in LINK_ATTRIBUTES.

    Cost: 0.15 ms for a page of 21 KB with 60 links, half of it lexbor's parser.
    """
    encoding = _Encoding(page)
    tree = LexborHTMLParser(encoding.markup())
    found = _Found(tree, tuple(tags))
    joiner = _joiner(page.url, found.base_href) if found.is_anything else None
    if joiner is None:
        return PageLinks([], (), tuple(found.metas), None)
    urls = joiner.join_all(found.references, encoding.respell)
    nofollow: Sequence[str] = ()
    if found.nofollow:
        followed = set(urls)
        nofollow = [url for url in joiner.join_all(found.nofollow, encoding.respell) if url not in followed]
    href = found.canonical_href
    return PageLinks(urls, nofollow, tuple(found.metas), None if href is None else joiner(href))


class _Found:
    """What the elements of a page say, as it is written; references are never empty."""

    __slots__ = ("_reads_meta", "base_href", "canonical_href", "metas", "nofollow", "references")

    def __init__(self, tree: LexborHTMLParser, tags: tuple[str, ...]) -> None:
        self.references: list[str] = []
        self.nofollow: list[str] = []
        self.metas: list[tuple[str, str]] = []
        self.base_href: str | None = None
        self.canonical_href: str | None = None
        self._reads_meta = "meta" in tags
        for node in tree.css(_selector(tags)):
            # One dictionary costs less than two questions to the tree.
            attributes = node.attributes
            reference = attributes.get("href") if node.tag == "a" else self._other(node.tag or "", attributes)
            if reference:
                rel = attributes.get("rel")
                if rel and NOFOLLOW in rel.lower().split():
                    self.nofollow.append(reference)
                else:
                    self.references.append(reference)

    @property
    def is_anything(self) -> bool:
        """Whether there is anything to join."""
        return bool(self.references or self.nofollow or self.canonical_href)

    def _other(self, tag: str, attributes: Mapping[str, str | None]) -> str | None:
        """What an element that is no `a` refers to, if anything; the others' words are kept."""
        if tag == "base":
            if self.base_href is None:
                self.base_href = attributes.get("href")
            return None
        if tag == "link":
            self.canonical_href = self.canonical_href or attributes.get("href")
            return None
        if tag != "meta":
            return attributes.get(LINK_ATTRIBUTES[tag])
        name, content = (attributes.get("name") or "").lower(), attributes.get("content") or ""
        if name and name not in _NO_ROBOTS and is_wish(content) and len(self.metas) < METAS_MAX:
            self.metas.append((name, content))
        is_refresh = self._reads_meta and (attributes.get("http-equiv") or "").lower() == "refresh"
        return refresh_target(content) if is_refresh else None


@lru_cache(64)
def _selector(tags: tuple[str, ...]) -> str:
    unknown = set(tags) - LINK_ATTRIBUTES.keys()
    if unknown:
        raise ContractError(f"tags has {sorted(unknown)}; only {sorted(LINK_ATTRIBUTES)} lead to pages")
    return ",".join((*(_SELECTORS.get(tag, tag) for tag in tags), *_ASIDE))


def _joiner(page_url: str, base_href: str | None) -> Joiner | None:
    """Return what joins a page's references; None when neither base nor page has a web URL."""
    try:
        joiner = Joiner(page_url)
    except UrlError:
        return None
    # A base that is no web URL (data:, javascript:, junk) counts as none.
    base = None if base_href is None else joiner(base_href)
    return joiner if base is None else Joiner(base)


class _Encoding:
    """A page's encoding, found out only when something depends on it."""

    __slots__ = ("_body", "_name", "_page")

    def __init__(self, page: Page) -> None:
        self._page = page
        self._body = getattr(page, "body", None) or b""
        self._name: str | None = None

    def markup(self) -> str | bytes:
        """Return what the parser is given: UTF-8 bytes, or text."""
        body = self._body
        if not body:
            return str(getattr(self._page, "text", ""))
        # Nearly all ASCII bytes mean themselves in nearly all encodings; not where an ESC shifts to
        # another character set, or a NUL is one half of a UTF-16 unit.
        if body.isascii() and b"\x1b" not in body and b"\0" not in body:
            return body
        name = self.name()
        return body if name == "utf-8" else body.decode(name, "replace")

    def name(self) -> str:
        """Return the name of the codec, by the HTML standard's order of precedence."""
        if self._name is None:
            self._name = self._find()
        return self._name

    def respell(self, reference: str) -> str | None:
        """Return a reference as the parser of URLs is to get it; None for what leads to no page."""
        if _is_no_page(reference):
            return None
        return reference if reference.isascii() else _in_encoding(reference, self)

    def _find(self) -> str:
        body = self._body
        if not body:
            return str(getattr(self._page, "encoding", None) or "utf-8")
        marked, _ = read_bom(body)
        if marked is not None:
            return marked
        declared = self._in_header()
        if declared not in _WEB_ENCODINGS:
            declared = html_body_declared_encoding(body)
            if declared is not None and declared.startswith("utf-16"):
                return "utf-8"  # the tag was read as ASCII, so that is not what it is
        if declared in _WEB_ENCODINGS:
            return declared
        try:
            body.decode("utf-8")
        except UnicodeDecodeError:
            return "cp1252"  # what browsers take a page for that says nothing
        return "utf-8"

    def _in_header(self) -> str | None:
        headers = getattr(self._page, "headers", None)
        value = headers.get("Content-Type") if headers else None
        return http_content_type_encoding(value.decode("latin-1") if isinstance(value, bytes) else value)


def _in_encoding(reference: str, encoding: _Encoding) -> str:
    """Escape the query of a reference in the page's encoding, as browsers do; paths are always UTF-8."""
    before, question_mark, query = reference.partition("?")
    if not question_mark or "#" in before or query.isascii():
        return reference
    name = encoding.name()
    if name.startswith(("utf-8", "utf-16", "utf-32")):
        return reference
    query, hash_sign, fragment = query.partition("#")
    return before + "?" + _NON_ASCII.sub(lambda run: _escaped(run[0], name), query) + hash_sign + fragment


def _escaped(text: str, encoding: str) -> str:
    try:
        encoded = text.encode(encoding)
    except UnicodeEncodeError:
        if len(text) > 1:
            return "".join(_escaped(character, encoding) for character in text)
        return f"%26%23{ord(text)}%3B"  # the character reference &#...;, escaped
    return "".join(
        f"%{byte:02X}" if byte <= 0x20 or byte >= 0x7F or byte in _ESCAPED_IN_QUERY else chr(byte) for byte in encoded
    )
