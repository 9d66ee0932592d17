"""Reads tags, joins plain references, and remembers links, in Python. `compiled.c` does the same.

The cost is linear in the bytes of the page. Rules for editing: each expression is possessive, and consumes what it has
begun, if need be to the end of the page. An expression that could fail after reading ahead would be tried again at the
next byte, at quadratic cost.
"""

from __future__ import annotations

import re
from string import ascii_lowercase
from typing import TYPE_CHECKING, Final

from bigcrawl.scan.names import (
    BLANK,
    EMBEDDING,
    IS,
    LINKING,
    NAME_ENDS,
    RAW,
    ForeignElements,
    find_attributes,
    find_end,
    in_any_case,
)
from bigcrawl.scan.plain import match_plain, put_together

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from bigcrawl.scan.plain import Base

_VALUE: Final = rf"\"[^\"]*+\"?+|'[^']*+'?+|[^{BLANK}>\"'][^{BLANK}>]*+"
_ATTRIBUTES: Final = rf"(?:[{BLANK}/]++|[^{BLANK}/>][^{BLANK}/>=]*+(?:{IS}(?:{_VALUE})?+)?+)*+"
# Fast path for the attributes of most tags: quotes follow an equals sign and contain no `>`.
_PLAIN: Final = r"[^>\"'=]*+(?:=\"[^\">]*+\"[^>\"'=]*+)*+(?=>)"
_RAW_STARTS: Final = in_any_case("iframe|no(?:frames|embed)|s(?:cript|tyle)|t(?:extarea|itle)|xmp")
_PLAINTEXT: Final = in_any_case("plaintext")

# Matches most links at once: all attributes are plain, no skipped one is a reference, and `rel` does not say nofollow.
_HREF: Final = in_any_case("href")
_REL: Final = in_any_case("rel")
_HARMLESS: Final = r"=\"(?:[^\">&nN]++|[nN](?![oO][fF]))*+\""
_OTHER: Final = rf"[^>\"'=]*+(?:(?<![{BLANK}])(?<!{_HREF})(?<!{_REL})=\"[^\">]*+\"|(?<=[{BLANK}]{_REL}){_HARMLESS})"
_LINK: Final = (
    rf"[aA](?=[{BLANK}])(?:{_OTHER})*+[^>\"'=]*+(?<=[{BLANK}]{_HREF})=\"([^\">&]*+)\"(?:{_OTHER})*+[^>\"'=]*+>"
)

_KEY_BITS: Final = (1 << 64) - 1
_COMMON_FIRST: Final = "plstibanmfx"  # the first letters of those names, in the order in which they are looked at


def _other_than(names: str) -> str:
    """Return an expression for all names but these. The first letter decides most tags."""
    rests: dict[str, list[str]] = {}
    for name in names.split("|"):
        rests.setdefault(name[0], []).append(name[1:])
    free = "".join(letter for letter in ascii_lowercase if letter not in rests)
    others = [
        rf"{in_any_case(letter)}(?!(?:{in_any_case('|'.join(rests[letter]))}){NAME_ENDS})"
        for letter in sorted(rests, key=_COMMON_FIRST.find)
    ]
    return "|".join((f"[{free}{free.upper()}]", *others))


def _finder(names: str) -> Callable[[str, int], Iterator[re.Match[str]]]:
    """Return a function that finds tags of these names, and skips elements whose text contains none."""
    read = in_any_case(names)
    others = _other_than("|".join((names, *RAW, "plaintext")))
    skipped = "|".join(
        (
            r"/[a-su-zA-SU-Z][^>\"'=]*+>",
            rf"(?:{others}){_PLAIN}>",
            rf"(?!(?:/?+(?:{read})|{_RAW_STARTS}|{_PLAINTEXT}){NAME_ENDS})/?+[a-zA-Z][^{BLANK}/>]*+{_ATTRIBUTES}>?+",
            r"!--(?:-?+>|(?:[^-]++|-(?!-!?>))*+(?:--!?>)?+)",
            r"(?:[!?]|/(?![a-zA-Z]))[^>]*+>?+",
            r"(?![a-zA-Z/!?])(?:[^<]*+<(?![a-zA-Z/!?]))*+",
        )
    )
    return re.compile(
        rf"(?:[^<]*+<(?:{skipped}))*+[^<]*+(?:<(?:{_LINK}|(?P<name>/?+[a-zA-Z]++)({_PLAIN}|{_ATTRIBUTES})(>?+)))?+"
    ).finditer


_next_tags = _finder(LINKING)
_next_of_all = _finder(f"{LINKING}|{EMBEDDING}")
_find_whole_href = re.compile(rf"(?:^|[{BLANK}/\"'])(?ai:href){IS}(?:\"[^\"]*+\"|'[^']*+')").search

Run = tuple[list[str], list[int], str, str, int]


def runs(text: str, looks_max: int, more: Collection[str] = (), with_ends: bool = False, /) -> Iterator[Run]:  # noqa: C901, PLR0912 - as in C
    """Yield the tags of a page that matter, in order: a, area, base, frame, iframe, link and meta.

    Each run has the references of plain links (an `<a>` of which nothing but its reference matters), then the name of
    the tag behind them in lower case, its unparsed attributes, and the position after it. The last run has the name
    "" if no tag is behind its links.

    Args:
        text: a page, or part of it.
        looks_max: reading ends after this many tags, yielded or not.
        more: further tags to yield, out of `EMBEDDING` and `RAW`.
        with_ends: whether a run's second list has the position after each of its links; else it is empty.
    """
    hrefs: list[str] = []
    ends: list[int] = []
    templates, at, end = 0, 0, len(text)
    foreign = ForeignElements(text)
    find = _next_of_all if more else _next_tags
    looks = iter(range(looks_max))
    while at < end:
        begun, at = at, end
        for _, found in zip(looks, find(text, begun), strict=False):
            if (href := found[1]) is not None:
                if not templates:
                    hrefs.append(href)
                    if with_ends:
                        ends.append(found.end())
                continue
            _, name, attributes, is_closed = found.groups()
            if not is_closed:  # the page ends, perhaps within a tag
                if name and name.lower() == "a" and not templates and (href_end := _find_whole_href(attributes)):
                    yield hrefs, ends, "a", attributes[: href_end.end()], found.end()
                    hrefs, ends = [], []
                break
            name = name.lower()
            if name == "template":
                templates += 1
            elif name == "/template":
                templates = max(0, templates - 1)
            elif name == "plaintext":
                break
            else:
                if not templates and (name == "iframe" or name not in find_end or name in more):
                    yield hrefs, ends, name, attributes, found.end()
                    hrefs, ends = [], []
                if name in find_end and not (attributes.endswith("/") and foreign.reach(found.start("name"))):
                    closing = find_end[name](text, found.end())
                    at = closing.start() if closing else end
                    break
    if hrefs:
        yield hrefs, ends, "", "", end


def attributes(written: str, /) -> dict[str, str]:
    """Return the attributes of a tag by their names in lower case; of several with one name, the first.

    Character references are not resolved.
    """
    values: dict[str, str] = {}
    for name, quoted, single, bare in find_attributes(written):
        values.setdefault(name.lower(), quoted or single or bare)
    return values


def join_plain(references: list[str], base: Base, longest: int, most: int, /) -> tuple[list[str | None], int, bool]:
    """Return the URL of each plain reference, "" if its host is invalid; None for others and those above `longest`.

    The list is cut after `most` characters of URLs. Also return how many of these are left, below 0 after a cut, and
    whether each reference has a URL, of at most `longest` characters.
    """
    urls: list[str | None] = []
    all_fit = True
    for reference in references:
        if most < 0:
            break
        plain = match_plain(reference) if len(reference) <= longest else None
        url = put_together(plain, base) or "" if plain else None
        urls.append(url)
        length = len(url or "")
        most -= length
        all_fit = all_fit and 0 < length <= longest
    return urls, most, all_fit and len(urls) == len(references)


def other_origins(urls: Iterable[str], origin: str, /) -> set[str]:
    """Return the origins, each with its slash, of URLs that do not start with this one."""
    return {url[: url.find("/", 8) + 1] for url in urls if not url.startswith(origin)}


def remember(table: memoryview[int], mask: int, keys: list[int], /) -> list[int]:
    """Record keys, modulo 2**64, in a table of pairs of places, and return the positions of those that were not there.

    The bits of the mask name a key's pair, which holds the last two keys that it met.
    """
    new = []
    for at, key in enumerate(keys):
        key &= _KEY_BITS  # noqa: PLW2901
        place = (key & mask) << 1
        first = table[place]
        if first != key:
            if table[place + 1] != key:
                new.append(at)
            table[place], table[place + 1] = key, first
    return new
