"""Looks at owned partitions in Redis, and the leases that they renew.

A look tells what others have put into a partition, whether hosts of it are due, and whether it is still owned. It is
taken of each partition to which something has happened here, or for which something has arrived from others. The rest
is looked at once in `SLOW_LOOK_MS`, in case nobody was told. Their leases are renewed all the same, which costs Redis a
tenth of a look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.scheduler.owner.timetable import Timetable

if TYPE_CHECKING:
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.redisdb.scripts import Identity, PartitionView
    from bigcrawl.scheduler.crawl.arrivals import Arrivals
    from bigcrawl.scheduler.owner.claiming.claims import Claims
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.owned_table import OwnedTable

SLOW_LOOK_MS = 60_000
SLOW_PORTIONS = 32
RENEWED_AT_ONCE = 1_024  # leases in one call: two ms in which the server does nothing else
# How much of a lease may be over at the next beat: of a node that has URLs, which it would give up after the lease, and
# of one that has none.
OVER_MAX, IDLE_OVER_MAX = 1 / 4, 1 / 2
NEXT_BEAT_MS = 2_000


class Looks:
    """The looks of one node.

    Args:
        crawl: its name.
        lease_ms: how long a lease lasts.
        client: of the crawl's Redis.
        table: the partitions of the node.
        claims: knows which partitions are being claimed.
        arrivals: tell what others have put into partitions.
    """

    def __init__(
        self, crawl: str, lease_ms: int, client: RedisClient, table: OwnedTable, claims: Claims, arrivals: Arrivals
    ) -> None:
        self._crawl = crawl
        self._lease_ms = lease_ms
        self._client = client
        self._table = table
        self._claims = claims
        self._arrivals = arrivals
        # When the lease of each was renewed last, and when it was looked at last; on the monotonic clock.
        self._renewed: Timetable[OwnedPartition] = Timetable()
        self._looked: Timetable[OwnedPartition] = Timetable()
        self._known = (0, 0)

    def __repr__(self) -> str:
        return f"<Looks at {self._table!r}>"

    async def run(self, now_ms: int, *, holds_urls: bool, sees_all: bool) -> list[tuple[OwnedPartition, PartitionView]]:
        """Look at the partitions that need it, and renew the leases that need it.

        Args:
            now_ms: on the monotonic clock.
            holds_urls: whether the node has URLs, which it would give up after the end of its leases.
            sees_all: whether to look at all partitions, and not only briefly.

        Returns:
            The partitions that were looked at and are still owned, with their views. Lost ones are removed.

        Raises:
            TransientStoreError: Redis is away; the next call looks again.
        """
        self._forget_gone()
        await self._note_arrivals()
        looked = self._claims.current(self._table.by_number.values() if sees_all else self._to_look_at(now_ms))
        over_ms = max(0, self._lease_ms * (OVER_MAX if holds_urls else IDLE_OVER_MAX) - NEXT_BEAT_MS)
        renewed = self._claims.current(self._renewed.take(now_ms - over_ms)).difference(looked)
        try:
            found = await self._ask(list(looked), list(renewed), is_brief=not sees_all)
        except BaseException:
            now_ms = 0
            raise
        finally:
            for each in filter(self._table.has, looked | renewed):
                self._renewed.note(each, now_ms)
            for each in filter(self._table.has, looked):
                self._looked.note(each, now_ms)
        return found

    @property
    def renewed_ms(self) -> int:
        """When the oldest lease was renewed, on the monotonic clock; `NEVER_MS` without partitions."""
        return self._renewed.next_ms

    def _forget_gone(self) -> None:
        known = self._table.claims, len(self._table.by_number)
        if known != self._known:
            self._known = known
            for times in (self._renewed, self._looked):
                times.keep(self._table.has)

    async def _note_arrivals(self) -> None:
        by_number, told = self._table.by_number, await self._arrivals.hear()
        arrived = by_number.values() if told is None else [by_number[each] for each in told & by_number.keys()]
        self._table.news.to_look.update(arrived)

    def _to_look_at(self, now_ms: int) -> set[OwnedPartition]:
        """Those with news, and those that were not looked at for long, a few at a time."""
        old = self._looked.take(now_ms - SLOW_LOOK_MS, 1 + len(self._table.by_number) // SLOW_PORTIONS)
        return self._table.news.to_look.union(old)

    async def _ask(
        self, looked: list[OwnedPartition], renewed: list[OwnedPartition], *, is_brief: bool
    ) -> list[tuple[OwnedPartition, PartitionView]]:
        news = self._table.news.to_look
        news.difference_update(looked)  # what happens while the look is under way calls for another one
        try:
            views = await self._client.run(
                [
                    *(self._look(each.keys, each.identity, is_brief=is_brief) for each in looked),
                    *(self._look(partition_keys(self._crawl, p), of) for p, of in self._claims.opening.items()),
                ]
            )
            lost = await self._renew(renewed)
        except BaseException:
            news.update(filter(self._table.has, looked))
            raise
        found = list(zip(looked, views, strict=False))
        for each in (*lost, *(each for each, view in found if not view.owned)):
            self._table.lose(each)
        return [(each, view) for each, view in found if view.owned]

    def _look(self, keys: PartitionKeys, identity: Identity, *, is_brief: bool = True) -> scripts.Call[PartitionView]:
        return scripts.look_partition(keys, identity, self._lease_ms, is_brief=is_brief)

    async def _renew(self, owned: list[OwnedPartition]) -> list[OwnedPartition]:
        """Renew leases. Return the partitions that are lost."""
        if not owned:
            return []
        at_once = 1 if await self._client.is_cluster() else RENEWED_AT_ONCE
        portions = [owned[start : start + at_once] for start in range(0, len(owned), at_once)]
        lost = await self._client.run([self._renewal(portion) for portion in portions])
        return [portion[at] for portion, places in zip(portions, lost, strict=True) for at in places]

    def _renewal(self, owned: list[OwnedPartition]) -> scripts.Call[list[int]]:
        node, epochs = owned[0].identity.node, [each.identity.epoch for each in owned]
        return scripts.renew_leases([each.keys for each in owned], node, epochs, self._lease_ms)
