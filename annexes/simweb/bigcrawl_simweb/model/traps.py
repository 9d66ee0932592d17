"""Infinite spaces: calendars, session ids, paths that deepen, and spam farms on wildcard subdomains.

Every page in them answers 200 and links to more of them. A correct crawler stops by its budgets.
"""

from __future__ import annotations

import struct
from typing import Final

from bigcrawl_simweb.basics.hashing import mix_bits, random_words
from bigcrawl_simweb.basics.resources import DEPTH_MAX, NUMBER_MAX, Kind, Resource
from bigcrawl_simweb.model.names import FARM_HOST

SHOP_ITEMS: Final = 10
_SESSIONS: Final = 2**32
_MONTHS_MAX: Final = 12 * 90_000_000  # the year has eight digits at most
# A farm page links to subdomains of its farm and of any farm, and to its own pages. After a few pages of each, every
# farm links to all others.
_FARM_LINKS: Final = struct.Struct("<120I")
_ANY_FARM_EVERY, _OWN_PAGE_EVERY = 10, 12
_FARM_PURPOSE: Final = 41


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
