"""The links and redirects of the web, computed on demand.

The server writes them as HTML. `Web.reachable` follows them without HTML, which makes it an independent answer.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from bigcrawl_simweb.basics.features import Feature
from bigcrawl_simweb.basics.markup import EVEN_BYTES, SKEWED_BYTES
from bigcrawl_simweb.basics.power_law import mix_bits, random_words
from bigcrawl_simweb.basics.resources import ENDLESS_KINDS, PLAIN_KINDS, Kind, Resource, count_of
from bigcrawl_simweb.exhibits.table import exhibits_of, proof_of
from bigcrawl_simweb.model.sitemaps import ANNOUNCED, FEEDS, LISTS, MAPPED
from bigcrawl_simweb.model.traps import SHOP_ITEMS, farm_entry, home_entry, home_links, links_onward, made_up_entry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bigcrawl_simweb.model.population import Population

# About four in five links of a real page stay on its host.
_LOCAL_SHARE: Final = 0.8
_REPEATED_SHARE: Final = 0.05
_FRAMES_MIN, _FRAMES_MAX = 3, 8
_TABLE_BITS: Final = 10
_CHOICE_MASK: Final = (1 << _TABLE_BITS) - 1
_new: Final[Callable[[type[Resource], tuple[int, Kind, int]], Resource]] = tuple.__new__
# The same number on every host, or they would not be copies.
COPIES: Final = 4
NEAR_COPIES: Final = 2
# Number of links on a page, by quantile: evenly 20 to 60, or as skewed as on the web, 59 on average (IRLbot §7).
_EVEN_COUNTS: Final = tuple(20 + place * 41 // 64 for place in range(64))
_SKEWED_COUNTS: Final = tuple(round(5.8 * 1.0592**place) for place in range(64))

_WEIGHTS: Final[Mapping[Kind, int]] = {
    Kind.PAGE: 840,
    Kind.PRIVATE: 40,
    Kind.TEXT: 30,
    Kind.MISSING: 30,
    Kind.FAILING: 10,
    Kind.HOP: 50,
}
_FEATURE_WEIGHTS: Final[Mapping[Feature, Mapping[Kind, int]]] = {
    Feature.COPIES: {Kind.COPY: 10, Kind.NEAR_COPY: 10},
    Feature.CHANGES: {Kind.NEWS: 20},
    Feature.TRAPS: {Kind.CALENDAR: 4, Kind.SESSION: 6, Kind.DEEPER: 2},
}
_PAGE_KINDS: Final = frozenset({Kind.PAGE, Kind.PRIVATE, Kind.HIDDEN})
_KIND_NUMBERS: Final[Mapping[Kind, int]] = {kind: number for number, kind in enumerate(Kind)}
_LINKS, _REDIRECT, _COUNT = 31, 32, 33
_TWO: Final = struct.Struct("<2Q")
_CACHED_HOSTS_MAX: Final = 4_096
_FARM_LINKS_EVERY: Final = 5
_MADE_UP_LINKS_EVERY, _MADE_UP_LINKS_AT = 10, 3

Choice = tuple[bool, Kind] | None


def is_frameset(resource: Resource) -> bool:
    return resource.kind is Kind.PAGE and resource.number % 13 == 12


class Graph:
    def __init__(
        self,
        seed: int,
        population: Population,
        features: frozenset[Feature],
        farms: int = 0,
        homes: int = 0,
        *,
        has_spam: bool = True,
    ) -> None:
        self._seed = seed
        self._population = population
        self._features = features
        self._farms = farms
        self._homes = homes
        self._has_spam = has_spam
        self._choices = _target_choices(features)
        self._added_counts = _added_counts(features)
        self._counted_kinds = (
            *PLAIN_KINDS,
            *self._added_counts,
            *((Kind.NEWS,) if Feature.CHANGES in features else ()),
        )
        self._counts = _EVEN_COUNTS if population.is_equal else _SKEWED_COUNTS
        self._counts_of = lru_cache(_CACHED_HOSTS_MAX)(self._counts_of_host)

    def __repr__(self) -> str:
        return f"Graph(seed={self._seed}, hosts={self._population.hosts})"

    def key(self, resource: Resource) -> int:
        """Return a number for a kind and a number; with the host, it seeds all randomness of a resource."""
        return _KIND_NUMBERS[resource.kind] << 40 | resource.number

    def count(self, kind: Kind, host: int) -> int:
        """Return the host's number of resources of a kind; not for exhibits and proofs."""
        pages = self._population.pages_of(host)
        return pages if kind is Kind.PAGE else self._count_of_kind(kind, host, pages)

    def size_of(self, links: int, draw: int) -> int:
        if self._population.is_equal:
            return EVEN_BYTES[draw & 63]
        return SKEWED_BYTES[min(63, bisect_left(_SKEWED_COUNTS, links))]

    def links(self, source: Resource) -> list[Resource]:
        """Return the targets of a page's links, in page order, with repetitions."""
        if source.kind not in _PAGE_KINDS:
            return self._small_links(source)
        key = self.key(source)
        drawn = mix_bits(self._seed ^ mix_bits(source.host ^ mix_bits(key + _COUNT)))
        wanted = self._counts[drawn & 63]
        if is_frameset(source):
            wanted = _FRAMES_MIN + drawn % (_FRAMES_MAX - _FRAMES_MIN + 1)
        spine = self._spine_links(source)
        draws = random_words(_draws_layout(max(wanted, len(spine))), self._seed, _LINKS, source.host, key)
        targets = self._pick_targets(source, draws[len(spine) :])
        targets[:0] = spine
        # The order of the other links is random already, so only the spine's positions are drawn.
        for place in range(len(spine)):
            other = place + draws[place] % (len(targets) - place)
            targets[place], targets[other] = targets[other], targets[place]
        # Not part of the spine, so that all other links are the same without farms and homes.
        return targets + self._entries(source.host) if (source.kind, source.number) == (Kind.PAGE, 0) else targets

    def redirect(self, source: Resource) -> Resource:
        host, kind, number = source
        if kind is Kind.LOOP:
            return Resource(host, Kind.LOOP, 1 - number)
        first, second = random_words(_TWO, self._seed, _REDIRECT, host, number)
        hosts = self._population.hosts
        elsewhere = (host + 1 + first % max(1, hosts - 1)) % hosts
        match number % 8:
            case 2:
                return Resource(elsewhere, Kind.PAGE, second % self.count(Kind.PAGE, elsewhere))
            case 3 | 7:
                return Resource(host, Kind.HOP, number - 1)
            case 4:
                return Resource(host, Kind.PRIVATE, 0)
            case 6:
                return Resource(elsewhere, Kind.HOP, 2)
            case _:
                return Resource(host, Kind.PAGE, second % self.count(Kind.PAGE, host))

    def _small_links(self, source: Resource) -> list[Resource]:
        host, kind, number = source
        if kind in ENDLESS_KINDS:
            return links_onward(source, self._seed, self._farms)
        if kind is Kind.HOME:
            return home_links(source)
        if kind is Kind.EXHIBIT:
            proof = proof_of(source)
            return [proof] if proof else []
        if kind in (Kind.COPY, Kind.NEAR_COPY, Kind.NEWS):
            return [Resource(host, kind, (number + 1) % self.count(kind, host)), Resource(host, Kind.PAGE, 0)]
        return [Resource(host, Kind.PAGE, 0)] if kind in (Kind.PROOF, Kind.MAPPED, Kind.ANNOUNCED) else []

    def _spine_links(self, source: Resource) -> list[Resource]:
        """Return the links that make every page of a host reachable and every kind occur on it."""
        host, kind, number = source
        if kind is not Kind.PAGE:
            ahead = [Resource(host, Kind.HIDDEN, number), Resource(host, Kind.PRIVATE, number + 1)]
            return [target for target in ahead if target.number < self.count(target.kind, host)]
        pages = self.count(Kind.PAGE, host)
        child = 2 * number + 1
        spine = [Resource(host, kind, page) for page in (child, child + 1) if page < pages]
        return spine if number else spine + self._front_spine(host)

    def _front_spine(self, host: int) -> list[Resource]:
        counts = self._counts_of(host)
        kinds = (*(kind for kind in _WEIGHTS if kind is not Kind.PAGE), Kind.LOOP)
        spine = [Resource(host, kind, 0) for kind in kinds if counts[kind]]
        spine += [Resource(host, Kind.HOP, 3), Resource(host, Kind.HOP, counts[Kind.HOP] - 1)]
        spine += [Resource(host, Kind.FAILING, number) for number in range(1, counts[Kind.FAILING])]
        if not self._features:
            return spine
        added = {kind for feature in self._features for kind in _FEATURE_WEIGHTS.get(feature, ())}
        spine += [Resource(host, kind, 0) for kind in Kind if kind in added]
        return spine + exhibits_of(host, self._features)

    def _entries(self, host: int) -> list[Resource]:
        """Return a front page's links to farms and shared domains."""
        entries = []
        if self._farms and self._has_spam and host % _FARM_LINKS_EVERY == 0:
            entries.append(farm_entry(self._seed, host, self._farms))
        if self._homes:
            entries.append(home_entry(self._seed, host, self._homes))
            if self._has_spam and host % _MADE_UP_LINKS_EVERY == _MADE_UP_LINKS_AT:
                entries.append(made_up_entry(self._seed, host, self._homes))
        return entries

    def _pick_targets(self, source: Resource, draws: tuple[int, ...]) -> list[Resource]:
        host, local_counts, choices = source.host, self._counts_of(source.host), self._choices
        from_private = source.kind is not Kind.PAGE
        targets: list[Resource] = []
        for draw in draws:
            choice = choices[draw & _CHOICE_MASK]
            if choice is None:
                targets.append(targets[(draw >> 16) % len(targets)] if targets else Resource(host, Kind.PAGE, 0))
                continue
            is_local, kind = choice
            if not is_local:
                targets.append(self._distant_target(kind, draw >> 10))
                continue
            if from_private and kind is Kind.PRIVATE and draw >> 63:
                kind = Kind.HIDDEN
            count = local_counts[kind]
            # Like Resource(...), in a third of the time; most of a page's cost is here.
            targets.append(_new(Resource, (host, kind, (draw >> 10) % count) if count else (host, Kind.PAGE, 0)))
        return targets

    def _distant_target(self, kind: Kind, draw: int) -> Resource:
        """Return a link target on any host, chosen by 54 random bits."""
        host = self._population.linked_host(draw & 0xFFFFFFFF)
        draw >>= 32
        if kind is Kind.PAGE and self._population.is_front(draw):
            return Resource(host, kind, 0)
        count = self.count(kind, host)
        return _new(Resource, (host, kind, draw % count) if count else (host, Kind.PAGE, 0))

    def _counts_of_host(self, host: int) -> dict[Kind, int]:
        pages = self._population.pages_of(host)
        return {kind: self._count_of_kind(kind, host, pages) for kind in self._counted_kinds}

    def _count_of_kind(self, kind: Kind, host: int, pages: int) -> int:
        count = self._added_counts.get(kind)
        if count is not None:
            return count
        if kind is Kind.NEWS and Feature.CHANGES in self._features:
            return 2 + pages // 40
        return count_of(kind, host, self._population.hosts, pages)


def _added_counts(features: frozenset[Feature]) -> dict[Kind, int]:
    counts: dict[Kind, int] = {}
    if Feature.COPIES in features:
        counts |= {Kind.COPY: COPIES, Kind.NEAR_COPY: NEAR_COPIES}
    if Feature.SITEMAPS in features:
        counts |= {Kind.SITEMAP: 1 + LISTS, Kind.MAPPED: MAPPED}
    if Feature.FEEDS in features:
        counts |= {Kind.FEED: FEEDS, Kind.ANNOUNCED: ANNOUNCED}
    if Feature.TRAPS in features:
        counts |= {Kind.CALENDAR: 1, Kind.DEEPER: 1, Kind.SESSION: SHOP_ITEMS}
    return counts


def _target_choices(features: frozenset[Feature]) -> tuple[Choice, ...]:
    """Return (is local, kind) by a draw's lowest bits; None means to repeat one of the page's links."""
    weights = dict(_WEIGHTS)
    for feature in sorted(features):
        weights |= _FEATURE_WEIGHTS.get(feature, {})
    kinds = [kind for kind, weight in weights.items() for _ in range(weight)]
    size = 1 << _TABLE_BITS
    repeated = round(_REPEATED_SHARE * size)
    local = round(_LOCAL_SHARE * (size - repeated))
    far = size - repeated - local
    choices: list[Choice] = [None] * repeated
    choices += [(True, kinds[place * len(kinds) // local]) for place in range(local)]
    choices += [(False, kinds[place * len(kinds) // far]) for place in range(far)]
    return tuple(choices)


@lru_cache(512)
def _draws_layout(draws: int) -> struct.Struct:
    return struct.Struct(f"<{draws}Q")
