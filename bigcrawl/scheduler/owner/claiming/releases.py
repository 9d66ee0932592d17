"""Releases partitions of a node, with all that they know in durable files, so that others may claim them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.owner.durable_rounds import DURABLE_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.owner.durable_rounds import DurableRounds
    from bigcrawl.scheduler.owner.node_store import NodeStore
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.owned_table import OwnedTable
    from bigcrawl.scheduler.records.held_urls import HeldUrls

RELEASED, NOT_OURS = 1, 0  # replies of release_partition


class Releases:
    """Releases partitions that the node should not own, or all of them when it leaves."""

    def __init__(
        self, client: RedisClient, table: OwnedTable, held: HeldUrls, durable_rounds: DurableRounds, store: NodeStore
    ) -> None:
        """Release partitions of `table`, once nothing of them is `held`."""
        self._client = client
        self._table = table
        self._held = held
        self._durable_rounds = durable_rounds
        self._store = store

    def __repr__(self) -> str:
        return f"<Releases of {self._table!r}>"

    async def release(self, leaving: Iterable[OwnedPartition]) -> None:
        """Release those of the partitions of which the node holds no URL.

        Raises:
            TransientStoreError: Redis, the store or the disk failed. What was not released stays owned.
        """
        free = [owned for owned in leaving if not self._held.by_partition(owned.keys.partition)]
        # A few at a time. A node that must exit within seconds leaves the rest to their leases.
        for start in range(0, len(free), DURABLE_AT_ONCE):
            await self._release(free[start : start + DURABLE_AT_ONCE])

    async def _release(self, free: list[OwnedPartition]) -> None:
        """Release partitions. One with taken URLs in Redis stays, because a take may be under way."""
        await self._durable_rounds.force(free)
        await self._store.put_last(free)
        calls = [call for p in free for call in (p.publish(), scripts.release_partition(p.keys, p.identity))]
        for owned in free:
            owned.drain()
        results = await self._client.run_each(calls)
        for owned, released in zip(free, results[1::2], strict=True):
            if released in (RELEASED, NOT_OURS):
                self._table.remove(owned)
