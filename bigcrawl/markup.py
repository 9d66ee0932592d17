"""Reads the tags of an HTML page that matter for links, in one pass and without a tree.

A parser that builds a tree can be made slow: each tag searches the open elements, and an unclosed formatting element is
recreated in every following paragraph. 24 KB of `<b 1><b 2>...<p>x<p>x` become millions of elements. Like the HTML
standard's tokenizer, this module recognises comments, quoted values, and the text of elements such as `<script>`, which
contains no tags. It skips `<template>`, whose content is not part of the document. The cost is linear in the bytes of
the page.

Rules for editing: each expression is possessive, and consumes what it has begun, if need be to the end of the page. An
expression that could fail after reading ahead would be tried again at the next byte, at quadratic cost.

In a broken page, a tree would drop a few tags (a `<frame>` outside a frameset) and move others; here all come in source
order.
"""

from __future__ import annotations

import re
from functools import partial
from html import unescape
from html.entities import html5
from string import ascii_lowercase
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

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

_BLANK: Final = "\t\n\f\r "
_NAME_ENDS: Final = rf"(?=[{_BLANK}/>])"
_IS: Final = rf"[{_BLANK}]*+=[{_BLANK}]*+"
_VALUE: Final = rf"\"[^\"]*+\"?+|'[^']*+'?+|[^{_BLANK}>\"'][^{_BLANK}>]*+"
_ATTRIBUTES: Final = rf"(?:[{_BLANK}/]++|[^{_BLANK}/>][^{_BLANK}/>=]*+(?:{_IS}(?:{_VALUE})?+)?+)*+"
# Fast path for the attributes of most tags: quotes follow an equals sign and contain no `>`.
_PLAIN: Final = r"[^>\"'=]*+(?:=\"[^\">]*+\"[^>\"'=]*+)*+(?=>)"


def _in_any_case(expression: str) -> str:
    """Make the ASCII letters of an expression, and no others, match in upper and lower case."""
    return re.sub("[a-z]", lambda letter: f"[{letter[0]}{letter[0].upper()}]", expression)


_LINKING: Final = "a|area|base|frame|link|meta|template"
_EMBEDDING: Final = (
    "img|image|source|embed|object|applet|form|button|input|use|feimage|tref|textpath|mpath|pattern|filter|cursor"
    "|lineargradient|radialgradient|mrow|mi|mn|mo|mtext|maction"
)
"""Elements whose references are not links to pages; read on request, like `script` and `title`."""
_RAW: Final = ("script", "style", "textarea", "title", "iframe", "noframes", "noembed", "xmp")
"""Elements whose text contains no tags."""
_RAW_STARTS: Final = _in_any_case("iframe|no(?:frames|embed)|s(?:cript|tyle)|t(?:extarea|itle)|xmp")
_PLAINTEXT: Final = _in_any_case("plaintext")

# Matches most links at once: all attributes are plain, no skipped one is a reference, and `rel` does not say nofollow.
_HREF: Final = _in_any_case("href")
_REL: Final = _in_any_case("rel")
_HARMLESS: Final = r"=\"(?:[^\">&nN]++|[nN](?![oO][fF]))*+\""
_OTHER: Final = rf"[^>\"'=]*+(?:(?<![{_BLANK}])(?<!{_HREF})(?<!{_REL})=\"[^\">]*+\"|(?<=[{_BLANK}]{_REL}){_HARMLESS})"
_LINK: Final = (
    rf"[aA](?=[{_BLANK}])(?:{_OTHER})*+[^>\"'=]*+(?<=[{_BLANK}]{_HREF})=\"([^\">&]*+)\"(?:{_OTHER})*+[^>\"'=]*+>"
)


_COMMON_FIRST: Final = "plstibanmfx"  # the first letters of those names, in the order in which they are looked at


def _other_than(names: str) -> str:
    """Return an expression for all names but these. The first letter decides most tags."""
    rests: dict[str, list[str]] = {}
    for name in names.split("|"):
        rests.setdefault(name[0], []).append(name[1:])
    free = "".join(letter for letter in ascii_lowercase if letter not in rests)
    others = [
        rf"{_in_any_case(letter)}(?!(?:{_in_any_case('|'.join(rests[letter]))}){_NAME_ENDS})"
        for letter in sorted(rests, key=_COMMON_FIRST.find)
    ]
    return "|".join((f"[{free}{free.upper()}]", *others))


def _finder(names: str) -> Callable[[str, int], Iterator[re.Match[str]]]:
    """Return a function that finds tags of these names, and skips elements whose text contains none."""
    read = _in_any_case(names)
    others = _other_than("|".join((names, *_RAW, "plaintext")))
    skipped = "|".join(
        (
            r"/[a-su-zA-SU-Z][^>\"'=]*+>",
            rf"(?:{others}){_PLAIN}>",
            rf"(?!(?:/?+(?:{read})|{_RAW_STARTS}|{_PLAINTEXT}){_NAME_ENDS})/?+[a-zA-Z][^{_BLANK}/>]*+{_ATTRIBUTES}>?+",
            r"!--(?:-?+>|(?:[^-]++|-(?!-!?>))*+(?:--!?>)?+)",
            r"(?:[!?]|/(?![a-zA-Z]))[^>]*+>?+",
            r"(?![a-zA-Z/!?])(?:[^<]*+<(?![a-zA-Z/!?]))*+",
        )
    )
    return re.compile(
        rf"(?:[^<]*+<(?:{skipped}))*+[^<]*+(?:<(?:{_LINK}|(?P<name>/?+[a-zA-Z]++)({_PLAIN}|{_ATTRIBUTES})(>?+)))?+"
    ).finditer


_next_tags = _finder(_LINKING)
_next_of_all = _finder(f"{_LINKING}|{_EMBEDDING}")
_find_attributes = re.compile(
    rf"([^{_BLANK}/>][^{_BLANK}/>=]*+)(?:{_IS}(?:\"([^\"]*+)\"?+|'([^']*+)'?+|([^{_BLANK}>\"'][^{_BLANK}>]*+))?+)?+"
).findall
_find_end = {name: re.compile(rf"</{_in_any_case(name)}{_NAME_ENDS}").search for name in _RAW}
_find_foreign = re.compile(rf"<(/?+)(?:{_in_any_case('svg|math')}){_NAME_ENDS}").finditer
_replace_references = re.compile(r"&(?:#(?:[0-9]++|[xX][0-9a-fA-F]++);?+|([A-Za-z0-9]++)(;|(?!=)))").sub
_find_whole_href = re.compile(rf"(?:^|[{_BLANK}/\"'])(?ai:href){_IS}(?:\"[^\"]*+\"|'[^']*+')").search
_find_tag_within = re.compile(r"</?[a-zA-Z]").search
_find_anchor_end = re.compile(rf"</?+[aA]{_NAME_ENDS}").search
# The invisible parts of a page. Each alternative consumes what it has begun, if need be to the end.
_UNSEEN = re.compile(
    rf"<!--(?:[^-]++|-(?!->))*+(?:-->)?+"
    rf"|<(?P<raw>{_in_any_case('script|style|textarea|noframes|noembed|template')}){_NAME_ENDS}"
    rf"(?:[^<]++|<(?!/(?ai:(?P=raw)){_NAME_ENDS}))*+"
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

    def find(
        self, finder: Callable[[str, int], Iterator[re.Match[str]]], text: str, start: int
    ) -> Iterator[re.Match[str]]:
        for found in finder(text, start):
            self.last = found.end()
            yield found


def tags(
    text: str, looks_max: int, ends: TagEnds | None = None, more: Collection[str] = ()
) -> Iterator[tuple[str, str | None, str]]:
    """Yield the tags of a page that matter, in order: a, area, base, frame, iframe, link and meta.

    Each tag is given by its name in lower case, its reference if no other attribute matters, and else its unparsed
    attributes. `more` names further tags to yield, out of `_EMBEDDING`. Reading ends after `looks_max` tags, yielded or
    not.
    """
    templates, at, end = 0, 0, len(text)
    foreign = Foreign(text)
    finder = _next_of_all if more else _next_tags
    looks, find = iter(range(looks_max)), finder if ends is None else partial(ends.find, finder)
    while at < end:
        begun, at = at, end
        for _, found in zip(looks, find(text, begun), strict=False):
            if (href := found[1]) is not None:
                if not templates:
                    yield "a", href, ""
                continue
            _, name, attributes, is_closed = found.groups()
            if not is_closed:  # the page ends, perhaps within a tag
                if name and name.lower() == "a" and not templates and (href_end := _find_whole_href(attributes)):
                    yield "a", None, attributes[: href_end.end()]
                break
            name = name.lower()
            if name == "template":
                templates += 1
            elif name == "/template":
                templates = max(0, templates - 1)
            elif name == "plaintext":
                break
            else:
                if not templates and (name == "iframe" or name not in _find_end or name in more):
                    yield name, None, attributes
                if name in _find_end and not (attributes.endswith("/") and foreign.reach(found.start("name"))):
                    closing = _find_end[name](text, found.end())
                    at = closing.start() if closing else end
                    break


def text_within(text: str, start: int, end: int) -> str:
    """Return the visible text of part of a page: without tags, comments, scripts, styles and repeated blanks.

    If the part begins within a tag or comment, some of that counts as text.
    """
    shown = _UNSEEN(" ", text[start:end])
    return " ".join(resolved(shown).split())


def anchor_text(text: str, end: int) -> str:
    """Return the text between the end of an `<a>` and its closing tag, or the next `<a>`.

    At most `ANCHOR_CHARS_MAX` characters behind the tag are read.
    """
    part = text[end : end + ANCHOR_CHARS_MAX]
    closing = _find_anchor_end(part)
    return text_within(part, 0, closing.start() if closing else len(part))


class Foreign:
    """Tracks which positions are within SVG or MathML, where a slash closes a tag; queried in page order."""

    __slots__ = ("_depth", "_looked", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._looked = self._depth = 0

    def reach(self, at: int) -> bool:
        """Advance to a position, and return whether it is within SVG or MathML."""
        for found in _find_foreign(self._text, self._looked, at):
            self._depth = max(0, self._depth - 1) if found[1] else self._depth + 1
        self._looked = at
        return self._depth > 0


def attributes_of(written: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for name, quoted, single, bare in _find_attributes(written):
        values.setdefault(name.lower(), quoted or single or bare)
    if "&" in written:
        return {name: resolved(value) for name, value in values.items()}
    return values


def anchors_of(written: str) -> list[dict[str, str]]:
    """Return the attributes of an `<a>` that lacks its `>`, and of those that begin within it.

    Browsers read them all as attributes of the first. Source: Nexplorer §3.3.2.
    """
    anchors: list[dict[str, str]] = [{}]
    for name, quoted, single, bare in _find_attributes(written[:UNCLOSED_CHARS_MAX]):
        begun = _find_tag_within(bare)
        value = quoted or single or (bare[: begun.start()] if begun else bare)
        if own := name.partition("<")[0].lower():
            anchors[-1].setdefault(own, resolved(value))
        if (bare or name).lower().endswith("<a"):
            anchors.append({})
    return anchors


def title_within(text: str, looks_max: int) -> str:
    """Return the text of a page's title, without repeated blanks; empty if there is none.

    Only its first `TITLE_CHARS_MAX` characters count. The title of an SVG picture does not.

    Source: HTML, 3.1.5 (document.title).
    """
    ends, foreign = TagEnds(), Foreign(text)
    for name, _, _ in tags(text, looks_max, ends, ("title",)):
        if name == "title" and not foreign.reach(ends.last):
            written = text[ends.last : ends.last + TITLE_CHARS_MAX]
            closing = _find_end["title"](written)
            return " ".join(resolved(written[: closing.start()] if closing else written).split())
    return ""


def resolved(text: str) -> str:
    if "&" not in text:
        return text
    if "&amp;" not in text:
        return _replace_references(_meant, text)
    # No reference is longer than its piece: each begins with an ampersand.
    return "&".join([_replace_references(_meant, part) if "&" in part else part for part in text.split("&amp;")])


def _meant(reference: re.Match[str]) -> str:
    """Resolve a character reference in an attribute; without a semicolon it may be part of a query."""
    name, end = reference.groups()
    if name is None:
        return unescape(reference[0]) if len(reference[0]) <= _NUMBER_LONGEST else "\ufffd"
    return html5.get(name + end, reference[0])
