"""Reads the tags and texts of a page in one pass, for `detection`: linear in its characters, whatever they are."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

CHARS_MAX: Final = 256 << 10
"""How much of a page is read."""

TEXT_KEPT: Final = 2_000
VALUE_KEPT: Final = 200
INLINE_KEPT: Final = 64 << 10

_find_tag = re.compile(r"<(!--|/?[a-zA-Z][^\s/<>]*)([^<>]*)>?").search
_RAW: Final = frozenset({"script", "style", "noscript", "template", "title", "textarea", "iframe", "svg"})
_CONTAINERS: Final = frozenset({"div", "main", "section", "article", "ul", "ol", "tbody", "table", "nav", "body", "p"})
_VOID: Final = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})
# A name begins where a word does, so that a long word is read once.
_attribute = re.compile(r"""(?<![^\s"'/])([^\s"'=/]++)\s*+=\s*+(?:"([^"]*)"|'([^']*)'|([^\s"'>]++))""").findall
_BUTTONS: Final = frozenset({"a", "button", "span", "div"})


@dataclass(slots=True)
class Scan:
    """What `detection` asks about a page.

    Attributes:
        text_chars: characters of visible text, without those between words.
        text: its beginning.
        links: hrefs of `a` elements that lead to another page.
        hash_links: those that name a view of this page, such as `#/about`.
        empty: names of elements with nothing in them: ids, classes, names of custom elements.
        mounts: for each element that has an id or is a custom element, the text and links before it.
        sources: the scripts' URLs.
        inline: the scripts' texts.
        attributes: all attributes of tags in the body, as written.
    """

    text_chars: int = 0
    text: str = ""
    links: int = 0
    hash_links: int = 0
    empty: list[str] = field(default_factory=list)
    mounts: list[tuple[str, int, int]] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    modules: int = 0
    inline: str = ""
    noscript: str = ""
    attributes: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    shadow_links: bool = False


def scan(page: str) -> Scan:
    text = page[:CHARS_MAX]
    lower = text.lower()
    return _Scanner(text, lower).run() if len(lower) == len(text) else Scan()


class _Scanner:
    def __init__(self, text: str, lower: str) -> None:
        self._text = text
        self._lower = lower
        self._found = Scan()
        self._parts: list[str] = []
        self._kept = 0
        self._open = ""  # the container that was opened last, while it is empty
        self._label = ""  # the element whose text may be that of a button

    def run(self) -> Scan:
        at = 0
        while (tag := _find_tag(self._text, at)) is not None:
            self._read_text(self._text[at : tag.start()])
            name = tag[1].lower()
            if name == "!--":
                at = self._lower.find("-->", tag.start()) + 3
                if at < 3:
                    break
            elif name in _RAW:
                at = self._read_raw(name, tag[2], tag.end())
            else:
                self._read_tag(name, tag[2])
                at = tag.end()
        else:
            self._read_text(self._text[at:])
        self._found.text = " ".join(self._parts)
        return self._found

    def _read_text(self, text: str) -> None:
        words = text.split()
        if not words:
            return
        self._open = ""
        self._found.text_chars += sum(map(len, words))
        if self._label and len(text) < 60:
            self._found.labels.append(" ".join(words))
        if self._kept < TEXT_KEPT:
            joined = " ".join(words)
            self._kept += len(joined)
            self._parts.append(joined)

    def _read_raw(self, name: str, attributes: str, start: int) -> int:
        if attributes.endswith("/") and name not in ("script", "title", "textarea"):
            return start
        end = self._lower.find(f"</{name}", start)
        inside = self._text[start : end if end >= 0 else len(self._text)]
        if name == "script":
            self._read_script(dict(_pairs(attributes)), inside)
        elif name == "noscript":
            self._found.noscript += inside[:TEXT_KEPT]
        elif name == "template" and "shadowrootmode" in attributes.lower():
            self._found.shadow_links |= "<a " in inside.lower()
        elif name in ("svg", "iframe", "textarea"):
            self._open = ""
        return end if end >= 0 else len(self._text)

    def _read_script(self, attributes: dict[str, str], inside: str) -> None:
        kind = attributes.get("type", "").lower()
        if kind and "javascript" not in kind and kind not in ("module", "text/babel", "text/jsx"):
            return  # data
        self._found.modules += kind == "module"
        if "src" in attributes:
            self._found.sources.append(attributes["src"])
        elif len(self._found.inline) < INLINE_KEPT:
            self._found.inline += inside[:INLINE_KEPT] + "\n"

    def _read_tag(self, name: str, attributes: str) -> None:
        if name.startswith("/"):
            if self._open:
                self._found.empty.append(self._open)
            self._open = self._label = ""
            return
        pairs = dict(_pairs(attributes)) if attributes.strip() else {}
        self._found.attributes += [f"{key}={value[:VALUE_KEPT]}" for key, value in pairs.items()]
        if attributes.strip() and name != "html":
            self._found.attributes += [word for word in attributes.split() if "=" not in word]
        identity = pairs.get("id", "")
        if identity or "-" in name:
            self._found.mounts.append((identity or name, self._found.text_chars, self._found.links))
        self._label = name if name in _BUTTONS else ""
        if name == "a":
            self._read_link(pairs.get("href", ""))
        if name in _VOID:
            return
        is_container = name in _CONTAINERS or "-" in name
        self._open = (identity or pairs.get("class", "") or name) if is_container else ""

    def _read_link(self, href: str) -> None:
        if href.startswith(("#/", "#!")) or (href.startswith("/#") and len(href) > 2):
            self._found.hash_links += 1
        elif href and not href.startswith(("#", "javascript:")):
            self._found.links += 1


def _pairs(attributes: str) -> list[tuple[str, str]]:
    return [(name.lower(), double or single or bare) for name, double, single, bare in _attribute(attributes[:4_000])]
