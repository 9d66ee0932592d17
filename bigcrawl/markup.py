"""Reads the tags of an HTML page that matter for links, in one pass and without a tree.

A parser that builds a tree can be made slow: each tag searches the open elements, and an unclosed formatting element
is recreated in every following paragraph. 24 KB of `<b 1><b 2>...<p>x<p>x` become millions of elements. Links need no
tree.
Like the HTML standard's tokenizer, this module recognises comments, quoted values, and the text of elements such as
`<script>`, which contains no tags. It also skips the content of `<template>`, which is not part of the document. The
cost is linear in the bytes of the page.

Rules for editing: each expression is possessive, and consumes what it has begun, if need be to the end of the page. An
expression that could fail after reading ahead would be tried again at the next byte, at quadratic cost.

In a broken page, a tree would drop a few tags (a `<frame>` outside a frameset) and move others; here they come in the
order in which they are written.
"""

from __future__ import annotations

import re
from html import unescape
from html.entities import html5
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLANK: Final = "\t\n\f\r "
_NAME_ENDS: Final = rf"(?=[{_BLANK}/>])"
_IS: Final = rf"[{_BLANK}]*+=[{_BLANK}]*+"
_VALUE: Final = rf"\"[^\"]*+\"?+|'[^']*+'?+|[^{_BLANK}>\"'][^{_BLANK}>]*+"
_ATTRIBUTES: Final = rf"(?:[{_BLANK}/]++|[^{_BLANK}/>][^{_BLANK}/>=]*+(?:{_IS}(?:{_VALUE})?+)?+)*+"
# The attributes of most tags, in a third of the time: quotes follow an equals sign and contain no `>`.
_PLAIN: Final = r"[^>\"'=]*+(?:=\"[^\">]*+\"[^>\"'=]*+)*+(?=>)"


def _in_any_case(expression: str) -> str:
    """Make the ASCII letters of an expression, and no others, match in upper and lower case."""
    return re.sub("[a-z]", lambda letter: f"[{letter[0]}{letter[0].upper()}]", expression)


# Grouped by first letter, so that most tags are decided by one lookup.
_LINKING: Final = _in_any_case("a(?:rea)?+|base|frame|link|meta|template")
_RAW: Final = ("script", "style", "textarea", "title", "iframe", "noframes", "noembed", "xmp")
"""Elements whose text contains no tags."""
_RAW_STARTS: Final = _in_any_case("iframe|no(?:frames|embed)|s(?:cript|tyle)|t(?:extarea|itle)|xmp")
_PLAINTEXT: Final = _in_any_case("plaintext")

_SKIPPED: Final = "|".join(
    (
        r"/[a-su-zA-SU-Z][^>\"'=]*+>",
        rf"(?!(?:{_LINKING}|{_RAW_STARTS}|{_PLAINTEXT}){_NAME_ENDS})[a-zA-Z]{_PLAIN}>",
        rf"(?!(?:/?+(?:{_LINKING})|{_RAW_STARTS}|{_PLAINTEXT}){_NAME_ENDS})/?+[a-zA-Z][^{_BLANK}/>]*+{_ATTRIBUTES}>?+",
        r"!--(?:-?+>|(?:[^-]++|-(?!-!?>))*+(?:--!?>)?+)",
        r"(?:[!?]|/(?![a-zA-Z]))[^>]*+>?+",
        r"(?![a-zA-Z/!?])(?:[^<]*+<(?![a-zA-Z/!?]))*+",
    )
)
# Finds the reference of most links at once: all attributes are plain, no skipped one is a reference, and `rel` does not
# say nofollow.
_HREF: Final = _in_any_case("href")
_REL: Final = _in_any_case("rel")
_HARMLESS: Final = r"=\"(?:[^\">&nN]++|[nN](?![oO][fF]))*+\""
_OTHER: Final = rf"[^>\"'=]*+(?:(?<![{_BLANK}])(?<!{_HREF})(?<!{_REL})=\"[^\">]*+\"|(?<=[{_BLANK}]{_REL}){_HARMLESS})"
_LINK: Final = (
    rf"[aA](?=[{_BLANK}])(?:{_OTHER})*+[^>\"'=]*+(?<=[{_BLANK}]{_HREF})=\"([^\">&]*+)\"(?:{_OTHER})*+[^>\"'=]*+>"
)
_next_tags = re.compile(
    rf"(?:[^<]*+<(?:{_SKIPPED}))*+[^<]*+(?:<(?:{_LINK}|(?P<name>/?+[a-zA-Z]++)({_PLAIN}|{_ATTRIBUTES})(>?+)))?+"
).finditer
_find_attributes = re.compile(
    rf"([^{_BLANK}/>][^{_BLANK}/>=]*+)(?:{_IS}(?:\"([^\"]*+)\"?+|'([^']*+)'?+|([^{_BLANK}>\"'][^{_BLANK}>]*+))?+)?+"
).findall
_find_end = {name: re.compile(rf"</{_in_any_case(name)}{_NAME_ENDS}").search for name in _RAW}
_find_foreign = re.compile(rf"<(/?+)(?:{_in_any_case('svg|math')}){_NAME_ENDS}").finditer
_replace_references = re.compile(r"&(?:#(?:[0-9]++|[xX][0-9a-fA-F]++);?+|([A-Za-z0-9]++)(;|(?!=)))").sub
_find_anchor_end = re.compile(rf"</?+[aA]{_NAME_ENDS}").search
# What a reader of the page does not see. Each alternative takes what it has begun, if need be to the end.
_UNSEEN = re.compile(
    rf"<!--(?:[^-]++|-(?!->))*+(?:-->)?+"
    rf"|<(?P<raw>{_in_any_case('script|style|textarea|noframes|noembed|template')}){_NAME_ENDS}"
    rf"(?:[^<]++|<(?!/(?ai:(?P=raw)){_NAME_ENDS}))*+"
    rf"|<[/a-zA-Z!?][^>]*+>?+"
).sub
ANCHOR_CHARS_MAX: Final = 1_000
"""Of a page behind the tag of a link, to look for its text in."""
_NUMBER_LONGEST: Final = 12  # of a character reference; longer ones are invalid


class TagEnds:
    """Tells where the tag ends that `tags` yielded last."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last = 0

    def find(self, text: str, start: int) -> Iterator[re.Match[str]]:
        """Find tags, and note the end of each."""
        for found in _next_tags(text, start):
            self.last = found.end()
            yield found


def tags(text: str, looks_max: int, ends: TagEnds | None = None) -> Iterator[tuple[str, str | None, str]]:
    """Yield the tags of a page that matter, in order: a, area, base, frame, iframe, link and meta.

    Each is its name in lower case, with its reference if it has no other relevant attribute, else with its unparsed
    attributes. After the given number of inspected tags, yielded or not, the page counts as ended.

    Args:
        text: the page.
        looks_max: how many tags are inspected.
        ends: notes where each tag ends; None: nobody asks.

    Cost: 0.1 ms for a page of 21 KB with 60 links; at worst 0.1 us per byte and 3 us per inspected tag.
    """
    templates, at, end = 0, 0, len(text)
    foreign = _Foreign(text)
    looks, find = iter(range(looks_max)), _next_tags if ends is None else ends.find
    while at < end:
        begun, at = at, end
        for _, found in zip(looks, find(text, begun), strict=False):
            if (href := found[1]) is not None:
                if not templates:
                    yield "a", href, ""
                continue
            _, name, attributes, is_closed = found.groups()
            if not is_closed:
                break  # the page ends, perhaps within a tag
            name = name.lower()
            if name == "template":
                templates += 1
            elif name == "/template":
                templates = max(0, templates - 1)
            elif name == "plaintext":
                break
            else:
                if not templates and (name == "iframe" or name not in _find_end):
                    yield name, None, attributes
                if name in _find_end and not (attributes.endswith("/") and foreign.reach(found.start("name"))):
                    closing = _find_end[name](text, found.end())
                    at = closing.start() if closing else end
                    break


def text_within(text: str, start: int, end: int) -> str:
    """Return the visible text of a part of a page: without tags, comments, scripts and styles; blanks are single.

    A part that begins within a tag or a comment gives some of its characters as text; its end may cut one.

    Cost: linear in the part; 0.2 ms for a page of 21 KB.
    """
    shown = _UNSEEN(" ", text[start:end])
    return " ".join(resolved(shown).split())


def anchor_text(text: str, end: int) -> str:
    """Return the text between an `<a>` that ends there and what closes it, another `<a>` at the latest.

    Only the first `ANCHOR_CHARS_MAX` characters of the page behind the tag are looked at.
    """
    part = text[end : end + ANCHOR_CHARS_MAX]
    closing = _find_anchor_end(part)
    return text_within(part, 0, closing.start() if closing else len(part))


class _Foreign:
    """Knows which positions are within SVG or MathML, where a slash closes a tag; queried in page order."""

    __slots__ = ("_depth", "_looked", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._looked = self._depth = 0

    def reach(self, at: int) -> bool:
        """Read on to a position, and return whether it is within SVG or MathML."""
        for found in _find_foreign(self._text, self._looked, at):
            self._depth = max(0, self._depth - 1) if found[1] else self._depth + 1
        self._looked = at
        return self._depth > 0


def attributes_of(written: str) -> dict[str, str]:
    """Return a tag's attributes: names in lower case, values with their character references resolved."""
    values: dict[str, str] = {}
    for name, quoted, single, bare in _find_attributes(written):
        values.setdefault(name.lower(), quoted or single or bare)
    if "&" in written:
        return {name: resolved(value) for name, value in values.items()}
    return values


def resolved(text: str) -> str:
    """Return a text with its character references resolved.

    Cost: 1 us a reference, and a twentieth of that for `&amp;`, which most are.
    """
    if "&" not in text:
        return text
    if "&amp;" not in text:
        return _replace_references(_meant, text)
    # No reference is longer than the piece that it is in: each begins with an ampersand.
    return "&".join([_replace_references(_meant, part) if "&" in part else part for part in text.split("&amp;")])


def _meant(reference: re.Match[str]) -> str:
    """Resolve a character reference in an attribute; without a semicolon it may be part of a query."""
    name, end = reference.groups()
    if name is None:
        return unescape(reference[0]) if len(reference[0]) <= _NUMBER_LONGEST else "\ufffd"
    return html5.get(name + end, reference[0])
