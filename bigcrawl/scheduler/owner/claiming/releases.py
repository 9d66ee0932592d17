"""Releases partitions of a node, after all their state is in durable files, so that others may claim them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.owner.durable_rounds import DURABLE_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.owner.durable_rounds import DurableRounds
    from bigcrawl.scheduler.owner.no_store import NoStore
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.owned_table import OwnedTable
    from bigcrawl.scheduler.records.held_urls import HeldUrls

RELEASED, NOT_OURS = 1, 0


class PartitionReleases:
    """Releases partitions that the node should not own, or all of them when it leaves."""

    def __init__(
        self, client: RedisClient, table: OwnedTable, held: HeldUrls, durable_rounds: DurableRounds, store: NoStore
    ) -> None:
        self._client = client
        self._table = table
        self._held = held
        self._durable_rounds = durable_rounds
        self._store = store

    async def release(self, leaving: Iterable[OwnedPartition]) -> None:
        """Release the partitions, except those of which the node holds URLs.

        Raises:
            TransientStoreError: Redis, the store or the disk failed. Unreleased partitions stay owned.
        """
        free = [owned for owned in leaving if not self._held.by_partition(owned.keys.partition)]
        empty: list[OwnedPartition] = []
        others: list[OwnedPartition] = []
        for owned in free:
            (empty if _has_nothing_to_tell(owned) else others).append(owned)
        if empty:
            await self._let_go(empty, [])
        # A few at a time. A node that must exit soon leaves the rest to their leases.
        for start in range(0, len(others), DURABLE_AT_ONCE):
            await self._release_free(others[start : start + DURABLE_AT_ONCE])

    async def _release_free(self, free: list[OwnedPartition]) -> None:
        await self._durable_rounds.make_durable(free)
        await self._store.put_last(free)
        await self._let_go(free, [owned.publish() for owned in free])

    async def _let_go(self, free: list[OwnedPartition], last_counts: list[scripts.Call[Any]]) -> None:
        """Release partitions in Redis. One with taken URLs in Redis stays, because a take may be under way."""
        for owned in free:
            owned.drain()
        calls = [scripts.release_partition(owned.keys, owned.identity) for owned in free]
        results = await self._client.run_each([*last_counts, *calls])
        for owned, released in zip(free, results[len(last_counts) :], strict=True):
            if released in (RELEASED, NOT_OURS):
                self._table.remove(owned)


def _has_nothing_to_tell(owned: OwnedPartition) -> bool:
    return owned.disk.committed.is_untouched and not (owned.is_damaged or owned.publishing.is_owed)
