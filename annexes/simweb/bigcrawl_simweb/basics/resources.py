"""The resources of a host, and their paths.

A resource is a kind and a number, which its canonical path determines. To add a kind, give it a path and a count here,
a link in `graph.py` or another page, and an answer in `answers.py`.
"""

from __future__ import annotations

import re
import zlib
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Kind(StrEnum):
    """The kind of a resource; the comments describe its answer."""

    PAGE = "page"  # 200, HTML with links
    PRIVATE = "private"  # the same, but most hosts' robots.txt forbids it
    HIDDEN = "hidden"  # the same, linked to from private and hidden pages only
    TEXT = "text"  # 200, plain text with strings that look like links
    ASSET = "asset"  # 200, a style sheet, which no link leads to
    MISSING = "missing"  # 404
    FAILING = "failing"  # 500 or 503, always
    HOP = "hop"  # 301 or 302 to a page, a private page or the next hop
    LOOP = "loop"  # 302 to the other one of two
    # Added by features. The paths of the first two are in exhibits/table.py.
    EXHIBIT = "exhibit"  # an unusual answer: a row of exhibits/table.py
    PROOF = "proof"  # 200, a page that only the exhibit of the same number leads to
    COPY = "copy"  # 200, the same bytes on every host
    NEAR_COPY = "near-copy"  # 200, the same but for a few words
    NEWS = "news"  # 200 or 304, changes at a known rate
    SITEMAP = "sitemap"  # 200, number 0 an index, the others lists of URLs, gzipped
    MAPPED = "mapped"  # 200, a page that only a sitemap leads to
    CALENDAR = "calendar"  # 200, a month; endless
    SESSION = "session"  # 200, a shop page whose links have a new session id each time; endless
    DEEPER = "deeper"  # 200, links to a directory below itself; endless
    OFFER = "offer"  # 200, on farms: a page of links to other subdomains; endless
    FEED = "feed"  # 200, number 0 RSS, number 1 Atom
    ANNOUNCED = "announced"  # 200, a page that only a feed leads to
    HOME = "home"  # 200, on shared domains: a page of a home directory; number 0 is the domain's own
    MADE_UP = "made-up"  # 200, on shared domains: a page of a directory that a spammer made up; endless


class Resource(NamedTuple):
    host: int
    kind: Kind
    number: int


PLAIN_KINDS: Final = tuple(Kind)[:9]
ENDLESS_KINDS: Final = frozenset({Kind.CALENDAR, Kind.SESSION, Kind.DEEPER, Kind.OFFER, Kind.MADE_UP})
PAGES_PER_TOPIC: Final = 8
NUMBER_MAX: Final = 10**9 - 1
DEPTH_MAX: Final = 2_000
HOMES: Final = 24  # of a shared domain, as directories 1 to 24
DIRECTORY_PAGES: Final = 256  # a page of a shared domain has number directory * 256 + page
# Nine digits are enough for any host, and keep int() cheap.
_NUMBER: Final = re.compile(r"([0-9]{1,9})(?:\.html|\.txt|\.css|\.xml\.gz|/)?\Z")
_MONTH: Final = re.compile(r"/calendar/([0-9]{4,8})/(0[1-9]|1[0-2])/\Z")
_SESSION: Final = re.compile(r"/shop/item-([0-9])\.html(?:;jsessionid=([0-9a-f]{8}))?\Z")
_DEEPER: Final = re.compile(r"/deeper/((?:down/)*)\Z")
_DIRECTORY: Final = re.compile(r"/~([^/?#]+)/(?:page-([1-9][0-9]{0,2})\.html)?\Z")
_HOME: Final = re.compile(r"user-([1-9][0-9]?)")
_MADE_UP: Final = re.compile(r"user-offers([0-9]{1,10})")
_FIRST_YEAR: Final = 2000


# Most hosts are small, and their pages recur in links.
@lru_cache(16_384)
def _page_path(number: int) -> str:
    if number == 0:
        return "/"
    topic = number // PAGES_PER_TOPIC
    last = number % 10
    if last == 4:
        return f"/topic-{topic}/item-{number}/"
    if last == 6:
        return f"/topic-{topic}/pr%C3%A9cis-{number}.html"
    if last == 9:
        return f"/find?topic={topic}&item={number}"
    return f"/topic-{topic}/item-{number}.html"


def _session_path(number: int) -> str:
    session, item = divmod(number, 10)
    return f"/shop/item-{item}.html" + (f";jsessionid={session - 1:08x}" if session else "")


def _calendar_path(number: int) -> str:
    return f"/calendar/{_FIRST_YEAR + number // 12}/{number % 12 + 1:02d}/"


def _sitemap_path(number: int) -> str:
    return f"/sitemap-{number}.xml.gz" if number else "/sitemap.xml"


def _directory_path(user: str, number: int) -> str:
    directory, page = divmod(number, DIRECTORY_PAGES)
    return f"/~user-{user}{directory}/" + (f"page-{page}.html" if page else "")


PATHS: Final[Mapping[Kind, Callable[[int], str]]] = {
    Kind.PAGE: _page_path,
    Kind.PRIVATE: lambda number: f"/private/item-{number}.html",
    Kind.HIDDEN: lambda number: f"/archive/item-{number}.html",
    Kind.TEXT: lambda number: f"/topic-{number // PAGES_PER_TOPIC}/notes-{number}.txt",
    Kind.ASSET: lambda number: f"/assets/style-{number}.css",
    Kind.MISSING: lambda number: f"/topic-{number // PAGES_PER_TOPIC}/gone-{number}.html",
    Kind.FAILING: lambda number: f"/cgi/report-{number}",
    Kind.HOP: lambda number: f"/go/{number}",
    Kind.LOOP: lambda number: f"/go/loop-{number}",
    Kind.COPY: lambda number: f"/copy/item-{number}.html",
    Kind.NEAR_COPY: lambda number: f"/near/item-{number}.html",
    Kind.NEWS: lambda number: f"/news/item-{number}.html",
    Kind.SITEMAP: _sitemap_path,
    Kind.MAPPED: lambda number: f"/mapped/item-{number}.html",
    Kind.CALENDAR: _calendar_path,
    Kind.SESSION: _session_path,
    Kind.DEEPER: lambda number: "/deeper/" + number * "down/",
    Kind.OFFER: lambda number: f"/offer-{number}.html" if number else "/",
    Kind.FEED: lambda number: f"/feeds/{number}/",
    Kind.ANNOUNCED: lambda number: f"/announced/item-{number}.html",
    Kind.HOME: lambda number: _directory_path("", number) if number else "/",
    Kind.MADE_UP: lambda number: _directory_path("offers", number),
}
# Kinds by the path's start, up to its first "-", "/" or "?" after the leading slash.
_KINDS_BY_START: Final[Mapping[str, tuple[Kind, ...]]] = {
    "topic": (Kind.PAGE, Kind.TEXT, Kind.MISSING),
    "find": (Kind.PAGE,),
    "private": (Kind.PRIVATE,),
    "archive": (Kind.HIDDEN,),
    "assets": (Kind.ASSET,),
    "cgi": (Kind.FAILING,),
    "go": (Kind.HOP, Kind.LOOP),
    "copy": (Kind.COPY,),
    "near": (Kind.NEAR_COPY,),
    "news": (Kind.NEWS,),
    "sitemap": (Kind.SITEMAP,),
    "mapped": (Kind.MAPPED,),
    "offer": (Kind.OFFER,),
    "feeds": (Kind.FEED,),
    "announced": (Kind.ANNOUNCED,),
}
_START: Final = re.compile(r"/([a-z]+)[-/?]")


def resource_with_path(target: str) -> tuple[Kind, int] | None:
    """Return the kind and number with exactly this path, or None; ignores counts, exhibits and farms."""
    if target == "/":
        return Kind.PAGE, 0
    start = _START.match(target)
    if start is None:
        return (Kind.SITEMAP, 0) if target == "/sitemap.xml" else None
    kinds = _KINDS_BY_START.get(start[1])
    if kinds is None:
        return _parse_endless(start[1], target)
    match = _NUMBER.search(target)
    if match is None:
        return None
    number = int(match[1])
    for kind in kinds:
        if PATHS[kind](number) == target:
            return kind, number
    return None


def _parse_endless(start: str, target: str) -> tuple[Kind, int] | None:
    if start == "calendar" and (month := _MONTH.match(target)) and int(month[1]) >= _FIRST_YEAR:
        number = (int(month[1]) - _FIRST_YEAR) * 12 + int(month[2]) - 1
        found = (Kind.CALENDAR, number)
    elif start == "shop" and (session := _SESSION.match(target)):
        found = (Kind.SESSION, int(session[1]) + 10 * (int(session[2], 16) + 1 if session[2] else 0))
    elif start == "deeper" and (deeper := _DEEPER.match(target)) and len(deeper[1]) <= 5 * DEPTH_MAX:
        found = (Kind.DEEPER, len(deeper[1]) // 5)
    else:
        return None
    return found if PATHS[found[0]](found[1]) == target else None


def directory_named_by(target: str) -> tuple[Kind, int] | None:
    """Return the kind and number on a shared domain; every directory there except homes is made up."""
    if target == "/":
        return Kind.HOME, 0
    match = _DIRECTORY.match(target)
    if match is None:
        return None
    name, page = match[1], int(match[2] or 0)
    home = _HOME.fullmatch(name)
    if home and int(home[1]) <= HOMES:
        number = int(home[1]) * DIRECTORY_PAGES + page
        return (Kind.HOME, number) if page < home_pages(number) else None
    made_up = _MADE_UP.fullmatch(name)
    directory = int(made_up[1]) if made_up else zlib.crc32(name.encode())
    return (Kind.MADE_UP, directory * DIRECTORY_PAGES + page) if page < DIRECTORY_PAGES else None


def home_pages(number: int) -> int:
    """Return the number of pages in the home that a page belongs to."""
    return 1 + number // DIRECTORY_PAGES % 8


def count_of(kind: Kind, host: int, hosts: int, pages: int) -> int:
    """Return the number of resources of a plain kind on a host with `pages` pages."""
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
            # On few hosts: crawlers back off from failing servers, and would mostly wait.
            return 2 if host % 8 == 1 else 0
        case Kind.HOP:
            # At least four: hop 3 leads to hop 2, and hop 2 to another host.
            return 4 + pages // 10
        case Kind.LOOP:
            return 2 if host == hosts // 2 else 0
        case _:
            return 0
