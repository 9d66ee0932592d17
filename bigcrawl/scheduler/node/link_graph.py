"""Links between pay-level domains, which travel with the URLs, and recently sent keys, which are not sent again.

The links of one PLD raise the in-degree of another by one, whether their URLs are new or not. So these links (edges)
skip the seen check: a node sends each pair of PLDs that it has not sent recently with the next batch for the target's
partition, and the owner counts distinct pairs. An edge that dies with its node is found again on another page.
Source: IRLbot §5.2 (crawling threads aggregate PLD-PLD link information), and Mercator's cache of popular URLs.
Differs: the source may be an address, and the target also a unit of a shared domain (`budgets.units`).
"""

from __future__ import annotations

import struct
import sys
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.scan import other_origins, remember
from bigcrawl.url.canonical import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.units import BudgetUnits
    from bigcrawl.url.key import PldKey

_PORTION = 1 << 15  # fits into a cache

# At first half a MB, at last 8. Most pairs of a page recur on other pages of its site.
RECENT_EDGES, RECENT_EDGES_MAX = 1 << 16, 1 << 20

ORIGINS_CACHED = 1 << 15

_EDGE = struct.Struct("<QQ")
_OVERDUE_BYTES = 64 * _EDGE.size


class RecentKeys:
    """A table of pairs of places, 8 bytes each. A key's low bits name its pair, which holds the last two keys it met.

    So a key that recurs stays, however many others come once. The table is doubled, up to `places_max` places, each
    time that a sixteenth as many new keys have come: a small crawl needs little memory, and few keys are displaced.
    """

    def __init__(self, places: int, places_max: int = 0) -> None:
        """Both numbers are powers of two; `places` is above 2."""
        assert places > 2, "one pair would hold any key at the start"
        assert places & (places - 1) == 0, "low bits name a pair"
        self._places_max = places_max
        self._use_table(np.empty(places, dtype=np.uint64))
        self.clear()

    def __repr__(self) -> str:
        return f"<RecentKeys of {len(self._keys)}>"

    def _use_table(self, keys: KeyArray) -> None:
        self._keys = keys
        self._places = keys.data
        self._mask = len(keys) // 2 - 1
        self._new_left = len(keys) // 16 if len(keys) < self._places_max else sys.maxsize

    def clear(self) -> None:
        self._keys[:] = (np.arange(len(self._keys), dtype=np.uint64) >> np.uint64(1)) ^ np.uint64(1)

    def remember(self, key: int) -> bool:
        """Record a key, and return whether it was not seen recently."""
        place, places = (key & self._mask) << 1, self._places
        if places[place] == key:
            return False
        is_new = places[place + 1] != key
        places[place + 1], places[place] = places[place], key
        self._count_new(int(is_new))
        return is_new

    def remember_each(self, keys: list[int]) -> list[int]:
        """Record keys, modulo 2**64, and return the positions of those not seen recently, ascending."""
        new = remember(self._places, self._mask, keys)
        self._count_new(len(new))
        return new

    def _count_new(self, keys: int) -> None:
        self._new_left -= keys
        if self._new_left < 0:
            self._use_table(np.concatenate((self._keys, self._keys)))
            self._empty_others()

    def _empty_others(self) -> None:
        """Empty the places whose keys belong to other pairs, by a key that cannot be there. Cost: 7 ms a million."""
        for start in range(0, len(self._keys), _PORTION):
            held = self._keys[start : start + _PORTION]
            pairs = np.arange(start, start + len(held), dtype=np.uint64) >> np.uint64(1)
            np.copyto(held, pairs ^ np.uint64(1), where=held & np.uint64(self._mask) != pairs)


class LinkGraph:
    def __init__(
        self,
        pld_of: Callable[[str], str],
        pld_key: Callable[[str], PldKey],
        partitions: int,
        source_of: Callable[[str], int | None] | None = None,
        units: BudgetUnits | None = None,
    ) -> None:
        """`source_of` returns the key under which a host's links count, None if unknown; by default, its PLD's."""
        self._source_of = source_of
        self._units = units
        self._key_of = lru_cache(ORIGINS_CACHED)(lambda origin: pld_key(pld_of(host_of(origin))))
        self._partitions = partitions
        self._recent = RecentKeys(RECENT_EDGES, RECENT_EDGES_MAX)
        self._waiting: defaultdict[int, bytearray] = defaultdict(bytearray)

    def __repr__(self) -> str:
        return f"<LinkGraph partitions={len(self._waiting)}>"

    def note(self, page: str, urls: Iterable[str]) -> None:
        origin, key_of = _origin_of(page), self._key_of
        try:
            source = key_of(origin)
            targets = {*map(key_of, other_origins(urls, origin))}
        except (ValueError, IndexError):
            return  # not a page of the web
        targets.discard(source)
        counted = source if self._source_of is None else self._source_of(host_of(origin))
        if targets and counted is not None:
            plds = list(targets)
            self._add(counted, plds, plds)
            if self._units is not None:
                units = dict(self._units_of(urls, targets))
                self._add(counted, list(units), list(units.values()))

    def _units_of(self, urls: Iterable[str], targets: set[PldKey]) -> Iterable[tuple[int, int]]:
        units = self._units
        assert units is not None
        for url in urls:
            pld = self._key_of(url[: url.find("/", 8) + 1])
            if pld in targets and (unit := units.name_of(host_of(url), url)):
                yield units.key_of(unit), pld

    def _add(self, source: int, targets: Sequence[int], plds: Sequence[int]) -> None:
        """Add the edges to targets that were not sent recently; `plds` are those of the targets."""
        waiting, partitions, start = self._waiting, self._partitions, source * 31
        for at in self._recent.remember_each([start + target for target in targets]):
            waiting[plds[at] % partitions].extend(_EDGE.pack(source, targets[at]))

    def take(self, partition: int) -> bytes:
        """Take the edges that wait for a partition: two little-endian PLD keys of 8 bytes, source and target."""
        return bytes(self._waiting.pop(partition, b""))

    def send_again(self) -> None:
        self._recent.clear()

    def overdue(self) -> list[int]:
        return [partition for partition, edges in self._waiting.items() if len(edges) >= _OVERDUE_BYTES]


def _origin_of(canonical: str) -> str:
    return canonical[: canonical.find("/", 8) + 1]
