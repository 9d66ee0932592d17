"""What pages' links say (before step 3): edges between pay-level domains, and votes for URLs, travel with the URLs.

Links from one PLD to another raise the target's in-degree once for each pair, however many URLs they lead to and
whether these are new or not. So edges do not go through the URLs' seen check. A node sends each pair that it has not
sent lately, with the next batch of URLs for the target's partition, and the partition's owner counts distinct pairs. An
edge is a hint, not a URL: if it dies with its node, another page shows it again.

Votes are hints too, and only sent if they are counted. They are added up by URL until the next batch. If URLs need no
ranks, a vote that was sent lately is not sent again.
Source: IRLbot §5.2 (crawling threads aggregate PLD-PLD link information).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from bigcrawl.scheduler.node.recent_keys import RecentKeys
from bigcrawl.scheduler.queues.front_queues import level_of
from bigcrawl.scheduler.records.votes import NOT_GIVEN, pack_votes, share_of
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

BALLOT_URLS_MAX = 4_000  # of a page, 10 ms of the event loop; its other links get nothing
VOTES_MAX = 1 << 17  # that wait: some 20 MB. Later ones are lost while Redis is away.
_OVERDUE_VOTES = 512
RECENT_VOTES = 1 << 16
_LEVEL_STEP = 0x9E3779B97F4A7C15  # spreads the levels of a key over all places


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
            targets = {key_of(url[: url.find("/", 8) + 1]) for url in urls if not url.startswith(origin)}
        except (ValueError, IndexError):
            return  # not a page of the web, so its links do not count
        targets.discard(source)
        if targets:
            self._add(source, targets)

    def _add(self, source: int, targets: Iterable[int]) -> None:
        remember, waiting, partitions = self._recent.remember, self._waiting, self._partitions
        for target in targets:
            if remember((source * 31 + target) & _MASK):
                waiting.setdefault(target % partitions, bytearray()).extend(_EDGE.pack(source, target))

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


@dataclass(slots=True)
class Ballot:
    """The URLs that a page was found to link to until now, with the highest priority of each.

    Attributes:
        page: its canonical URL; a link to itself does not count.
        received: what it had received when it was admitted.
        hands_on: whether it hands on its rank. A page that is visited again has done so; its links say priorities only.
    """

    page: str
    received: float
    hands_on: bool = True
    priorities: dict[str, int] = field(default_factory=dict)

    def add(self, urls: Iterable[str], priority: int) -> None:
        """The page links to these canonical URLs, with this priority."""
        priorities = self.priorities
        for url in urls:
            if priorities.get(url, NOT_GIVEN) < priority and len(priorities) < BALLOT_URLS_MAX and url != self.page:
                priorities[url] = priority


class PageVotes:
    """The votes that a node has for URLs and has not sent yet, added up by URL.

    Args:
        key_of: returns the key of a canonical URL.
        partition_of: returns the partition of a host.
        has_ranks: whether pages hand on their ranks. If not, votes only say priorities.
    """

    def __init__(
        self, key_of: Callable[[str], int], partition_of: Callable[[str], int], *, has_ranks: bool = True
    ) -> None:
        self._key_of = key_of
        self._partition_of = lru_cache(ORIGINS_CACHED)(partition_of)
        self._has_ranks = has_ranks
        self._recent = RecentKeys(RECENT_VOTES)
        self._waiting: dict[int, dict[int, tuple[float, int]]] = {}
        self._count = 0
        self.lost = 0
        """How many votes found no room."""

    def __repr__(self) -> str:
        return f"<PageVotes waiting={self._count} lost={self.lost}>"

    def cast(self, ballot: Ballot) -> None:
        """Take the votes of a page that has been parsed to its end. Cost: 2 us a link."""
        if not ballot.priorities:
            return
        has_rank = self._has_ranks and ballot.hands_on
        share = share_of(ballot.received, len(ballot.priorities)) if has_rank else 0.0
        for url, priority in ballot.priorities.items():
            try:
                key, partition = self._key_of(url), self._partition_of(host_of(url))
            except (ValueError, IndexError):
                continue  # no URL of the web
            if has_rank or self._recent.remember(key ^ level_of(priority) * _LEVEL_STEP & _MASK):
                self._add(partition, key, share, priority)

    def _add(self, partition: int, key: int, share: float, priority: int) -> None:
        votes = self._waiting.setdefault(partition, {})
        before = votes.get(key)
        if before is not None:
            votes[key] = before[0] + share, max(before[1], priority)
        elif self._count < VOTES_MAX:
            votes[key] = share, priority
            self._count += 1
        else:
            self.lost += 1

    def take(self, partition: int) -> bytes:
        """Take the votes that wait for a partition, as `pack_votes` packs them; empty if there are none."""
        votes = self._waiting.pop(partition, None)
        if not votes:
            return b""
        self._count -= len(votes)
        return pack_votes([(key, *vote) for key, vote in votes.items()])

    def send_again(self) -> None:
        """Redis may have forgotten votes: send all that are found from now on, even if they were sent before."""
        self._recent.clear()

    def overdue(self) -> list[int]:
        """The partitions for which many votes wait, so that they get a batch without URLs."""
        return [partition for partition, votes in self._waiting.items() if len(votes) >= _OVERDUE_VOTES]
