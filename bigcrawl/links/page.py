"""Reads a page's links, joined and canonical, and its text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.links.detection import is_shifted
from bigcrawl.links.directives import NOFOLLOW, directives_for
from bigcrawl.links.directory import listing_base
from bigcrawl.links.embedded import ATTRIBUTES
from bigcrawl.links.encoding import Encoding, joiner_of
from bigcrawl.links.limits import IN_FORCE, NOTHING_LEFT_OUT, LeftOut
from bigcrawl.links.refresh import header_links
from bigcrawl.links.tags import LINK_ATTRIBUTES, PageTags
from bigcrawl.markup import text_within, title_within
from bigcrawl.url.canonical import LinkRoom

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bigcrawl.links.encoding import Page
    from bigcrawl.url.canonical import Joiner

TEXT_CHARS_MAX = 256 << 10
ANCHORS_MAX = 4
"""How many different texts to keep of a page's links to one URL."""
# The parser reads the base again for every oddly spelled link: 20,000 such links with a base of 8 KB took a third of a
# second. So the bytes parsed are limited to this many for each byte of a page's URLs; that is enough for a base of 800
# bytes.
_PARSED_A_LINK_BYTE = 8


class LinkBatch:
    """The base of `Links`, by which the frontier knows them without an import of that class."""

    __slots__ = ()


class PageLinks(NamedTuple):
    urls: list[str]
    nofollow: Sequence[str]
    metas: tuple[tuple[str, str], ...]
    page_canonical: str | None
    left_out: LeftOut = NOTHING_LEFT_OUT
    anchors: Sequence[str] = ()
    kinds: Sequence[str] = ()


def extract_links(page: Page, *, tags: Iterable[str] = tuple(LINK_ATTRIBUTES)) -> list[str]:
    """Return the canonical URLs that an HTML page links to and lets robots follow, as found by `read_page`.

    X-Robots-Tag headers, and meta elements addressed to one robot by name, are not considered here.
    """
    found = read_page(page, tags=tags)
    return [] if NOFOLLOW in directives_for("", (), found.metas) else found.urls


def page_text(page: Page) -> str:
    """Return the visible text of an HTML page for scorers, with its title, without repeated blanks.

    Of a long page, only the first `TEXT_CHARS_MAX` characters, including tags, are read: they show its topic.
    """
    text = Encoding(page, IN_FORCE.limits.page_bytes).text()
    return text_within(text, 0, min(len(text), TEXT_CHARS_MAX))


def read_page(page: Page, *, tags: Iterable[str] = tuple(LINK_ATTRIBUTES), with_anchors: bool = False) -> PageLinks:
    """Return the canonical URLs that an HTML page links to, in document order, each once.

    URLs linked to only with `rel=nofollow` are listed separately. Relative references are joined with the first `<base
    href>`, or with the page's URL, to which a directory listing gets its missing slash. References that lead to no page
    (fragments, mailto:, javascript:, junk) are skipped, and links beyond the limits (`PageLimits`) are dropped. The
    content of `<template>` is not part of the document; that of `<noscript>` is. The target of a `<meta
    http-equiv="refresh">` or a `Refresh` header is a link, whatever its delay.

    Args:
        page: bytes in any encoding. Byte-order mark, Content-Type and meta tags decide the encoding, also for escapes
            in queries. Empty or binary bodies have no links.
        tags: elements to read, from LINK_ATTRIBUTES; also `link`: its next, previous, alternate and canonical pages,
            and the kinds of `bigcrawl.links.embedded`: img, source, srcset, embed, object, applet, script, form and
            xlink:href. If any is named, `kinds` names each URL's element or attribute.
        with_anchors: whether to read the texts of the links, `ANCHORS_MAX` of each URL.

    Raises:
        ContractError: an element leads to no page.

    Cost: linear in the bytes of any page.
    """
    limits, tags = IN_FORCE.limits, tuple(tags)
    encoding = Encoding(page, limits.page_bytes)
    text = encoding.text()
    found = PageTags(text, tags, limits.links, with_anchors=with_anchors)
    refreshed = header_links(page) if "meta" in tags else []
    url = page.url
    if found.base_href is None and url[-1:] != "/":
        url = listing_base(url, text, found.references) or url
    joiner = joiner_of(url, found.base_href) if found.is_anything else None
    if joiner is None:
        return PageLinks(refreshed, (), tuple(found.metas), None, LeftOut(0, encoding.is_cut, found.has_more))
    room = LinkRoom(limits.url_bytes, limits.link_bytes, _PARSED_A_LINK_BYTE * limits.link_bytes)
    urls = joiner.join_all(found.references, encoding.respell, room)
    if refreshed:
        urls += [url for url in refreshed if url not in urls]
    anchors = _anchors_of(urls, found, joiner, encoding) if with_anchors else ()
    kinds = _kinds_of(urls, found, joiner, encoding) if found.kinds is not None else ()
    nofollow: Sequence[str] = ()
    if found.nofollow:
        followed = set(urls)
        nofollow = [url for url in joiner.join_all(found.nofollow, encoding.respell, room) if url not in followed]
    canonical = joiner.join_all(found.canonical_hrefs, encoding.respell, room) if found.canonical_hrefs else ()
    left_out = LeftOut(room.too_long, encoding.is_cut, found.has_more, room.is_used_up)
    return PageLinks(urls, nofollow, tuple(found.metas), canonical[0] if canonical else None, left_out, anchors, kinds)


def _joined_each(found: PageTags, at: Iterable[int], joiner: Joiner, encoding: Encoding) -> Iterator[tuple[str, int]]:
    """Yield the absolute URL of each reference at these indexes, with its index, within the page's limits."""
    limits = IN_FORCE.limits
    room = LinkRoom(limits.url_bytes, limits.link_bytes, _PARSED_A_LINK_BYTE * limits.link_bytes)
    joined: dict[str, str] = {}
    for place in at:
        reference = found.references[place]
        if reference not in joined:
            joined[reference] = next(iter(joiner.join_all((reference,), encoding.respell, room)), "")
        yield joined[reference], place


def _anchors_of(urls: Sequence[str], found: PageTags, joiner: Joiner, encoding: Encoding) -> list[str]:
    texts: dict[str, list[str]] = {url: [] for url in urls}
    anchors = {place: text for place, text in (found.anchors or {}).items() if text}
    for url, place in _joined_each(found, anchors, joiner, encoding):
        of_url = texts.get(url)
        if of_url is not None and len(of_url) < ANCHORS_MAX and anchors[place] not in of_url:
            of_url.append(anchors[place])
    return [" ".join(of_url) for of_url in texts.values()]


def _kinds_of(urls: Sequence[str], found: PageTags, joiner: Joiner, encoding: Encoding) -> list[str]:
    """Return each URL's kind: the element of the first link to it, or without a link, of what embeds it first."""
    kinds: dict[str, str] = {}
    for url, place in _joined_each(found, range(len(found.references)), joiner, encoding):
        kind = (found.kinds or {}).get(place, "a")
        if url not in kinds or (kinds[url] in ATTRIBUTES and kind not in ATTRIBUTES):
            kinds[url] = kind
    return [kinds.get(url, "meta") for url in urls]


def page_title(page: Page) -> str:
    """Return the title of an HTML page, as browsers show it; empty if it has none."""
    limits = IN_FORCE.limits
    return title_within(Encoding(page, limits.page_bytes).text(), limits.links)


def charset_of(page: Page) -> str | None:
    """Return the codec of a page's encoding; None if all of its bytes are ASCII."""
    encoding = Encoding(page, IN_FORCE.limits.page_bytes)
    return None if page.body.isascii() and not is_shifted(page.body) else encoding.name()


def decoded_start(page: Page, bytes_max: int) -> str:
    """Return the first bytes of a page as text, in the encoding that the HTML standard finds."""
    return Encoding(page, bytes_max).text()
