"""Extracts the links of a page, joined and canonical, as one batch.

    def parse(self, response):
        yield Links.from_page(response)

As Requests, a page's 60 links would cost more than fetching and parsing it; as a `Links` they cost 0.1 ms on top of the
parsing. Ordinary Requests work too, in addition or instead.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from w3lib.encoding import html_body_declared_encoding, http_content_type_encoding, read_bom

from bigcrawl.directives import NOFOLLOW, directives_for, is_directive
from bigcrawl.exceptions import ContractError, RequestNotStorableError
from bigcrawl.given import no_method, odd_name, whole_number
from bigcrawl.markup import TagEnds, anchor_text, attributes_of, text_within
from bigcrawl.markup import tags as tags_of
from bigcrawl.url.canonical import URL_MAX_BYTES, Joiner, LinkRoom, UrlError
from bigcrawl.url.refresh import refresh_target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LINK_ATTRIBUTES = {"a": "href", "area": "href", "frame": "src", "iframe": "src", "meta": "content"}
"""Elements that link to pages, with the attribute that holds the URL; for `meta`, those that refresh."""

# Also read: the base URL, directives to robots, and the page's canonical URL.
_ASIDE = ("base", "meta", "link")

# Common meta elements, skipped without reading their content; any other name may be that of a robot.
_NO_ROBOTS = frozenset(("viewport", "description", "keywords", "author", "generator", "theme-color", "referrer"))
METAS_MAX = 20
"""Limit on the meta elements with directives to robots that are kept of a page."""

# Common references that are not links to pages, skipped before joining: a data URL can be megabytes.
_is_no_page = re.compile(r"[\x00-\x20]*(?:#|javascript:|mailto:|tel:|data:|$)", re.IGNORECASE).match

_NON_ASCII = re.compile(r"[^\x00-\x7f]+")

# Bytes that are escaped in a query (WHATWG special-query percent-encode set), besides all above 0x7E.
_ESCAPED_IN_QUERY = frozenset(b" \"#<>'")
_OCTETS_IN_QUERY = [
    f"%{octet:02X}" if octet <= 0x20 or octet >= 0x7F or octet in _ESCAPED_IN_QUERY else chr(octet)
    for octet in range(256)
]

# The encodings of the web (WHATWG Encoding Standard), as names of Python codecs. A page may name any of Python's other
# codecs, of which some are not text encodings, and IDNA takes quadratic time to decode.
_WEB_ENCODINGS = frozenset(
    [
        *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic"),
        *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
        *(f"cp{page}" for page in (866, 874, 932, 949, *range(1250, 1259))),
        *("gbk", "gb18030", "big5", "big5hkscs", "euc_jp", "iso2022_jp", "shift_jis", "euc_kr", "tis-620"),
    ]
)


@dataclass(frozen=True, slots=True)
class PageLimits:
    """How much of a page is read for its links. Links beyond a limit are dropped and counted."""

    page_bytes: int = 4 << 20
    links: int = 20_000
    link_bytes: int = 2 << 20
    url_bytes: int = URL_MAX_BYTES


class LeftOut(NamedTuple):
    """What was dropped of a page: the number of URLs that are too long, and which other limits were met."""

    too_long: int = 0
    is_cut: bool = False
    has_more_links: bool = False
    has_longer_links: bool = False


NOTHING_LEFT_OUT = LeftOut()
TEXT_CHARS_MAX = 256 << 10
ANCHORS_MAX = 4
"""Different texts of the links of a page to one URL that are kept."""
_LOOKS_A_LINK = 2  # tags inspected per link allowed
# The parser may read this many bytes for each byte that the URLs of a page may have. It reads the base again for every
# oddly spelled link: 20,000 of them on a base of 8 KB took a third of a second. A base of 800 bytes is within it.
_PARSED_A_LINK_BYTE = 8
_limits = PageLimits()


def set_page_limits(limits: PageLimits) -> None:
    """Set the limits for all of this process, because a page does not know the crawl's settings."""
    global _limits  # noqa: PLW0603
    _limits = limits


class Page(Protocol):
    """A page to read links from: a Scrapy response, or any object with these attributes.

    An object with `text` instead of `body` works too.
    """

    @property
    def url(self) -> str: ...

    @property
    def body(self) -> bytes: ...

    @property
    def headers(self) -> Mapping[Any, Any]: ...


@dataclass(frozen=True, slots=True)
class Links:
    """A batch of URLs for the frontier, all fetched by GET with the same callback and priority.

    Raises:
        ContractError: an argument has the wrong type; the message says which, and what to write.
    """

    urls: Sequence[str]
    """Any collection of strings, absolute or relative to `base`. Those that are not URLs to crawl are dropped and
    counted."""

    base: str | None = None
    """The URL of the page they are on; None if all are absolute."""

    priority: int = 0
    """A whole number, as in a Request: higher is sooner."""

    callback: str | Callable[..., Any] | None = None
    """A method of the spider, or its name; None: the spider's `parse`."""

    errback: str | Callable[..., Any] | None = None
    cb_kwargs: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None

    canonical: bool = False
    """Whether each URL was returned by `bigcrawl.url.canonical.canonicalize`, which is then not called again.
    `from_page` sets it. If it is set wrongly, one page looks like several."""

    nofollow: Sequence[str] = ()
    """URLs that the page marks `rel=nofollow`, in the form of `urls`. They are dropped and counted, unless
    BIGCRAWL_NOFOLLOW says otherwise."""

    metas: tuple[tuple[str, str], ...] = ()
    """Name and content of the page's meta elements with directives to robots; see `bigcrawl.directives`."""

    page_canonical: str | None = None
    """The page's canonical URL, according to itself."""

    left_out: LeftOut = NOTHING_LEFT_OUT
    """What was dropped because of limits."""

    anchors: Sequence[str] = ()
    """The texts of the links to each of `urls`, in its order; empty unless `from_page` was asked for them."""

    def __post_init__(self) -> None:
        """Check the arguments. Cost: 0.2 us for the links of a page, 2 us for sixty URLs given by hand."""
        if type(self.urls) is not list:
            object.__setattr__(self, "urls", self._listed("urls", self.urls))
        if self.nofollow:
            object.__setattr__(self, "nofollow", self._listed("nofollow", self.nofollow))
        if type(self.priority) is not int:
            try:
                object.__setattr__(self, "priority", whole_number(self.priority))
            except ValueError as error:
                raise self._wrong("priority", str(error)) from None
        if not self.canonical:
            self._check_texts()
        if self.meta is not None or self.cb_kwargs is not None:
            self._check_values()

    @classmethod
    def from_page(
        cls, page: Page, *, tags: Iterable[str] = tuple(LINK_ATTRIBUTES), with_anchors: bool = False, **fields: Any
    ) -> Self:
        """Return the links of an HTML page; `fields` are those of this class, such as `priority`.

        `with_anchors` fills `anchors`, which costs as much again as the links.
        """
        urls, *found = read_page(page, tags=tags, with_anchors=with_anchors)
        fields |= dict(zip(PageLinks._fields[1:], found, strict=True))
        return cls(urls, canonical=True, **fields)

    def by_priority(self, priorities: Sequence[int]) -> list[Self]:
        """Return a batch for each priority, highest first; what concerns the whole page is with the first.

        Args:
            priorities: of each of `urls`, in its order.

        Raises:
            ContractError: they are more or fewer than the URLs.
        """
        if len(priorities) != len(self.urls):
            raise self._wrong("priorities", f"has {len(priorities)} for {len(self.urls)} URLs: give each one its own")
        urls_of: dict[int, list[str]] = {}
        for url, priority in zip(self.urls, priorities, strict=True):
            urls_of.setdefault(priority, []).append(url)
        batches = [
            replace(self, urls=urls, priority=priority, anchors=(), metas=(), nofollow=(), left_out=NOTHING_LEFT_OUT)
            for priority, urls in sorted(urls_of.items(), reverse=True)
        ]
        if not batches:
            return [self]
        batches[0] = replace(batches[0], metas=self.metas, nofollow=self.nofollow, left_out=self.left_out)
        return batches

    def _listed(self, name: str, urls: object) -> Sequence[str]:
        if isinstance(urls, str | bytes):
            written = f"Links([{urls!r}])" if name == "urls" else f"{name}=[{urls!r}]"
            raise self._wrong(name, f"is {urls!r}, one text: write {written}, a list of URLs")
        if not isinstance(urls, Iterable):
            raise self._wrong(name, f"is {urls!r}: it must be a list of URLs")
        return urls if isinstance(urls, list | tuple) else list(urls)

    def _check_texts(self) -> None:
        if self.base is not None and not isinstance(self.base, str):
            raise self._wrong("base", f"is {self.base!r}: it must be a str, such as response.url")
        if set(map(type, self.urls)) - {str}:
            for at, url in enumerate(self.urls):
                if not isinstance(url, str):
                    raise self._wrong(f"urls[{at}]", f"is {url!r}: it must be a str")

    def _check_values(self) -> None:
        for name, values in (("meta", self.meta), ("cb_kwargs", self.cb_kwargs)):
            if values is not None and not isinstance(values, dict):
                raise self._wrong(name, f"is {values!r}: it must be a dict")
        if (odd := odd_name(self.cb_kwargs)) is not None:
            raise self._wrong("cb_kwargs", f"has the key {odd!r}, which names no argument")
        try:
            whole_number((self.meta or {}).get("depth", 0))
        except ValueError as error:
            raise self._wrong("meta['depth']", str(error)) from None

    def _wrong(self, name: str, reason: str) -> ContractError:
        return ContractError(f"Links of {self._source}: {name} {reason}")

    @property
    def _source(self) -> str:
        """Return what identifies the batch in an error message: its page, or its first URL."""
        first = self.urls[0] if isinstance(self.urls, list | tuple) and self.urls else "(no URL)"
        return str(self.base or first)

    @property
    def callback_name(self) -> str | None:
        """Return the name of the spider's method that gets the responses; None for `parse`.

        Raises:
            RequestNotStorableError: it is a function that is not a method of a spider.
        """
        return self._method_name("callback", self.callback)

    @property
    def errback_name(self) -> str | None:
        """Return the name of the spider's method that gets the failures, or None; raises like `callback_name`."""
        return self._method_name("errback", self.errback)

    def check_methods(self, spider: object) -> None:
        """Raise RequestNotStorableError unless callback and errback are methods of the spider."""
        for path, method, name in (
            ("callback", self.callback, self.callback_name),
            ("errback", self.errback, self.errback_name),
        ):
            found = getattr(spider, name, None) if name else None
            if name and (not callable(found) or not (isinstance(method, str) or found == method)):
                raise RequestNotStorableError(self._source, path, no_method(path, method))

    def _method_name(self, key_path: str, method: str | Callable[..., Any] | None) -> str | None:
        if method is None or isinstance(method, str):
            return method
        name = getattr(method, "__name__", "")
        owner = getattr(method, "__self__", None)
        if owner is None or not name or getattr(owner, name, None) != method:
            raise RequestNotStorableError(self._source, key_path, no_method(key_path, method))
        return name


class PageLinks(NamedTuple):
    """The result of `read_page`; see the attributes of `Links`."""

    urls: list[str]
    nofollow: Sequence[str]
    metas: tuple[tuple[str, str], ...]
    page_canonical: str | None
    left_out: LeftOut = NOTHING_LEFT_OUT
    anchors: Sequence[str] = ()


def extract_links(page: Page, *, tags: Iterable[str] = tuple(LINK_ATTRIBUTES)) -> list[str]:
    """Return the canonical URLs that an HTML page links to and lets robots follow, as found by `read_page`.

    X-Robots-Tag headers, and meta elements addressed to one robot by name, are not considered here.
    """
    found = read_page(page, tags=tags)
    return [] if NOFOLLOW in directives_for("", (), found.metas) else found.urls


def page_text(page: Page) -> str:
    """Return the visible text of an HTML page, title included: what a scorer reads. Blanks are single.

    The encoding is found as for links. Of a long page only the first `TEXT_CHARS_MAX` characters, tags included, are
    read: they show what it is about.

    Cost: 0.3 ms for a page of 21 KB; 0.15 s at most, for a page of nothing but character references.
    """
    text = _Encoding(page, _limits.page_bytes).text()
    return text_within(text, 0, min(len(text), TEXT_CHARS_MAX))


def read_page(page: Page, *, tags: Iterable[str] = tuple(LINK_ATTRIBUTES), with_anchors: bool = False) -> PageLinks:
    """Return the canonical URLs that an HTML page links to, in document order, each once.

    URLs linked to only with `rel=nofollow` are listed separately. Relative references are joined with the first
    `<base href>`, or with the page's URL. References that lead to no page (fragments, mailto:, javascript:, junk) are
    skipped, and links beyond the limits (`PageLimits`) are dropped. The content of `<template>` is not part of the
    document; that of `<noscript>` is. The target of a `<meta http-equiv="refresh">` is a link, whatever its delay.

    Args:
        page: bytes in any encoding. Byte-order mark, Content-Type and meta tags decide the encoding, also for escapes
            in queries. Empty or binary bodies have no links.
        tags: elements to read, from LINK_ATTRIBUTES.
        with_anchors: whether to read the texts of the links, `ANCHORS_MAX` of each URL.

    Raises:
        ContractError: an element is not in LINK_ATTRIBUTES.

    Cost: 0.2 ms for a page of 21 KB with 60 links; linear in the bytes, whatever they are.
    """
    limits = _limits
    encoding = _Encoding(page, limits.page_bytes)
    found = _Found(encoding.text(), tuple(tags), limits.links, with_anchors=with_anchors)
    joiner = _joiner(page.url, found.base_href) if found.is_anything else None
    if joiner is None:
        return PageLinks([], (), tuple(found.metas), None, LeftOut(0, encoding.is_cut, found.has_more))
    room = LinkRoom(limits.url_bytes, limits.link_bytes, _PARSED_A_LINK_BYTE * limits.link_bytes)
    urls = joiner.join_all(found.references, encoding.respell, room)
    anchors = _anchors_of(urls, found, joiner, encoding) if with_anchors else ()
    nofollow: Sequence[str] = ()
    if found.nofollow:
        followed = set(urls)
        nofollow = [url for url in joiner.join_all(found.nofollow, encoding.respell, room) if url not in followed]
    canonical = joiner.join_all(found.canonical_hrefs, encoding.respell, room)
    left_out = LeftOut(room.too_long, encoding.is_cut, found.has_more, room.is_used_up)
    return PageLinks(urls, nofollow, tuple(found.metas), canonical[0] if canonical else None, left_out, anchors)


def _anchors_of(urls: Sequence[str], found: _Found, joiner: Joiner, encoding: _Encoding) -> list[str]:
    """Return the texts of the links to each URL. References are joined again, once each, within the limits."""
    texts: dict[str, list[str]] = {url: [] for url in urls}
    room = LinkRoom(_limits.url_bytes, _limits.link_bytes, _PARSED_A_LINK_BYTE * _limits.link_bytes)
    joined: dict[str, str] = {}
    for reference, anchor in zip(found.references, found.anchors, strict=True):
        if not anchor:
            continue
        if reference not in joined:
            joined[reference] = next(iter(joiner.join_all((reference,), encoding.respell, room)), "")
        of_url = texts.get(joined[reference])
        if of_url is not None and len(of_url) < ANCHORS_MAX and anchor not in of_url:
            of_url.append(anchor)
    return [" ".join(of_url) for of_url in texts.values()]


def decoded_start(page: Page, bytes_max: int) -> str:
    """Return the first bytes of a page as text, in the encoding that the HTML standard finds."""
    return _Encoding(page, bytes_max).text()


class _Found:
    """What the tags of a page say, unprocessed; references are never empty."""

    __slots__ = (
        "_reads_meta",
        "anchors",
        "base_href",
        "canonical_hrefs",
        "has_more",
        "metas",
        "nofollow",
        "references",
    )

    def __init__(self, text: str, tags: tuple[str, ...], links_max: int, *, with_anchors: bool = False) -> None:
        self.references: list[str] = []
        self.anchors: list[str] = []  # of each reference, if asked for
        self.nofollow: list[str] = []
        self.metas: list[tuple[str, str]] = []
        self.base_href: str | None = None
        self.canonical_hrefs: list[str] = []  # the first
        self._reads_meta = "meta" in tags
        self.has_more = False
        self._read(text, _chosen(tags), links_max, TagEnds() if with_anchors else None)

    def _read(self, text: str, chosen: frozenset[str], links_max: int, ends: TagEnds | None) -> None:
        references, room = self.references, links_max
        for name, href, written in tags_of(text, _LOOKS_A_LINK * links_max, ends):
            if name not in chosen:
                continue
            reference = href
            if href is None:
                reference = self._reference(name, attributes_of(written))
                room = links_max - len(self.nofollow)
            if reference:
                references.append(reference)
                if ends is not None:
                    self.anchors.append(anchor_text(text, ends.last) if name == "a" else "")
            if len(references) >= room:
                self.has_more = True
                break

    def _reference(self, tag: str, attributes: Mapping[str, str]) -> str | None:
        """Return a tag's reference, if robots may follow it."""
        reference = attributes.get("href") if tag == "a" else self._other(tag, attributes)
        if reference and NOFOLLOW in attributes.get("rel", "").lower().split():
            self.nofollow.append(reference)
            return None
        return reference

    @property
    def is_anything(self) -> bool:
        """Whether there are references to join."""
        return bool(self.references or self.nofollow or self.canonical_hrefs)

    def _other(self, tag: str, attributes: Mapping[str, str]) -> str | None:
        """Return the reference of an element other than `a`, if it has one; record what the others say."""
        if tag == "base":
            if self.base_href is None:
                self.base_href = attributes.get("href")
            return None
        if tag == "link":
            href = attributes.get("href")
            if href and not self.canonical_hrefs and "canonical" in attributes.get("rel", "").lower().split():
                self.canonical_hrefs.append(href)
            return None
        if tag != "meta":
            return attributes.get(LINK_ATTRIBUTES[tag])
        name, content = attributes.get("name", "").lower(), attributes.get("content", "")
        if name and name not in _NO_ROBOTS and len(self.metas) < METAS_MAX and is_directive(content):
            self.metas.append((name, content))
        is_refresh = self._reads_meta and attributes.get("http-equiv", "").lower() == "refresh"
        return refresh_target(content) if is_refresh else None


@lru_cache(64)
def _chosen(tags: tuple[str, ...]) -> frozenset[str]:
    """Return the tags to read: those of links, and those with information about the page."""
    unknown = set(tags) - LINK_ATTRIBUTES.keys()
    if unknown:
        raise ContractError(f"tags has {sorted(unknown)}; only {sorted(LINK_ATTRIBUTES)} lead to pages")
    return frozenset((*tags, *_ASIDE))


def _joiner(page_url: str, base_href: str | None) -> Joiner | None:
    """Return a function that joins a page's references; None if neither base nor page has a web URL."""
    try:
        joiner = Joiner(page_url)
    except UrlError:
        return None
    # A base that is not a web URL (data:, javascript:, junk) is ignored.
    base = None if base_href is None else joiner(base_href)
    return joiner if base is None else Joiner(base)


class _Encoding:
    """A page's encoding, determined only if something depends on it."""

    __slots__ = ("_body", "_bytes_max", "_name", "_page", "is_cut")

    def __init__(self, page: Page, bytes_max: int) -> None:
        self._page = page
        self._bytes_max = bytes_max
        body = getattr(page, "body", None) or b""
        self.is_cut = len(body) > bytes_max
        self._body = body[:bytes_max] if self.is_cut else body
        self._name: str | None = None

    def text(self) -> str:
        """Return the part of the page that is read, as text."""
        body = self._body
        if not body:
            text = str(getattr(self._page, "text", ""))
            self.is_cut = len(text) > self._bytes_max
            return text[: self._bytes_max]
        # In nearly all encodings, nearly all ASCII bytes mean themselves, except after an ESC that shifts to another
        # character set, or with a NUL that is half of a UTF-16 unit.
        if body.isascii() and b"\x1b" not in body and b"\0" not in body:
            return body.decode("ascii")
        return body.decode(self.name(), "replace")

    def name(self) -> str:
        """Return the name of the codec, in the HTML standard's order of precedence."""
        if self._name is None:
            self._name = self._find()
        return self._name

    def respell(self, reference: str) -> str | None:
        """Prepare a reference for the URL parser; None if it leads to no page."""
        if _is_no_page(reference):
            return None
        return reference if reference.isascii() or len(reference) > _limits.url_bytes else _in_encoding(reference, self)

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
                return "utf-8"  # the tag was readable as ASCII, so the page is not UTF-16
        if declared in _WEB_ENCODINGS:
            return declared
        try:
            body.decode("utf-8")
        except UnicodeDecodeError:
            return "cp1252"  # the browsers' default for pages without a declaration
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
    return "".join(map(_OCTETS_IN_QUERY.__getitem__, text.encode(encoding, _AS_REFERENCE)))


_AS_REFERENCE = "bigcrawl.reference"


def _references_for(error: UnicodeError) -> tuple[str, int]:
    """Replace characters missing in the page's encoding by escaped references, &#...;, as browsers do."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    return "".join(f"%26%23{ord(character)}%3B" for character in text), error.end


codecs.register_error(_AS_REFERENCE, _references_for)
