"""Claims partitions: Redis leases each to one node, which renews the lease, and releases it.

A partition is free if it has no owner, its lease has run out, or its owner is known to be dead. If it had an owner, a
claim takes two calls: the second carries the URLs that the owner had in process. A partition is released after all its
state is in durable files.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from bigcrawl.exceptions import BigcrawlError, OwnershipLostError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.redisdb.scripts import GrantedClaim, Identity, RefusedClaim
from bigcrawl.scheduler.crawl.in_process import UNKNOWN
from bigcrawl.scheduler.crawl.membership import LastOwner
from bigcrawl.scheduler.crawl.missing import MARK, LostFilesError, MissingPartitions
from bigcrawl.scheduler.handout.lanes import WAIT_MS_MAX
from bigcrawl.scheduler.owner.damaged import is_damage
from bigcrawl.scheduler.owner.durable_rounds import DURABLE_AT_ONCE, DurableRounds
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.joined_crawl import JoinedCrawl
    from bigcrawl.scheduler.owner.claiming.opening import Opener
    from bigcrawl.scheduler.owner.no_store import NoStore
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.owned_table import OwnedTable
    from bigcrawl.scheduler.partition.file_work import FileThread
    from bigcrawl.scheduler.records.held_urls import HeldUrls

logger = logging.getLogger(__name__)

ABORT_MS = 5_000
CLAIMED_AT_ONCE = 128
OPENED_AT_ONCE = 32  # from a store, by a busy node

RELEASED, NOT_OURS = 1, 0


class Claims:
    """Claims partitions; `has_claimed` says whether Redis may name this node as an owner."""

    def __init__(
        self,
        crawl: JoinedCrawl,
        table: OwnedTable,
        missing: MissingPartitions,
        opener: Opener,
        thread: FileThread,
        next_generation: Callable[[], int],
    ) -> None:
        self._config = crawl.config
        self._client = crawl.client
        self._membership = crawl.membership
        self._table = table
        self._missing = missing
        self._opener = opener
        self._thread = thread
        self._next_generation = next_generation
        self._stale: set[OwnedPartition] = set()
        self._opening: dict[int, Identity] = {}
        self._rests: dict[int, int] = {}  # the end of the hosts' rests; Redis may forget it
        self.has_claimed = False

    @property
    def is_reclaiming(self) -> bool:
        return bool(self._stale)

    def up_to_date(self, owned: Iterable[OwnedPartition]) -> set[OwnedPartition]:
        return set(owned) - self._stale

    @property
    def being_opened(self) -> Mapping[int, Identity]:
        """The partitions that are claimed but not yet open; their leases must be renewed too."""
        return self._opening

    async def reclaim_all(self) -> None:
        owned = self._table.by_number
        self._stale = set(owned.values())
        await self.claim(sorted(owned))
        self._stale = set()

    async def claim(self, partitions: Sequence[int]) -> None:
        """Claim partitions and open those that were won. They stay owned even if a `TransientStoreError` follows."""
        for start in range(0, len(partitions), CLAIMED_AT_ONCE):
            await self._open_won(await self._won_claims(list(partitions[start : start + CLAIMED_AT_ONCE])))

    async def _won_claims(self, partitions: list[int]) -> dict[int, GrantedClaim]:
        await self._thread.run(self._membership.require_place)
        self.has_claimed = True
        epochs = await self._opener.last_epochs(partitions)
        is_alone_here = await self._thread.run(self._membership.is_alone_here)
        results = await self._client.run([self._claim_call(p, epochs[p], None, is_alone_here) for p in partitions])
        won = {p: result for p, result in zip(partitions, results, strict=True) if isinstance(result, GrantedClaim)}
        refused = {p: r for p, r in zip(partitions, results, strict=True) if isinstance(r, RefusedClaim)}
        tokens, membership = {refusal.token for refusal in refused.values()}, self._membership
        owners = await self._thread.run(lambda: {token: LastOwner.of(token, membership) for token in tokens})
        free = {p: owners[r.token] for p, r in refused.items() if owners[r.token].is_dead or r.left_ms <= 0}
        again = await self._client.run(
            [self._claim_call(p, epochs[p], last, is_alone_here) for p, last in free.items()]
        )
        won |= {p: result for p, result in zip(free, again, strict=True) if isinstance(result, GrantedClaim)}
        self._rests |= {p: result.rest_ms for p, result in won.items()}
        return won

    async def _open_won(self, won: dict[int, GrantedClaim]) -> None:
        node = self._membership.node
        self._opening = {p: Identity(node, claim.epoch, claim.generation) for p, claim in won.items()}
        try:
            trimmed = await self._opener.trimmed_up_to(list(won))
            opening = (self._open_one(p, claim, trimmed[p]) for p, claim in won.items())
            results = await asyncio.gather(*opening, return_exceptions=True)
        finally:
            self._opening = {}
        if failed := next((error for error in results if error is not None), None):
            raise failed

    async def _open_one(self, partition: int, claim: GrantedClaim, trimmed: str) -> None:
        table = self._table
        before, identity = table.by_number.get(partition), self._opening[partition]
        try:
            table.put(await self._opener.open(partition, claim, identity, before, trimmed))
        except OwnershipLostError as error:
            logger.info("%(error)s: it is left to its new owner", {"error": error})
            if before is not None:
                table.remove_lost(before)
        except LostFilesError as error:
            self._missing.set_apart(partition, error)
            await self._set_apart(partition, identity, before, MARK)
        except BigcrawlError as error:
            if not is_damage(error):
                raise
            self._table.damaged.set_apart(partition, error)
            await self._set_apart(partition, identity, before, "damaged")
        del self._opening[partition]

    async def _set_apart(self, partition: int, identity: Identity, before: OwnedPartition | None, mark: str) -> None:
        """Mark and release a claimed partition that cannot be opened, so that no other node tries."""
        if before is not None:
            self._table.remove_lost(before)
        keys = partition_keys(self._config.crawl.name, partition)
        marking = scripts.trim_partition(keys, identity, NO_INBOX_ID, 0, {mark: 1})
        await self._client.run_each([marking, scripts.release_partition(keys, identity)])

    def _claim_call(
        self, partition: int, epoch_min: int, last: LastOwner | None, is_alone_here: bool
    ) -> scripts.Call[GrantedClaim | RefusedClaim]:
        before, deadline_ms = self._table.by_number.get(partition), self._config.politeness.fetch_deadline_ms
        # Fetches of the previous owner may be under way until the rests end.
        have_rested = self._rests.get(partition, 0) <= self._client.now_ms()
        has_fetched_all = before is not None and before.identity.epoch == epoch_min and have_rested
        lease_ms = self._config.frontier.lease_ms
        return scripts.claim_partition(
            partition_keys(self._config.crawl.name, partition),
            node=self._membership.node,
            token=self._membership.token,
            lease_ms=lease_ms,
            epoch_min=epoch_min,
            dead_token=last.token if last is not None and last.is_dead else "",
            deadline_ms=deadline_ms + WAIT_MS_MAX,
            # The kernel still receives for a suspended process, and nothing ends its fetches.
            abort_ms=deadline_ms if last is not None and last.is_here else ABORT_MS,
            forgotten_ms=lease_ms + ABORT_MS if is_alone_here else deadline_ms,
            delay_ms=self._config.politeness.host_delay_ms,
            generation=self._next_generation(),
            told_of=last.token if last is not None else "",
            in_process=last.in_process_of(partition) if last is not None else UNKNOWN,
            server="" if has_fetched_all else self._client.server_run_id,
        )


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
            (empty if _owes_nothing(owned) else others).append(owned)
        if empty:
            await self._release_in_redis(empty, [])
        # A few at a time. A node that must exit soon leaves the rest to their leases.
        for start in range(0, len(others), DURABLE_AT_ONCE):
            await self._release_free(others[start : start + DURABLE_AT_ONCE])

    async def _release_free(self, free: list[OwnedPartition]) -> None:
        await self._durable_rounds.make_durable(free)
        await self._store.put_last(free)
        await self._release_in_redis(free, [owned.publish() for owned in free])

    async def _release_in_redis(self, free: list[OwnedPartition], last_counts: list[scripts.Call[Any]]) -> None:
        """Release partitions in Redis. Those with taken URLs there stay, because a take may not have arrived yet."""
        for owned in free:
            owned.drain()
        calls = [scripts.release_partition(owned.keys, owned.identity) for owned in free]
        results = await self._client.run_each([*last_counts, *calls])
        for owned, released in zip(free, results[len(last_counts) :], strict=True):
            if released in (RELEASED, NOT_OURS):
                self._table.remove(owned)


def _owes_nothing(owned: OwnedPartition) -> bool:
    return owned.disk.committed.is_untouched and not (owned.is_damaged or owned.publishing.is_owed)
