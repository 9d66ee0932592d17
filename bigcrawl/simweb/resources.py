"""What a host of the simulated web has, and under which path.

A resource is a kind and a number; its path follows from them and they follow from its path, so nothing
is stored. To add a kind: give it a path, a count, a place in `graph.py` that links to it, and an answer in
`web.py`. Paths are canonical: what is written here is what a client sends.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple


class Kind(StrEnum):
    """What a resource is; the comment says what its server answers."""

    PAGE = "page"  # 200, HTML with links
    PRIVATE = "private"  # the same, where most hosts' robots.txt keeps crawlers out
    HIDDEN = "hidden"  # the same, linked to from private and hidden pages only
    TEXT = "text"  # 200, plain text: what looks like a link in it is none
    ASSET = "asset"  # 200, a style sheet: pages name it, but not as a link to follow
    MISSING = "missing"  # 404
    FAILING = "failing"  # 500 or 503, for ever
    HOP = "hop"  # 301 or 302 to a page, a private page or the next hop
    LOOP = "loop"  # 302 to the other one of two


class Resource(NamedTuple):
    """One thing that can be asked for, by the index of its host, its kind and its number."""

    host: int
    kind: Kind
    number: int


PAGES_PER_TOPIC: Final = 8
# Nine digits are more than any host has pages, and keep int() cheap whatever a client sends.
_NUMBER: Final = re.compile(r"([0-9]{1,9})(?:\.html|\.txt|\.css|/)?\Z")


def _page_path(number: int) -> str:
    topic = number // PAGES_PER_TOPIC
    if number == 0:
        return "/"
    match number % 10:
        case 4:
            return f"/topic-{topic}/item-{number}/"
        case 6:
            return f"/topic-{topic}/pr%C3%A9cis-{number}.html"
        case 9:
            return f"/find?topic={topic}&item={number}"
        case _:
            return f"/topic-{topic}/item-{number}.html"


def path_of(kind: Kind, number: int) -> str:
    """The path and query under which the resource is asked for."""
    match kind:
        case Kind.PAGE:
            return _page_path(number)
        case Kind.PRIVATE:
            return f"/private/item-{number}.html"
        case Kind.HIDDEN:
            return f"/archive/item-{number}.html"
        case Kind.TEXT:
            return f"/topic-{number // PAGES_PER_TOPIC}/notes-{number}.txt"
        case Kind.ASSET:
            return f"/assets/style-{number}.css"
        case Kind.MISSING:
            return f"/topic-{number // PAGES_PER_TOPIC}/gone-{number}.html"
        case Kind.FAILING:
            return f"/cgi/report-{number}"
        case Kind.HOP:
            return f"/go/{number}"
        case Kind.LOOP:
            return f"/go/loop-{number}"


def named_by(target: str) -> tuple[Kind, int] | None:
    """The kind and number whose path this is exactly; None when it is nothing's. Counts are not looked at."""
    if target == "/":
        return Kind.PAGE, 0
    match = _NUMBER.search(target)
    if match is None:
        return None
    number = int(match[1])
    return next(((kind, number) for kind in Kind if path_of(kind, number) == target), None)


def count_of(kind: Kind, host: int, hosts: int, pages: int) -> int:
    """How many resources of a kind host `host` has, in a web of `hosts` hosts with `pages` pages each."""
    match kind:
        case Kind.PAGE:
            return pages
        case Kind.PRIVATE | Kind.HIDDEN:
            return 1 + pages // 10
        case Kind.TEXT:
            return 1 + pages // 15
        case Kind.ASSET:
            return 1
        case Kind.MISSING:
            return 1 + pages // 12
        case Kind.FAILING:
            # Few hosts, or a crawler that backs off from failing servers would spend its time waiting.
            return 2 if host % 8 == 1 else 0
        case Kind.HOP:
            # Four at least: hop 3 leads to hop 2 and that to another host, the shortest chain.
            return 4 + pages // 10
        case Kind.LOOP:
            return 2 if host == hosts // 2 else 0
