"""What a simulated web may have on top of the plain one, by name, and how its hosts are called."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable


class Naming(StrEnum):
    """How hosts are called."""

    ADDRESS = "address"  # by a loopback address of their own
    NAME = "name"  # by name, many names at one address
    BOTH = "both"  # one half each


class Feature(StrEnum):
    """A group of things to meet; the comment says where its rows are."""

    ROBOTS = "robots"  # robots_kinds.py: every kind of robots.txt
    DIRECTIVES = "directives"  # exhibits_directives.py: X-Robots-Tag, robots meta, rel=nofollow
    REDIRECTS = "redirects"  # exhibits_answers.py: odd redirects
    STATUSES = "statuses"  # exhibits_answers.py: 410, 429 with Retry-After, odd content types
    BODIES = "bodies"  # exhibits_bodies.py: framings and codings that arrive whole
    BROKEN = "broken"  # exhibits_bodies.py: bodies that stall, lie, end early, never end, or explode
    MARKUP = "markup"  # exhibits_markup.py: broken HTML, base href, odd references
    CHARSETS = "charsets"  # exhibits_charsets.py: other charsets, declared anywhere, or wrongly
    COPIES = "copies"  # answers.py: duplicates and near-duplicates across hosts
    CHANGES = "changes"  # news.py: pages that change at known rates, ETag and Last-Modified
    TRAPS = "traps"  # traps.py: calendars, session ids, paths that deepen for ever
    FARMS = "farms"  # traps.py: spam farms on wildcard subdomains; only where hosts have names
    OUTAGES = "outages"  # weather.py: hosts that are down, that come and go, that are overloaded for a while
    NAMES = "names"  # names.py: names that do not resolve; only where hosts have names
    SITEMAPS = "sitemaps"  # sitemaps.py: index and gzipped sitemaps, named in robots.txt


PLAIN: Final[frozenset[Feature]] = frozenset()
ALL: Final = frozenset(Feature)


def features_named(words: Iterable[str]) -> frozenset[Feature]:
    """The features of these names; "plain" adds none, "all" adds every one.

    Raises:
        ConfigError: there is no such feature.
    """
    chosen: set[Feature] = set()
    for word in words:
        if word == "all":
            chosen |= ALL
        elif word in Feature.__members__.values():
            chosen.add(Feature(word))
        elif word != "plain":
            raise ConfigError(f"feature is {word!r}; must be plain, all, or of {', '.join(Feature)}")
    return frozenset(chosen)
