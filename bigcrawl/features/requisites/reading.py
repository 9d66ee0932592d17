"""Reads what a page, a style sheet or a module needs: pictures, styles, fonts, scripts and icons.

Pages in frames are links, which spiders follow. Sound, video and what running scripts load are not read.

Rules for editing: each expression is possessive, and those that read ahead and may fail stop at what could begin them
again, so that the cost is linear in the bytes.

Sources: HTML 4.2.4 (link), 4.8 (embedded content), 4.12 (scripts), 16 (obsolete features); SVG 2, 16.1; CSS Values 4,
4.5 (url); CSS Cascade 5, 2 (@import); CSS Images 4, 2.4 (image-set); ECMAScript 16.2 (modules).
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from w3lib.encoding import http_content_type_encoding

from bigcrawl.links.embedded import candidates_of
from bigcrawl.links.encoding import Encoding, joiner_of
from bigcrawl.links.limits import IN_FORCE
from bigcrawl.markup import WEB_ENCODINGS, attributes_of
from bigcrawl.scan.names import BLANK, IS, NAME_ENDS, ForeignElements, find_end, in_any_case
from bigcrawl.url.canonical import LinkRoom

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bigcrawl.links.encoding import Page

TAGS_MAX: Final = 20_000
"""How many tags of a page with something to read are read."""
REFERENCES_MAX: Final = 40_000
_PARSED_A_LINK_BYTE: Final = 8

_SOURCES: Final = {
    "img": ("src", "data-src"),
    "script": ("src",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
    "feimage": ("href", "xlink:href"),
    "video": ("poster",),
}
_SETS: Final = {
    "img": ("srcset", "data-srcset"),
    "source": ("srcset", "data-srcset"),
    "link": ("imagesrcset",),
}
_RELATIONS: Final = frozenset(
    [
        *("stylesheet", "preload", "modulepreload", "manifest", "icon", "mask-icon"),
        *("apple-touch-icon", "apple-touch-icon-precomposed"),
    ]
)
_EMBEDS: Final = {"object": "data", "embed": "src"}

_VALUE: Final = rf"\"[^\"]*+\"?+|'[^']*+'?+|[^{BLANK}>\"'][^{BLANK}>]*+"
_ATTRIBUTES: Final = rf"(?:[{BLANK}/]++|[^{BLANK}/>][^{BLANK}/>=]*+(?:{IS}(?:{_VALUE})?+)?+)*+"
_READ: Final = in_any_case("base|link|img|image|source|script|style|use|feimage|video|input|object|embed")
_RAW: Final = in_any_case("textarea|title|iframe|noframes|noembed|xmp")
# A tag with nothing to read: neither one of those elements, nor a style or background. No match goes beyond a `>`.
_OTHER: Final = rf"(?!(?:{_READ}|{_RAW}){NAME_ENDS})[a-zA-Z/]"
_BARE: Final = rf"{_OTHER}[^>\"'=]*+>"
_PLAIN: Final = rf"{_OTHER}(?:[^>\"'=sSbB]++|(?!{in_any_case('style|background')})[sSbB]|=\"[^\">]*+\")*+>"
_COMMENT: Final = r"!--(?:-?+>|(?:[^-]++|-(?!-!?>))*+(?:--!?>)?+)|[!?/][^>]*+>?+"
_TEXT: Final = r"(?![a-zA-Z/!?])(?:[^<]*+<(?![a-zA-Z/!?]))*+"
_next_tag = re.compile(
    rf"(?:[^<]*+<(?:{_BARE}|{_PLAIN}|{_COMMENT}|{_TEXT}))*+[^<]*+<([a-zA-Z][^{BLANK}/>]*+)({_ATTRIBUTES})>?+"
).match

_STRING: Final = r"\"((?:[^\"\\\n]++|\\[\s\S])*+)\"|'((?:[^'\\\n]++|\\[\s\S])*+)'"
_ESCAPE: Final = rf"\\(?:[0-9a-fA-F]{{1,6}}[{BLANK}]?+|[\s\S])"
_URL: Final = rf"{in_any_case('url')}\([{BLANK}]*+(?:{_STRING}|((?:[^\"'()\\{BLANK}]++|{_ESCAPE})++))[{BLANK}]*+\)"
_ANY_STRING: Final = r"\"(?:[^\"\\\n]++|\\[\s\S])*+\"?+|'(?:[^'\\\n]++|\\[\s\S])*+'?+"
_find_references = re.compile(
    r"/\*(?:[^*]++|\*(?!/))*+(?:\*/)?+"
    rf"|@{in_any_case('import')}[{BLANK}]*+(?:{_STRING})"
    rf"|@{in_any_case('namespace')}[^;{{]*+"
    rf"|{_URL}|{in_any_case('url')}\([^)]*+"  # and an invalid one, to its end
    rf"|{in_any_case('image-set')}\(((?:[^()\"';{{}}]++|{_ANY_STRING}|\((?:[^()\"']++|{_ANY_STRING})*+\))*+)"
    rf"|{_ANY_STRING}"
).finditer
_find_in_set = re.compile(rf"{_URL}|\((?:[^()\"']++|{_ANY_STRING})*+\)|{_STRING}").finditer
_unescape = re.compile(rf"\\(?:([0-9a-fA-F]{{1,6}})(?:\r\n|[{BLANK}])?|(\r\n|[\s\S]))").sub
_find_charset = re.compile(rb'@charset "([^"]{1,40})";').match
_MARK: Final = "\ufeff"
# Whatever follows the word is consumed: an import of something by a path, or another statement.
_find_imports = re.compile(
    r"(?:\A|[;}\n])[\t ]*+(import|export)(?![\w$.(])([^\"'`;()=]*+)(?:[\"']((?:\.{0,2}/|https?://)[^\"'\n\\]++)[\"'])?+"
).finditer


class Requisites(NamedTuple):
    """The requisites found: distinct canonical URLs in order, and whether a limit cut the list short."""

    urls: list[str]
    has_more: bool


class _Text(NamedTuple):
    """A style sheet or module in place of a page; its references are in UTF-8."""

    url: str
    text: str
    body: bytes = b""
    headers: dict[str, str] = {}  # noqa: RUF012 - empty
    encoding: str = "utf-8"


def requisites_of_page(page: Page) -> Requisites:
    """Return the requisites of an HTML page. Cost: linear in its bytes."""
    encoding = Encoding(page, IN_FORCE.limits.page_bytes)
    reader = _PageReader(encoding.text())
    return _joined(page.url, reader.base, reader.references, encoding, has_more=reader.has_more or encoding.is_cut)


def requisites_of_sheet(sheet: Page) -> Requisites:
    """Return the requisites of a style sheet: what it imports, its fonts and pictures. Cost: linear in its bytes."""
    text = _text_of(sheet, sheet.body[: IN_FORCE.limits.page_bytes])
    return _requisites_in(sheet, text, references_in(text))


def requisites_of_module(module: Page) -> Requisites:
    """Return the modules that a script (in UTF-8) imports by path. Cost: linear in its bytes."""
    text = module.body[: IN_FORCE.limits.page_bytes].decode("utf-8", "replace")
    return _requisites_in(module, text, imports_in(text))


def _requisites_in(page: Page, text: str, found: Iterator[str]) -> Requisites:
    size_max = IN_FORCE.limits.page_bytes
    references = list(islice(found, REFERENCES_MAX + 1))
    has_more = len(references) > REFERENCES_MAX or len(page.body) > size_max
    encoding = Encoding(_Text(page.url, text), size_max)
    return _joined(page.url, None, references[:REFERENCES_MAX], encoding, has_more=has_more)


def imports_in(script: str) -> Iterator[str]:
    """Yield the paths in a module's `import` and `export` declarations."""
    for found in _find_imports(script):
        word, clause, path = found.groups()
        if path and (clause.rstrip().endswith("from") or (word == "import" and not clause.strip())):
            yield path


def references_in(style: str) -> Iterator[str]:
    """Yield the unescaped references in CSS, without fragments and `data:`."""
    for found in _find_references(style):
        within = found[6]
        if within is not None:
            for one in _find_in_set(within):
                yield from _reference(one.groups())
        else:
            yield from _reference(found.groups()[:5])


def _reference(groups: tuple[str | None, ...]) -> Iterator[str]:
    reference = next(filter(None, groups), "")
    if reference and reference[0] != "#" and reference[:5].lower() != "data:":
        yield _unescape(_resolve_reference, reference) if "\\" in reference else reference


def _resolve_reference(escape: re.Match[str]) -> str:
    digits, other = escape.groups()
    if digits is None:
        return "" if other in "\r\n\f" or other == "\r\n" else other
    code = int(digits, 16)
    return chr(code) if 0 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else "\ufffd"


def _text_of(sheet: Page, body: bytes) -> str:
    """Decode a style sheet (CSS Syntax 3, 3.2), but by default as UTF-8."""
    declared = None
    if not body.startswith(b"\xef\xbb\xbf"):
        told = sheet.headers.get("Content-Type") or b""
        declared = http_content_type_encoding(told.decode("latin-1") if isinstance(told, bytes) else told)
        if declared is None and (found := _find_charset(body)):
            declared = http_content_type_encoding(f"text/css; charset={found[1].decode('latin-1')}")
    name = declared if declared in WEB_ENCODINGS and not declared.startswith("utf-16") else "utf-8"
    return body.decode(name, "replace").removeprefix(_MARK)


def _joined(url: str, base: str | None, references: list[str], encoding: Encoding, *, has_more: bool) -> Requisites:
    joiner = joiner_of(url, base)
    if joiner is None:
        return Requisites([], has_more)
    limits = IN_FORCE.limits
    room = LinkRoom(limits.url_bytes, limits.link_bytes, _PARSED_A_LINK_BYTE * limits.link_bytes)
    urls = joiner.join_all(references, encoding.respell, room)
    return Requisites([one for one in urls if one != url], has_more or room.is_used_up)


class _PageReader:
    """Reads the tags of a page."""

    def __init__(self, text: str) -> None:
        self.base: str | None = None
        self.references: list[str] = []
        self._foreign = ForeignElements(text)
        self._text = text
        self.has_more = self._read()

    def _read(self) -> bool:
        text, at = self._text, 0
        for _ in range(TAGS_MAX):
            found = _next_tag(text, at)
            if found is None:
                return False
            at = found.end()
            name, written = found[1].lower(), found[2]
            self._take(name, written)
            if name in find_end and not (written.endswith("/") and self._foreign.reach(at)):
                closing = find_end[name](text, at)
                end = closing.start() if closing else len(text)
                if name == "style":
                    self._add_style(text[at:end])
                elif name == "script":
                    self.references += islice(imports_in(text[at:end]), REFERENCES_MAX + 1)
                at = end
            if len(self.references) > REFERENCES_MAX:
                del self.references[REFERENCES_MAX:]
                break
        return True

    def _take(self, name: str, written: str) -> None:
        values = attributes_of(written)
        if name == "base":
            self.base = values.get("href") if self.base is None else self.base
        for source in _SOURCES.get(name, ()):
            self._add(values.get(source))
        for source in _SETS.get(name, ()):
            self.references += candidates_of(values.get(source, ""))
        if name == "link" and not _RELATIONS.isdisjoint(values.get("rel", "").lower().split()):
            self._add(values.get("href"))
        elif name == "input" and values.get("type", "").lower() == "image":
            self._add(values.get("src"))
        elif name in _EMBEDS and values.get("type", "").lower().startswith("image/"):
            self._add(values.get(_EMBEDS[name]))
        self._add(values.get("background"))
        if style := values.get("style"):
            self._add_style(style)

    def _add_style(self, style: str) -> None:
        self.references += islice(references_in(style), REFERENCES_MAX + 1)

    def _add(self, reference: str | None) -> None:
        if reference:
            self.references.append(reference)
