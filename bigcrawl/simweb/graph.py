"""Who links to whom, and where redirects lead: the truth that pages are written from.

The same functions answer the server, which spells the links out in HTML, and `Web.reachable`, which follows
them without any HTML: that makes the second an independent answer to what a crawler should find.
"""

from __future__ import annotations

from random import Random
from typing import Final

from bigcrawl.simweb.resources import Kind, Resource, count_of

# Of the links of a real page about four in five stay on its host.
_LOCAL_SHARE: Final = 0.8
_REPEATED_SHARE: Final = 0.05
_LINKS_MIN, _LINKS_MAX = 20, 60
_FRAMES_MIN, _FRAMES_MAX = 3, 8

_KINDS: Final = (Kind.PAGE, Kind.PRIVATE, Kind.TEXT, Kind.MISSING, Kind.FAILING, Kind.HOP)
_WEIGHTS: Final = (84, 4, 3, 3, 1, 5)
_PAGE_KINDS: Final = frozenset({Kind.PAGE, Kind.PRIVATE, Kind.HIDDEN})


def is_frameset(resource: Resource) -> bool:
    """Whether the page consists of frames, and so can link with nothing else."""
    return resource.kind is Kind.PAGE and resource.number % 13 == 12


class Graph:
    """The links and redirects of a web, each computed when asked for."""

    def __init__(self, seed: int, hosts: int, pages: int) -> None:
        self._seed = seed
        self._hosts = hosts
        self._pages = pages

    def __repr__(self) -> str:
        return f"Graph(seed={self._seed}, hosts={self._hosts}, pages={self._pages})"

    def rng(self, purpose: str, resource: Resource) -> Random:
        """Randomness that depends on the seed, the resource and the purpose alone."""
        return Random(f"{self._seed}/{purpose}/{resource.host}/{resource.kind}/{resource.number}")

    def count(self, kind: Kind, host: int) -> int:
        """How many resources of a kind the host has."""
        return count_of(kind, host, self._hosts, self._pages)

    def links(self, source: Resource) -> list[Resource]:
        """What a page links to, in the order of the page, repetitions included; empty for other kinds."""
        if source.kind not in _PAGE_KINDS:
            return []
        rng = self.rng("links", source)
        targets = self._spine(source)
        least, most = (_FRAMES_MIN, _FRAMES_MAX) if is_frameset(source) else (_LINKS_MIN, _LINKS_MAX)
        wanted = rng.randint(least, most)
        while len(targets) < wanted:
            if targets and rng.random() < _REPEATED_SHARE:
                targets.append(rng.choice(targets))
            else:
                targets.append(self._pick(rng, source))
        rng.shuffle(targets)
        return targets

    def redirect(self, source: Resource) -> Resource:
        """Where a hop or a loop leads."""
        host, kind, number = source
        if kind is Kind.LOOP:
            return Resource(host, Kind.LOOP, 1 - number)
        rng = self.rng("redirect", source)
        elsewhere = (host + rng.randrange(1, max(2, self._hosts))) % self._hosts
        page = rng.randrange(self._pages)
        match number % 8:
            case 2:
                return Resource(elsewhere, Kind.PAGE, page)
            case 3 | 7:
                return Resource(host, Kind.HOP, number - 1)
            case 4:
                return Resource(host, Kind.PRIVATE, 0)
            case 6:
                return Resource(elsewhere, Kind.HOP, 2)
            case _:
                return Resource(host, Kind.PAGE, page)

    def _spine(self, source: Resource) -> list[Resource]:
        """Links every page has, so that all of a host can be reached and every kind occurs on each."""
        host, kind, number = source
        if kind is not Kind.PAGE:
            ahead = [Resource(host, Kind.HIDDEN, number), Resource(host, Kind.PRIVATE, number + 1)]
            return [target for target in ahead if target.number < self.count(target.kind, host)]
        children = (2 * number + 1, 2 * number + 2)
        spine = [Resource(host, Kind.PAGE, child) for child in children if child < self._pages]
        if number == 0:
            kinds = (*_KINDS[1:], Kind.LOOP)
            spine += [Resource(host, kind, 0) for kind in kinds if self.count(kind, host)]
            spine += [Resource(host, Kind.HOP, 3), Resource(host, Kind.HOP, self.count(Kind.HOP, host) - 1)]
            spine += [Resource(host, Kind.FAILING, n) for n in range(1, self.count(Kind.FAILING, host))]
        return spine

    def _pick(self, rng: Random, source: Resource) -> Resource:
        host = source.host if rng.random() < _LOCAL_SHARE else rng.randrange(self._hosts)
        kind = rng.choices(_KINDS, _WEIGHTS)[0]
        if kind is Kind.PRIVATE and source.kind is not Kind.PAGE and rng.random() < 0.5:
            kind = Kind.HIDDEN
        count = self.count(kind, host)
        return Resource(host, kind, rng.randrange(count)) if count else Resource(host, Kind.PAGE, 0)
