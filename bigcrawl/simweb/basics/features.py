"""The features that a simulated web may have in addition to the plain one, and how its hosts are named."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable


class Naming(StrEnum):
    """How hosts are named."""

    ADDRESS = "address"  # each by its own loopback address
    NAME = "name"  # by name, many names at one address
    BOTH = "both"  # half of them each way


class Feature(StrEnum):
    """A group of things that a crawler may meet; the comment says which module defines them."""

    ROBOTS = "robots"  # robots_kinds.py: every kind of robots.txt
    DIRECTIVES = "directives"  # exhibits/directives.py: X-Robots-Tag, robots meta, rel=nofollow
    REDIRECTS = "redirects"  # exhibits/answers.py: odd redirects
    STATUSES = "statuses"  # exhibits/answers.py: 410, 429 with Retry-After, odd content types
    BODIES = "bodies"  # exhibits/bodies.py: framings and codings that arrive whole
    BROKEN = "broken"  # exhibits/bodies.py: bodies that stall, lie, end early, never end, or explode
    MARKUP = "markup"  # exhibits/markup.py: broken HTML, base href, odd references
    CHARSETS = "charsets"  # exhibits/charsets.py: other charsets, declared anywhere, or wrongly
    COPIES = "copies"  # answers.py: duplicates and near-duplicates across hosts; other pages have their own words
    CHANGES = "changes"  # changing_pages.py: pages that change at known rates, ETag and Last-Modified
    VALIDATORS = "validators"  # changing_pages.py: an ETag for what stays, and 304
    TRAPS = "traps"  # traps.py: calendars, session ids, paths that deepen forever
    FARMS = "farms"  # traps.py: spam farms on wildcard subdomains; only if hosts have names
    OUTAGES = "outages"  # outages.py: hosts that are down, that come and go, that are overloaded at times
    NAMES = "names"  # names.py: names that do not resolve; only if hosts have names
    SITEMAPS = "sitemaps"  # sitemaps.py: index and gzipped sitemaps, named in robots.txt
    FEEDS = "feeds"  # feeds.py: RSS and Atom, named by front pages


PLAIN: Final[frozenset[Feature]] = frozenset()
ALL: Final = frozenset(Feature)


def features_named(words: Iterable[str]) -> frozenset[Feature]:
    """Return the features with these names; "plain" adds none, "all" adds every one.

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
