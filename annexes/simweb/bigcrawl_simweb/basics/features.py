"""The optional features of a web, and the naming of hosts."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable


class Naming(StrEnum):
    ADDRESS = "address"  # each by its own loopback address
    NAME = "name"  # by name, many names at one address
    BOTH = "both"  # half of them each way


class Feature(StrEnum):
    """Phenomena that a crawler may meet; the comments name the modules."""

    ROBOTS = "robots"  # robots.py: every kind of robots.txt
    DIRECTIVES = "directives"  # exhibits/directives.py: X-Robots-Tag, robots meta, rel=nofollow
    REDIRECTS = "redirects"  # exhibits/answers.py: odd redirects
    STATUSES = "statuses"  # exhibits/answers.py: 410, 429 with Retry-After, odd content types
    BODIES = "bodies"  # exhibits/bodies.py: framings and codings that arrive whole
    BROKEN = "broken"  # exhibits/bodies.py: bodies that stall, end early, never end, explode, or have a wrong length
    MARKUP = "markup"  # exhibits/markup.py: broken HTML, base href, odd references
    CHARSETS = "charsets"  # exhibits/charsets.py: other charsets, declared anywhere, or wrongly
    COPIES = "copies"  # answers.py: duplicates and near-duplicates across hosts; other pages differ
    CHANGES = "changes"  # changing_pages.py: pages that change at known rates, ETag and Last-Modified
    VALIDATORS = "validators"  # changing_pages.py: an ETag for unchanging pages, and 304
    TRAPS = "traps"  # traps.py: calendars, session ids, paths that deepen forever
    FARMS = "farms"  # traps.py: spam farms on wildcard subdomains; need named hosts
    HOMES = "homes"  # traps.py: shared domains with home directories, also a spammer's; need named hosts
    OUTAGES = "outages"  # expectations.py: hosts that are down, intermittent or overloaded
    NAMES = "names"  # names.py: names that do not resolve; need named hosts
    SITEMAPS = "sitemaps"  # sitemaps.py: index and gzipped sitemaps, named in robots.txt
    FEEDS = "feeds"  # sitemaps.py: RSS and Atom, named by front pages


PLAIN: Final[frozenset[Feature]] = frozenset()
ALL: Final = frozenset(Feature)


def features_named(words: Iterable[str]) -> frozenset[Feature]:
    """Return the features with these names, "plain" for none, "all" for every one; raise ConfigError for others."""
    chosen: set[Feature] = set()
    for word in words:
        if word == "all":
            chosen |= ALL
        elif word in Feature.__members__.values():
            chosen.add(Feature(word))
        elif word != "plain":
            raise ConfigError(f"feature is {word!r}; must be plain, all, or some of {', '.join(Feature)}")
    return frozenset(chosen)
