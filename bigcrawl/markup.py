"""Reads the tags of an HTML page that matter for links, in one pass, without a tree, in linear time.

A parser that builds a tree can be made slow: 24 KB of `<b 1><b 2>...<p>x<p>x` become millions of elements. Each
expression is possessive and consumes what it has begun: one that could fail after reading ahead would cost quadratic
time. In a broken page, a tree would drop or move a few tags; here all come in source order.
"""

from __future__ import annotations

import re
from html import unescape
from html.entities import html5
from typing import TYPE_CHECKING, Final

from bigcrawl.scan import attributes, runs
from bigcrawl.scan.names import NAME_ENDS, ForeignElements, find_attributes, find_end, in_any_case

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

# The encodings of the web (WHATWG Encoding Standard), as names of Python codecs. Others are refused: some are not text
# encodings, and IDNA takes quadratic time to decode.
WEB_ENCODINGS: Final = frozenset(
    [
        *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic"),
        *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
        *(f"cp{page}" for page in (866, 874, 932, 949, *range(1250, 1259))),
        *("gbk", "gb18030", "big5", "big5hkscs", "euc_jp", "iso2022_jp", "shift_jis", "euc_kr", "tis-620"),
    ]
)

_replace_references = re.compile(r"&(?:#(?:[0-9]++|[xX][0-9a-fA-F]++);?+|([A-Za-z0-9]++)(;|(?!=)))").sub
_find_tag_within = re.compile(r"</?[a-zA-Z]").search
_find_anchor_end = re.compile(rf"</?+[aA]{NAME_ENDS}").search
# The invisible parts of a page. Each alternative consumes what it has begun, if need be to the end.
_UNSEEN = re.compile(
    rf"<!--(?:[^-]++|-(?!->))*+(?:-->)?+"
    rf"|<(?P<raw>{in_any_case('script|style|textarea|noframes|noembed|template')}){NAME_ENDS}"
    rf"(?:[^<]++|<(?!/(?ai:(?P=raw)){NAME_ENDS}))*+"
    rf"|<[/a-zA-Z!?][^>]*+>?+"
).sub
UNCLOSED_CHARS_MAX: Final = 64 << 10
"""Anchors without `>` are read up to this length; longer ones are no mistake."""
ANCHOR_CHARS_MAX: Final = 1_000
"""How much of the page behind a link's tag is searched for the link's text."""
TITLE_CHARS_MAX: Final = 4_096
_NUMBER_LONGEST: Final = 12  # of a character reference; longer ones are invalid


class TagEnds:
    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last = 0


def tags(
    text: str, looks_max: int, ends: TagEnds | None = None, more: Collection[str] = ()
) -> Iterator[tuple[str, str | None, str]]:
    """Yield the tags of a page that matter, in order: a, area, base, frame, iframe, link and meta.

    Each tag is given by its name in lower case, its reference if no other attribute matters, and else its unparsed
    attributes; `ends` has the position after it. `more` and `looks_max` are those of `bigcrawl.scan.runs`.
    """
    for hrefs, href_ends, name, written, end in runs(text, looks_max, more, ends is not None):
        for at, href in enumerate(hrefs):
            if ends is not None:
                ends.last = href_ends[at]
            yield "a", href, ""
        if name:
            if ends is not None:
                ends.last = end
            yield name, None, written


def text_within(text: str, start: int, end: int) -> str:
    """Return the visible text of part of a page: without tags, comments, scripts, styles and repeated blanks."""
    shown = _UNSEEN(" ", text[start:end])
    return " ".join(resolved(shown).split())


def anchor_text(text: str, end: int) -> str:
    """Return the text between an `<a>` and its closing tag, or the next `<a>`; `ANCHOR_CHARS_MAX` are read."""
    part = text[end : end + ANCHOR_CHARS_MAX]
    closing = _find_anchor_end(part)
    return text_within(part, 0, closing.start() if closing else len(part))


def attributes_of(written: str) -> dict[str, str]:
    values = attributes(written)
    if "&" in written:
        return {name: resolved(value) for name, value in values.items()}
    return values


def anchors_of(written: str) -> list[dict[str, str]]:
    """Return the attributes of an `<a>` that lacks its `>`, and of each `<a>` within it. Source: Nexplorer §3.3.2."""
    anchors: list[dict[str, str]] = [{}]
    for name, quoted, single, bare in find_attributes(written[:UNCLOSED_CHARS_MAX]):
        begun = _find_tag_within(bare)
        value = quoted or single or (bare[: begun.start()] if begun else bare)
        if own := name.partition("<")[0].lower():
            anchors[-1].setdefault(own, resolved(value))
        if (bare or name).lower().endswith("<a"):
            anchors.append({})
    return anchors


def title_within(text: str, looks_max: int) -> str:
    """Return a page's title, not an SVG picture's, from its first `TITLE_CHARS_MAX`; empty if there is none."""
    ends, foreign = TagEnds(), ForeignElements(text)
    for name, _, _ in tags(text, looks_max, ends, ("title",)):
        if name == "title" and not foreign.reach(ends.last):
            written = text[ends.last : ends.last + TITLE_CHARS_MAX]
            closing = find_end["title"](written)
            return " ".join(resolved(written[: closing.start()] if closing else written).split())
    return ""


def resolved(text: str) -> str:
    if "&" not in text:
        return text
    if "&amp;" not in text:
        return _replace_references(_resolve_reference, text)
    # No reference is longer than its piece: each begins with an ampersand.
    return "&".join(
        [_replace_references(_resolve_reference, part) if "&" in part else part for part in text.split("&amp;")]
    )


def _resolve_reference(reference: re.Match[str]) -> str:
    """Resolve a character reference in an attribute; without a semicolon, it may be part of a query instead."""
    name, end = reference.groups()
    if name is None:
        return unescape(reference[0]) if len(reference[0]) <= _NUMBER_LONGEST else "\ufffd"
    return html5.get(name + end, reference[0])
