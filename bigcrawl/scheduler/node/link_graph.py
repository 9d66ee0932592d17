"""Which pay-level domains link to which (STAR, before step 3): edges that are found on pages travel with the URLs.

Links from one PLD to another raise the target's in-degree once for each pair, however many URLs they lead to and
whether these are new or not. So edges do not go through the URLs' seen check. A node sends each pair that it has not
sent lately, with the next batch of URLs for the target's partition, and the partition's owner counts distinct pairs. An
edge is a hint, not a URL: if it dies with its node, another page shows it again.
Source: IRLbot §5.2 (crawling threads aggregate PLD-PLD link information).
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING

from bigcrawl.scheduler.node.recent_keys import RecentKeys
from bigcrawl.url.canonical import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bigcrawl.url.key import PldKey

# Places for pairs that were sent: 0.5 MB. Most pairs of a page are on other pages of its site, too.
RECENT_EDGES = 1 << 16

ORIGINS_CACHED = 1 << 15  # schemes and hosts, with the keys of their PLDs: some 5 MB

_EDGE = struct.Struct("<QQ")
_OVERDUE_BYTES = 64 * _EDGE.size
_MASK = (1 << 64) - 1


class LinkGraph:
    """The edges that a node has found and not sent yet."""

    def __init__(self, pld_of: Callable[[str], str], pld_key: Callable[[str], PldKey], partitions: int) -> None:
        self._key_of = lru_cache(ORIGINS_CACHED)(lambda origin: pld_key(pld_of(host_of(origin))))
        self._partitions = partitions
        self._recent = RecentKeys(RECENT_EDGES)
        self._waiting: dict[int, bytearray] = {}

    def __repr__(self) -> str:
        return f"<LinkGraph partitions={len(self._waiting)}>"

    def note(self, page: str, urls: Iterable[str]) -> None:
        """Note where a page's links lead; links within its PLD do not count.

        Args:
            page: the page's URL.
            urls: canonical URLs; others are ignored.

        Cost: about 0.1 us a link to the page's own host, 0.5 us for another.
        """
        origin, key_of = _origin_of(page), self._key_of
        try:
            source = key_of(origin)
            targets = {key_of(_origin_of(url)) for url in urls if not url.startswith(origin)}
        except (ValueError, IndexError):
            return  # not a page of the web, so its links do not count
        targets.discard(source)
        if targets:
            self._add(source, targets)

    def _add(self, source: int, targets: Iterable[int]) -> None:
        remember = self._recent.remember
        for target in [target for target in targets if remember((source * 31 + target) & _MASK)]:
            self._waiting.setdefault(target % self._partitions, bytearray()).extend(_EDGE.pack(source, target))

    def take(self, partition: int) -> bytes:
        """Take the edges that wait for a partition: 16 bytes each, little-endian, the PLD keys of source and target."""
        return bytes(self._waiting.pop(partition, b""))

    def send_again(self) -> None:
        """Redis may have forgotten edges: send all that are found from now on, even if they were sent before."""
        self._recent.clear()

    def overdue(self) -> list[int]:
        """The partitions for which many edges wait, so that they get a batch without URLs."""
        return [partition for partition, edges in self._waiting.items() if len(edges) >= _OVERDUE_BYTES]


def _origin_of(canonical: str) -> str:
    """Scheme, host and port, with the slash after them."""
    return canonical[: canonical.find("/", 8) + 1]
