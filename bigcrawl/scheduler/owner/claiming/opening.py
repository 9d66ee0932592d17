from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from bigcrawl.exceptions import BigcrawlError, CorruptionError
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.scheduler.crawl.missing import REFETCH, LostFilesError
from bigcrawl.scheduler.gates.batcher import QuestionBatcher
from bigcrawl.scheduler.owner.claiming.bring_up import bring_up, continue_with_older_files, inbox_polls, start_over
from bigcrawl.scheduler.owner.durability import Durability
from bigcrawl.scheduler.owner.hot.due_heap import DueHeap
from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
from bigcrawl.scheduler.partition.committed import newest_manifest
from bigcrawl.scheduler.partition.directory import last_epoch
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.inbox_entry import id_order

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bigcrawl.redisdb.scripts import GrantedClaim, Identity
    from bigcrawl.scheduler.crawl.joined_crawl import JoinedCrawl
    from bigcrawl.scheduler.owner.crawl_budgets import CrawlBudgets
    from bigcrawl.scheduler.owner.hot.hot_share import LatenessCheck
    from bigcrawl.scheduler.owner.no_store import NoStore
    from bigcrawl.scheduler.partition.file_work import FileThread
    from bigcrawl.scheduler.partition.manifest import Manifest
    from bigcrawl.scheduler.partition.stored_points import StoredPoints

    _Disk = tuple[int, GrantedClaim, str]
    _OnDisk = tuple[Manifest | None, str, Partition]


class Opener:
    def __init__(
        self,
        crawl: JoinedCrawl,
        thread: FileThread,
        limits: PartitionLimits,
        crawl_budgets: CrawlBudgets,
        lateness: LatenessCheck,
        store: NoStore,
    ) -> None:
        config = crawl.config
        self._config = config
        self._crawl = config.crawl
        self._store_url = config.store.url
        self._begins_anew = config.store.lost_partitions == REFETCH
        self._client = crawl.client
        self._clock = crawl.clock
        self._thread = thread
        self._limits = limits
        self._crawl_budgets = crawl_budgets
        self._lateness = lateness
        self._store = store
        self._require_place = crawl.membership.require_place
        self._disks = QuestionBatcher(self._open_disks)
        self._looks = inbox_polls(crawl.client)
        self.due_heap: DueHeap[OwnedPartition] = DueHeap()

    def directory(self, partition: int) -> Path:
        return self._crawl.crawl_dir / f"p{partition:04d}"

    async def last_epochs(self, partitions: list[int]) -> dict[int, int]:
        stored = await self._store.last_epochs(partitions)
        return await self._thread.run(lambda: {p: max(stored[p], last_epoch(self.directory(p))) for p in partitions})

    async def are_there(self, partitions: Sequence[int]) -> set[int]:
        there = set()
        for partition, upto in (await self.trimmed_up_to(partitions)).items():
            with suppress(CorruptionError):
                stored = await self._store.newest_manifest(partition)
                here = await self._thread.run(partial(newest_manifest, self.directory(partition), self._thread.files))
                if all(manifest is None or is_older(manifest, upto) for manifest in (stored, here)):
                    continue
            there.add(partition)
        return there

    async def trimmed_up_to(self, partitions: Sequence[int]) -> dict[int, str]:
        """Return, by partition, the last entry and batch that Redis may have dropped; empty if none."""
        keys = [partition_keys(self._crawl.name, partition).state for partition in partitions]
        texts = await self._client.commands([("HGET", key, "trimmed") for key in keys])
        return {p: (text or b"").decode() for p, text in zip(partitions, texts, strict=True)}

    async def open(
        self, partition: int, claim: GrantedClaim, identity: Identity, before: OwnedPartition | None, trimmed: str
    ) -> OwnedPartition:
        """Open the directory of a claimed partition in its new epoch and bring Redis in line.

        Raises:
            OwnershipLostError: another node has claimed the partition since.
            LostFilesError: the partition's files are missing or an older copy.
        """
        series = await self._store.fetch_newer(partition, self.directory(partition))
        manifest, lack, disk = await self._disks.ask((partition, claim, trimmed))
        points = await self._store.put_first(disk, series)
        keys = partition_keys(self._crawl.name, partition)
        if lack and manifest is None:
            await start_over(self._client, self._crawl.name, keys, identity)
        elif lack:
            await continue_with_older_files(self._client, keys, identity, lack)
        connections = self._config.politeness.host_connections
        in_redis = await bring_up(self._client, self._looks, keys, identity, disk, claim, connections)
        self._crawl_budgets.give_to(disk)
        owned = OwnedPartition(
            self._config, keys, identity, disk, self.due_heap, in_redis, self._durability_of(disk, points)
        )
        if before is not None:
            owned.take_over(before)
        owned.set_extra_limit(self._lateness.extra_divisor)
        return owned

    def _durability_of(self, disk: Partition, points: StoredPoints | None) -> Durability:
        loss_ms = self._config.frontier.redis_loss_ms
        return Durability(disk.committed, loss_ms, self._clock.monotonic_ms(), points)

    def _find_lost_data(self, partition: int, claim: GrantedClaim, trimmed: str) -> tuple[Manifest | None, str]:
        """Return the newest manifest, and a description of lost data; empty for none."""
        directory = self.directory(partition)
        manifest = newest_manifest(directory, self._thread.files)
        where, also = f"{directory}", f" and the store {self._store_url} no point" if self._store_url else ""
        if manifest is None:
            is_begun = claim.committed or trimmed
            lack = f"Redis knows partition {partition} as begun, but {where} holds no manifest{also}"
            return None, lack if is_begun else ""
        also = f" and the store {self._store_url}" if self._store_url else ""
        lack = (
            f"{where}{also} have older files of partition {partition} than there were, up to entry "
            f"{manifest.inbox_id} and batch {manifest.batch_number}, and Redis has dropped entries before {trimmed}"
        )
        return manifest, lack if is_older(manifest, trimmed) else ""

    async def _open_disks(self, asked: Sequence[_Disk]) -> list[_OnDisk | BigcrawlError]:
        return await self._thread.run(lambda: [self._open_or_fail(each) for each in asked])

    def _open_or_fail(self, asked: _Disk) -> _OnDisk | BigcrawlError:
        try:
            return self._open_disk(*asked)
        except BigcrawlError as error:
            return error

    def _open_disk(self, partition: int, claim: GrantedClaim, trimmed: str) -> _OnDisk:
        manifest, lack = self._find_lost_data(partition, claim, trimmed)
        if lack and not self._begins_anew:
            raise LostFilesError(
                f"{lack}: bring its files back, start the node that has them, continue without them "
                f"(BIGCRAWL_LOST_PARTITIONS=refetch), or start the crawl from scratch (BIGCRAWL_FRESH=1)"
            )
        crawl_budgets = self._crawl_budgets
        disk = Partition.open(
            self.directory(partition),
            claim.epoch,
            self._limits,
            self._thread.files,
            budgets=crawl_budgets.budgets,
            pld_of=crawl_budgets.pld_of,
            pld_key=crawl_budgets.pld_key,
            require_place=self._require_place,
        )
        return manifest, lack, disk


def is_older(manifest: Manifest, trimmed: str) -> bool:
    """Return whether Redis may have dropped data that these files do not have."""
    inbox_id, _, batch = trimmed.partition(" ")
    return bool(trimmed) and (id_order(manifest.inbox_id) < id_order(inbox_id) or manifest.batch_number < int(batch))
