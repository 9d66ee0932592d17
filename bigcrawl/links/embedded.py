"""Reads references that count as links only on request: of embedded elements, forms, and links within pictures.

Each kind is named after an element or an attribute. Sources: HTML 4.8 (embedded content), 4.10 (forms), 4.12 (scripts),
16 (obsolete features); HTML 4.01 13.4 (applet); SVG 1.1 17.1 and MathML 3 6.4 (XLink).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ELEMENT: Final = "bigcrawl_element"
"""The key in `meta` whose value names the element or attribute that embeds the requested URL."""

PAGE_PART: Final = "bigcrawl_page_part"
"""The key in `meta` of what a page needs to be shown; its value is how many steps it is away from the page."""

SRCSET: Final = "srcset"
XLINK: Final = "xlink:href"
APPLET: Final = "applet"
ATTRIBUTES: Final[Mapping[str, Mapping[str, str]]] = {
    "img": {"img": "src", "image": "src"},
    "source": {"source": "src"},
    "embed": {"embed": "src"},
    "object": {"object": "data"},
    "script": {"script": "src"},
    "form": {"form": "action", "button": "formaction", "input": "formaction"},
    SRCSET: {"img": "srcset", "image": "srcset", "source": "srcset", "link": "imagesrcset"},
    APPLET: {"applet": "code"},
    XLINK: dict.fromkeys(
        (
            *("a", "script", "image", "use", "feimage", "tref", "textpath", "mpath", "pattern", "filter", "cursor"),
            *("lineargradient", "radialgradient", "mrow", "mi", "mn", "mo", "mtext", "maction"),
        ),
        XLINK,
    ),
}
"""For each kind of reference, the elements that have one, and the attribute that holds it."""

CANDIDATES_MAX: Final = 1_000
"""Limit on the pictures of a `srcset`, and on the archives of an applet."""

# A URL, and its descriptors up to the comma that ends them, outside of parentheses.
_match_candidate = re.compile(r"[\t\n\f\r ,]*+([^\t\n\f\r ]++)(?:(?<=,)|((?:[^,(]++|\([^)]*+\)?+)*+)(?:,|$))").match
_DESCRIPTOR_CHARS_MAX: Final = 200
_BASE_CHARS_MAX: Final = 2_048
_is_width = re.compile(r"0{0,9}[1-9]\d{0,17}w").fullmatch
_is_height = re.compile(r"0{0,9}[1-9]\d{0,17}h").fullmatch
_is_density = re.compile(r"(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?x").fullmatch


def embedded_in(
    element: str, attributes: Mapping[str, str], kinds: Iterable[str], *, is_foreign: bool
) -> Iterator[tuple[str, str]]:
    """Yield kind and reference of what an element embeds, for these `kinds`; `is_foreign` means in SVG or MathML."""
    for kind in kinds:
        value = attributes.get(ATTRIBUTES[kind].get(element, ""), "")
        if kind == SRCSET:
            yield from ((kind, url) for url in candidates_of(value))
        elif kind == APPLET and element == APPLET:
            yield from ((kind, url) for url in _programs(attributes))
        elif value and (kind != XLINK or is_foreign) and not (is_foreign and element == "image" and kind == "img"):
            yield kind, value


def candidates_of(srcset: str) -> Iterator[str]:
    """Yield the URLs in a `srcset`, except those whose descriptors browsers refuse. Source: HTML 4.8.4.2.2."""
    at = 0
    for _ in range(CANDIDATES_MAX):
        found = _match_candidate(srcset, at)  # not a search, which would begin again at each comma
        if found is None:
            break
        at = found.end()
        url, descriptors = found[1], found[2] or ""
        if found[2] is None:
            url = url.rstrip(",")
        if url and len(descriptors) <= _DESCRIPTOR_CHARS_MAX and _are_valid(descriptors.split()):
            yield url


def _are_valid(descriptors: list[str]) -> bool:
    widths, densities, heights = (
        sum(map(bool, map(matches, descriptors))) for matches in (_is_width, _is_density, _is_height)
    )
    if widths + densities + heights < len(descriptors) or max(widths, densities, heights) > 1:
        return False
    return not (widths and densities) and not (densities and heights) and widths >= heights


def _programs(attributes: Mapping[str, str]) -> Iterator[str]:
    """Yield the references to an applet's class and archives, joined with its code base."""
    base = attributes.get("codebase", "")[:_BASE_CHARS_MAX].strip()
    archives = attributes.get("archive", "").split(",", CANDIDATES_MAX)[:CANDIDATES_MAX]
    for name in map(str.strip, (attributes.get("code", ""), attributes.get("object", ""), *archives)):
        if name:
            is_whole = not base or "://" in name or name.startswith("/")
            yield name if is_whole else f"{base.rstrip('/')}/{name}"
