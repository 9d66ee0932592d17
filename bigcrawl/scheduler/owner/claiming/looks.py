"""Reads the state of owned partitions from Redis and renews their leases.

A partition is read after events and arrivals. In case a notice was lost, all are read every
`SLOW_LOOK_MS`, and after a node has gone, which may have died before it gave notice. Leases are renewed by block, on a
cluster one by one (decision 0200).
"""

from __future__ import annotations

from collections import defaultdict
from itertools import takewhile
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.scheduler.owner.hot.due_heap import NEVER_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, KeysView

    from bigcrawl.redisdb.scripts import PartitionView
    from bigcrawl.scheduler.crawl.joined_crawl import JoinedCrawl
    from bigcrawl.scheduler.owner.claiming.claims import Claims
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.owned_table import OwnedTable

    Partitions = set[OwnedPartition]

SLOW_LOOK_MS = 300_000
# The part of a lease that may have passed by the next beat, with and without held URLs.
OVER_MAX, IDLE_OVER_MAX = 1 / 4, 1 / 2
NEXT_BEAT_MS = 2_000
_number = attrgetter("keys.partition")


class PartitionPolls:
    def __init__(self, crawl: JoinedCrawl, table: OwnedTable, claims: Claims) -> None:
        self._crawl = crawl.config.crawl.name
        self._lease_ms = crawl.config.frontier.lease_ms
        self._client = crawl.client
        self._table = table
        self._claims = claims
        self._arrivals = crawl.arrivals
        self._membership = crawl.membership
        self._gone = 0
        self._renewed = LastTimes()
        self._looked = LastTimes()
        self._known = (0, 0)

    async def poll_and_renew(
        self, now_ms: int, *, holds_urls: bool, sees_all: bool, has_written: bool = False
    ) -> list[tuple[OwnedPartition, PartitionView]]:
        """Read the partitions and renew the leases that need it. Lost partitions leave the table.

        `holds_urls`: the node has URLs to give up when a lease ends. `sees_all`: read every partition, and in full.
        `has_written`: Redis writes in this second anyway.
        """
        await self._record_arrivals()
        self._forget_gone()
        by_number, claims = self._table.by_number, self._claims
        looked = claims.up_to_date(by_number.values() if sees_all else self._due_for_poll(now_ms))
        over_ms = max(0, self._lease_ms * (OVER_MAX if holds_urls else IDLE_OVER_MAX) - NEXT_BEAT_MS)
        passed_ms, is_cluster = now_ms - self._renewed.oldest_ms, await self._client.is_cluster()
        renewed: Partitions = set()
        if passed_ms >= over_ms and is_cluster:
            # Each costs a call, so those that are not due for long are left, and those that are read.
            renewed = claims.up_to_date(self._renewed.not_since(now_ms - over_ms / 2)) - looked
        elif passed_ms >= (over_ms / 2 if has_written else over_ms):
            renewed = claims.up_to_date(by_number.values())
        # New partitions, and all on a cluster, are in no block lease; so a look renews their own leases.
        extended = looked if is_cluster else looked - self._renewed.known
        found = await self._poll(looked, extended, renewed, is_brief=not sees_all)
        self._renewed.record_now((*extended, *renewed), now_ms)
        self._looked.record_now(looked, now_ms)
        return found

    @property
    def renewed_ms(self) -> int:
        """The oldest renewal, on the monotonic clock; `NEVER_MS` without partitions."""
        return self._renewed.oldest_ms

    def _forget_gone(self) -> None:
        known = self._table.claims, len(self._table.by_number)
        if known != self._known:
            self._known = known
            self._renewed.keep_only(self._table.has)
            self._looked.keep_only(self._table.has)

    async def _record_arrivals(self) -> None:
        told, table = await self._arrivals.take(), self._table
        is_any_missed = told is None or self._gone != self._membership.gone
        self._gone = self._membership.gone
        table.pending.to_look.update(table.by_number.values() if is_any_missed else table.owned_among(told or ()))

    def _due_for_poll(self, now_ms: int) -> set[OwnedPartition]:
        return self._table.pending.to_look.union(self._looked.not_since(now_ms - SLOW_LOOK_MS + NEXT_BEAT_MS))

    async def _poll(
        self, looked: Partitions, extended: Partitions, renewed: Partitions, *, is_brief: bool
    ) -> list[tuple[OwnedPartition, PartitionView]]:
        pending = self._table.pending.to_look
        pending.clear()
        look, lease_ms, opened = scripts.look_partition, self._lease_ms, self._claims.being_opened
        looks = [look(o.keys, o.identity, lease_ms * (o in extended), is_brief=is_brief) for o in looked]
        looks += [look(partition_keys(self._crawl, p), of, lease_ms, is_brief=True) for p, of in opened.items()]
        try:
            views = await self._client.run(looks) if looks else []
            lost = await self._renew_leases(sorted(renewed, key=_number))
        except BaseException:
            pending.update(filter(self._table.has, looked))
            raise
        found = list(zip(looked, views, strict=False))
        for each in (*lost, *(each for each, view in found if not view.owned)):
            self._table.remove_lost(each)
        return [(each, view) for each, view in found if view.owned]

    async def _renew_leases(self, owned: list[OwnedPartition]) -> list[OwnedPartition]:
        if not owned:
            return []
        is_cluster = await self._client.is_cluster()
        portions = [[each] for each in owned] if is_cluster else await self._renew_block_leases(owned)
        lost = await self._client.run([self._renewal_call(portion) for portion in portions])
        return [portion[at] for portion, places in zip(portions, lost, strict=True) for at in places]

    async def _renew_block_leases(self, owned: list[OwnedPartition]) -> list[list[OwnedPartition]]:
        """Renew the node's block leases. Return the partitions of blocks that have other members in Redis."""
        blocks: defaultdict[str, list[OwnedPartition]] = defaultdict(list)
        for each in owned:
            blocks[each.keys.leases].append(each)
        epochs = {name: [(each.keys.partition, each.identity.epoch) for each in blocks[name]] for name in blocks}
        [others] = await self._client.run([scripts.renew_block_leases(epochs, self._membership.node, self._lease_ms)])
        return [blocks[name] for name in others]

    def _renewal_call(self, owned: list[OwnedPartition]) -> scripts.Call[list[int]]:
        node, epochs = owned[0].identity.node, [each.identity.epoch for each in owned]
        return scripts.renew_leases([each.keys for each in owned], node, epochs, self._lease_ms)


class LastTimes:
    """When something last happened to each partition, on the monotonic clock, oldest first."""

    def __init__(self) -> None:
        self._times: dict[OwnedPartition, int] = {}
        self._last_ms = 0

    def record_now(self, partitions: Iterable[OwnedPartition], now_ms: int) -> None:
        for each in partitions:
            self._times.pop(each, None)
            self._times[each] = now_ms
        if now_ms < self._last_ms:  # a later call was answered sooner
            self._times = dict(sorted(self._times.items(), key=itemgetter(1)))
        self._last_ms = max(now_ms, self._last_ms)

    @property
    def known(self) -> KeysView[OwnedPartition]:
        return self._times.keys()

    def keep_only(self, has: Callable[[OwnedPartition], bool]) -> None:
        self._times = {each: then_ms for each, then_ms in self._times.items() if has(each)}

    def not_since(self, upto_ms: float) -> list[OwnedPartition]:
        return [each for each, _ in takewhile(lambda row: row[1] <= upto_ms, self._times.items())]

    @property
    def oldest_ms(self) -> int:
        return next(iter(self._times.values()), NEVER_MS)
