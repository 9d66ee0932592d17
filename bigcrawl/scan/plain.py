"""Plain references: every WHATWG parser leaves them unchanged, so that they can be joined as strings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

# A segment must not begin with %: %2e is a dot. Repetitions are possessive: a mismatch fails at once.
_SEGMENT = r"[A-Za-z0-9_~!$&'()*+,;=@-][A-Za-z0-9_.~!$%&'()*+,;=@:-]*+"
_FIRST_SEGMENT = r"[A-Za-z0-9_~!$&'()*+,;=@-][A-Za-z0-9_.~!$%&'()*+,;=@-]*+"  # a colon would end a scheme
_QUERY = r"\?[A-Za-z0-9_.~!$&()*+,;=:@/?%\[\]|-]*+"
_FROM_ROOT = rf"/(?:{_SEGMENT}/?+)*+(?:{_QUERY})?+"
_FROM_DIRECTORY = rf"{_FIRST_SEGMENT}(?:/(?:{_SEGMENT}/?+)*+)?+(?:{_QUERY})?+"
# Below DNS' limit of 253, for a small cache.
_ORIGIN = r"(?:[hH][tT][tT][pP][sS]?+:)?+//[A-Za-z0-9.:-]{1,100}+"
match_plain = re.compile(
    rf"(?:({_FROM_ROOT})|({_ORIGIN})({_FROM_ROOT})?+|({_FROM_DIRECTORY})"
    rf"|((?:\.\.?+/)++)((?:{_FROM_DIRECTORY}|{_QUERY})?+)|({_QUERY}))(?:#[\s\S]*+)?+"
).fullmatch
# Groups of that pattern.
ROOT, ORIGIN_ALONE, ORIGIN_PATH, DIRECTORY, DOTS_PATH = 1, 2, 3, 4, 6


class Base(NamedTuple):
    """The base of references: parts of a canonical URL."""

    origin: str
    directory: str
    path: str
    origin_of: Callable[[str], str | None]
    """Returns the canonical form of an origin as written, such as `HTTP://Example.com:80`; None if it has none."""


def put_together(plain: re.Match[str], base: Base) -> str | None:
    """Return the URL of a plain reference; None if its host or port is invalid."""
    kind = plain.lastindex
    if kind == ROOT:
        return base.origin + plain[ROOT]
    if kind == DIRECTORY:
        return base.directory + plain[DIRECTORY]
    if kind in (ORIGIN_ALONE, ORIGIN_PATH):
        written = plain[ORIGIN_ALONE]
        origin = base.origin_of(base.origin[: base.origin.index("/")] + written if written[0] == "/" else written)
        return origin and origin + (plain[ORIGIN_PATH] or "/")
    if kind == DOTS_PATH:
        return _above(base, plain[DOTS_PATH - 1].count("../")) + plain[DOTS_PATH]
    return base.path + plain[kind or 0]


def _above(base: Base, levels: int) -> str:
    directory, root_bytes = base.directory, len(base.origin) + 1
    for _ in range(levels):
        if len(directory) == root_bytes:
            break
        directory = directory[: directory.rindex("/", 0, -1) + 1]
    return directory
