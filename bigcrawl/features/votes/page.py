from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from bigcrawl.features.votes.ranks import NOT_GIVEN, received_of, share_of
from bigcrawl.features.votes.rows import VOTED, pack_votes
from bigcrawl.features.votes.settings import VoteConfig
from bigcrawl.scheduler.handout.observers import NodeSide, Observer
from bigcrawl.scheduler.node.link_graph import RecentKeys
from bigcrawl.scheduler.queues.front_queues import level_of
from bigcrawl.url.canonical import host_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.scheduler.records.held import HeldUrl

BALLOT_URLS_MAX: Final = 4_000  # for one page, 10 ms of the event loop; its other links get no votes
VOTES_MAX: Final = 1 << 17  # waiting votes, some 20 MB; later ones are lost while Redis is away
HOSTS_CACHED: Final = 1 << 15  # with their partitions
RECENT_VOTES: Final = 1 << 16
_OVERDUE_VOTES: Final = 512
_LEVEL_STEP: Final = 0x9E3779B97F4A7C15  # spreads the levels of a key over all places
_MASK: Final = (1 << 64) - 1


def observer_of(side: NodeSide) -> PageVotes:
    return PageVotes(side, have_ranks=side.config.feature_config(VoteConfig).have_ranks)


class Ballot:
    """The URLs found on a page so far, each with its highest priority. A page gives its rank once, to other pages."""

    __slots__ = ("_votes", "hands_on", "page", "priorities", "received")

    def __init__(self, votes: PageVotes, page: str, received: float, *, hands_on: bool = True) -> None:
        self._votes = votes
        self.page = page
        self.received = received
        self.hands_on = hands_on
        self.priorities: dict[str, int] = {}

    def add(self, urls: Iterable[str], priority: int) -> None:
        priorities = self.priorities
        for url in urls:
            if priorities.get(url, NOT_GIVEN) < priority and len(priorities) < BALLOT_URLS_MAX and url != self.page:
                priorities[url] = priority

    def end(self) -> None:
        self._votes.cast_votes(self)


class PageVotes(Observer):
    kind = VOTED

    def __init__(self, side: NodeSide, *, have_ranks: bool = True) -> None:
        pld_of, pld_key, partitions = side.pld_of, side.pld_key, side.partitions
        self._key_of = side.key_of
        self._was_fetched = side.was_fetched
        self._partition_of = lru_cache(HOSTS_CACHED)(lambda host: pld_key(pld_of(host)) % partitions)
        self._have_ranks = have_ranks
        self._recent = RecentKeys(RECENT_VOTES)
        self._waiting: dict[int, dict[int, tuple[float, int]]] = {}
        self._count = 0
        self.lost = 0
        """Votes dropped because too many waited."""
        side.carry(self)

    def links_of(self, held: HeldUrl) -> Ballot:
        return Ballot(self, held.url, received_of(held.fields.flags), hands_on=not self._was_fetched(held))

    def cast_votes(self, ballot: Ballot) -> None:
        if not ballot.priorities:
            return
        has_rank = self._have_ranks and ballot.hands_on
        share = share_of(ballot.received, len(ballot.priorities)) if has_rank else 0.0
        for url, priority in ballot.priorities.items():
            try:
                key, partition = self._key_of(url.encode()), self._partition_of(host_of(url))
            except (ValueError, IndexError):
                continue  # not a URL of the web
            if has_rank or self._recent.remember(key ^ level_of(priority) * _LEVEL_STEP & _MASK):
                self._add_vote(partition, key, share, priority)

    def _add_vote(self, partition: int, key: int, share: float, priority: int) -> None:
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
        votes = self._waiting.pop(partition, None)
        if not votes:
            return b""
        self._count -= len(votes)
        return pack_votes([(key, *vote) for key, vote in votes.items()])

    def overdue(self) -> list[int]:
        return [partition for partition, votes in self._waiting.items() if len(votes) >= _OVERDUE_VOTES]

    def send_again(self) -> None:
        self._recent.clear()
