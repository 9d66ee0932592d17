"""Links between pay-level domains, which travel with the URLs.

The links of one PLD raise the in-degree of another by one, whether their URLs are new or not. So these links (edges)
skip the seen check: a node sends each pair of PLDs that it has not sent recently with the next batch for the target's
partition, and the owner counts distinct pairs. An edge that dies with its node is found again on another page.
Source: IRLbot §5.2 (crawling threads aggregate PLD-PLD link information). Differs: the source may be an address, and
the target also a unit of a shared domain (`budgets.units`).
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING

from bigcrawl.scheduler.node.recent_keys import RecentKeys
from bigcrawl.url.canonical import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bigcrawl.scheduler.budgets.units import BudgetUnits
    from bigcrawl.url.key import PldKey

# At first half a MB, at last 8. Most pairs of a page recur on other pages of its site.
RECENT_EDGES, RECENT_EDGES_MAX = 1 << 16, 1 << 20

ORIGINS_CACHED = 1 << 15

_EDGE = struct.Struct("<QQ")
_OVERDUE_BYTES = 64 * _EDGE.size
_MASK = (1 << 64) - 1


class LinkGraph:
    def __init__(
        self,
        pld_of: Callable[[str], str],
        pld_key: Callable[[str], PldKey],
        partitions: int,
        source_of: Callable[[str], int | None] | None = None,
        units: BudgetUnits | None = None,
    ) -> None:
        """`source_of` returns what a host's pages count as, None if that is unknown; by default the host's PLD."""
        self._source_of = source_of
        self._units = units
        self._key_of = lru_cache(ORIGINS_CACHED)(lambda origin: pld_key(pld_of(host_of(origin))))
        self._partitions = partitions
        self._recent = RecentKeys(RECENT_EDGES, RECENT_EDGES_MAX)
        self._waiting: dict[int, bytearray] = {}

    def __repr__(self) -> str:
        return f"<LinkGraph partitions={len(self._waiting)}>"

    def note(self, page: str, urls: Iterable[str]) -> None:
        origin, key_of = _origin_of(page), self._key_of
        try:
            source = key_of(origin)
            targets = {key_of(url[: url.find("/", 8) + 1]) for url in urls if not url.startswith(origin)}
        except (ValueError, IndexError):
            return  # not a page of the web
        targets.discard(source)
        counted = source if self._source_of is None else self._source_of(host_of(origin))
        if targets and counted is not None:
            self._add(counted, ((target, target) for target in targets))
            if self._units is not None:
                self._add(counted, self._units_of(urls, targets))

    def _units_of(self, urls: Iterable[str], targets: set[PldKey]) -> Iterable[tuple[int, int]]:
        units = self._units
        assert units is not None
        for url in urls:
            pld = self._key_of(url[: url.find("/", 8) + 1])
            if pld in targets and (unit := units.name_of(host_of(url), url)):
                yield units.key_of(unit), pld

    def _add(self, source: int, targets: Iterable[tuple[int, int]]) -> None:
        remember, waiting, partitions = self._recent.remember, self._waiting, self._partitions
        for target, pld in targets:
            if remember((source * 31 + target) & _MASK):
                waiting.setdefault(pld % partitions, bytearray()).extend(_EDGE.pack(source, target))

    def take(self, partition: int) -> bytes:
        """Take the edges that wait for a partition: two little-endian PLD keys of 8 bytes, source and target."""
        return bytes(self._waiting.pop(partition, b""))

    def send_again(self) -> None:
        self._recent.clear()

    def overdue(self) -> list[int]:
        return [partition for partition, edges in self._waiting.items() if len(edges) >= _OVERDUE_BYTES]


def _origin_of(canonical: str) -> str:
    return canonical[: canonical.find("/", 8) + 1]
