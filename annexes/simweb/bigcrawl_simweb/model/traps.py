"""Infinite spaces: calendars, session ids, paths that deepen, and spam.

Every page in them answers 200 and links to more of them. A correct crawler stops by its budgets. Spam is in farms on
wildcard subdomains, and in made-up directories of shared domains, beside homes, which have a few pages each.
"""

from __future__ import annotations

import struct
from typing import Final

from bigcrawl_simweb.basics.power_law import PowerLaw, mix_bits, random_words
from bigcrawl_simweb.basics.resources import (
    DEPTH_MAX,
    DIRECTORY_PAGES,
    HOMES,
    NUMBER_MAX,
    Kind,
    Resource,
    home_pages,
)
from bigcrawl_simweb.model.names import FARM_HOST, HOMES_HOST

SHOP_ITEMS: Final = 10
_SESSIONS: Final = 2**32
_MONTHS_MAX: Final = 12 * 90_000_000  # the year has eight digits at most
# A farm page links to subdomains of its farm and of any farm, and to its own pages. After a few pages of each, every
# farm links to all others.
_FARM_LINKS: Final = struct.Struct("<120I")
_ANY_FARM_EVERY, _OWN_PAGE_EVERY = 10, 12
_FARM_PURPOSE, _HOMES_PURPOSE = 41, 42
_HOME_RANKS: Final = PowerLaw(HOMES, 0.9)
_WORD: Final = 2**32


def links_onward(source: Resource, seed: int, farms: int) -> list[Resource]:
    """Return the links of a page in an infinite space."""
    host, kind, number = source
    front = Resource(host, Kind.PAGE, 0)
    match kind:
        case Kind.CALENDAR:
            months = (number - 12, number - 1, number + 1, number + 12)
            return [Resource(host, kind, month) for month in months if 0 <= month < _MONTHS_MAX] + [front]
        case Kind.DEEPER:
            return [Resource(host, kind, number + 1), front] if number < DEPTH_MAX else [front]
        case Kind.SESSION:
            # A new id on every page, so that each path to an item gives a different URL.
            session = 1 + mix_bits(seed ^ mix_bits(host ^ number)) % _SESSIONS
            return [Resource(host, kind, session * SHOP_ITEMS + item) for item in range(SHOP_ITEMS)] + [front]
        case Kind.MADE_UP:
            return _made_up_links(source, seed)
        case _:
            return _farm_links(source, seed, farms)


def _farm_links(source: Resource, seed: int, farms: int) -> list[Resource]:
    farm = source.host // FARM_HOST
    links = []
    for place, draw in enumerate(random_words(_FARM_LINKS, seed, _FARM_PURPOSE, source.host, source.number)):
        if place % _OWN_PAGE_EVERY == 0:
            links.append(Resource(source.host, Kind.OFFER, draw % NUMBER_MAX))
        else:
            to = 1 + mix_bits(draw) % farms if place % _ANY_FARM_EVERY == 1 else farm
            links.append(Resource(to * FARM_HOST + draw, Kind.OFFER, 0))
    return links


def farm_entry(seed: int, host: int, farms: int) -> Resource:
    draw = mix_bits(seed ^ mix_bits(host + _FARM_PURPOSE))
    return Resource((1 + draw % farms) * FARM_HOST + (draw >> 40), Kind.OFFER, 0)


def home_entry(seed: int, host: int, homes: int) -> Resource:
    """Return the link to a home from an ordinary host's front page."""
    draw = mix_bits(seed ^ mix_bits(host + _HOMES_PURPOSE))
    directory = 1 + _HOME_RANKS.rank(draw % _WORD / _WORD)
    return Resource(HOMES_HOST + (draw >> 32) % homes, Kind.HOME, directory * DIRECTORY_PAGES)


def made_up_entry(seed: int, host: int, homes: int) -> Resource:
    draw = mix_bits(seed ^ mix_bits(host ^ mix_bits(_HOMES_PURPOSE)))
    return Resource(HOMES_HOST + (draw >> 32) % homes, Kind.MADE_UP, draw % _WORD * DIRECTORY_PAGES)


def home_links(source: Resource) -> list[Resource]:
    """Return all pages of the home of a page."""
    first = source.number - source.number % DIRECTORY_PAGES
    return [source._replace(number=first + page) for page in range(home_pages(first))]


def _made_up_links(source: Resource, seed: int) -> list[Resource]:
    """Return ten links to the directory's own pages, and 110 to other directories of its host."""
    first = source.number - source.number % DIRECTORY_PAGES
    draws = enumerate(random_words(_FARM_LINKS, seed, _HOMES_PURPOSE, source.host, source.number))
    numbers = (draw * DIRECTORY_PAGES if at % _OWN_PAGE_EVERY else first + draw % DIRECTORY_PAGES for at, draw in draws)
    return [source._replace(number=number) for number in numbers]
