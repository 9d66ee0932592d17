"""Opens a partition that was won: its directory in the new epoch, and Redis in line with it (step 4)."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from bigcrawl.exceptions import BigcrawlError, CorruptionError
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.scheduler.crawl.missing import REFETCH, LostFilesError
from bigcrawl.scheduler.gates.batcher import Batcher
from bigcrawl.scheduler.owner.claiming.bring_up import begin_anew, bring_up, go_on_with_older, inbox_looks
from bigcrawl.scheduler.owner.hot.due_heap import NEVER_MS, DueHeap
from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
from bigcrawl.scheduler.partition.copies import newest_manifest
from bigcrawl.scheduler.partition.directory import last_epoch
from bigcrawl.scheduler.partition.partition import Partition
from bigcrawl.scheduler.records.inbox_entry import id_order
from bigcrawl.scheduler.records.suspicion import Suspicion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.drum.files import Files
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.scripts import Claim, Identity
    from bigcrawl.scheduler.owner.crawl_budgets import CrawlBudgets
    from bigcrawl.scheduler.owner.hot.hot_share import Lateness
    from bigcrawl.scheduler.owner.node_store import NodeStore
    from bigcrawl.scheduler.partition.file_work import FileThread
    from bigcrawl.scheduler.partition.manifest import Manifest
    from bigcrawl.scheduler.partition.partition import PartitionLimits

    _Disk = tuple[int, Claim, str]  # a partition, how it was won, and up to where Redis may have dropped its inbox
    _OnDisk = tuple[Manifest | None, str, Partition]


class Opener:
    """Opens partitions for one node.

    Args:
        config: of the node.
        client: of the crawl's Redis.
        clock: of the node.
        files: the file system.
        thread: does the file work.
        limits: bounds of each partition.
        crawl_budgets: the budgets of PLDs.
        lateness: how much of the hot set may be extra URLs.
        store: the durable points of partitions.
        require_place: see `Partition.open`.

    Attributes:
        due_heap: the opened partitions by when they are due.
    """

    def __init__(
        self,
        config: Config,
        client: RedisClient,
        clock: Clock,
        files: Files,
        thread: FileThread,
        limits: PartitionLimits,
        crawl_budgets: CrawlBudgets,
        lateness: Lateness,
        store: NodeStore,
        require_place: Callable[[], None],
    ) -> None:
        self._crawl = config.crawl
        self._connections = config.politeness.host_connections
        self._hot_each = config.frontier.hot_urls // config.crawl.partitions
        self._loss_ms = config.frontier.redis_loss_ms
        self._store_url = config.store.url
        self._begins_anew = config.store.lost_partitions == REFETCH
        self._client = client
        self._clock = clock
        self._files = files
        self._thread = thread
        self._limits = limits
        self._crawl_budgets = crawl_budgets
        self._lateness = lateness
        self._store = store
        self._require_place = require_place
        self._disks = Batcher(self._open_disks)
        self._looks = inbox_looks(client)
        self.due_heap: DueHeap[OwnedPartition] = DueHeap()

    def __repr__(self) -> str:
        return f"<Opener below {self._crawl.crawl_dir}>"

    def directory(self, partition: int) -> Path:
        """The directory of a partition."""
        return self._crawl.crawl_dir / f"p{partition:04d}"

    async def last_epochs(self, partitions: list[int]) -> dict[int, int]:
        """The last epoch of each partition, by its files and its points in the store; 0 without any."""
        stored = await self._store.last_epochs(partitions)
        return await self._thread.run(lambda: {p: max(stored[p], last_epoch(self.directory(p))) for p in partitions})

    async def are_there(self, partitions: Sequence[int]) -> set[int]:
        """Return those of the partitions that have files here, or a point in the store, that Redis can go on with.

        Raises:
            TransientStoreError: Redis, the disk or the store failed.
        """
        there = set()
        for partition, upto in (await self.trimmed(partitions)).items():
            with suppress(CorruptionError):  # damage is found when it is opened
                stored = await self._store.newest_manifest(partition)
                here = await self._thread.run(partial(newest_manifest, self.directory(partition), self._files))
                if all(manifest is None or is_older(manifest, upto) for manifest in (stored, here)):
                    continue
            there.add(partition)
        return there

    async def trimmed(self, partitions: Sequence[int]) -> dict[int, str]:
        """Up to where Redis may have dropped what each partition's files have: entry and batch, or empty.

        Raises:
            TransientStoreError: Redis is away.
        """
        keys = [partition_keys(self._crawl.name, partition).state for partition in partitions]
        texts = await self._client.commands([("HGET", key, "trimmed") for key in keys])
        return {p: (text or b"").decode() for p, text in zip(partitions, texts, strict=True)}

    async def open(
        self, partition: int, claim: Claim, identity: Identity, before: OwnedPartition | None, trimmed: str
    ) -> OwnedPartition:
        """Open a won partition's directory in its new epoch and bring Redis in line.

        Args:
            partition: its number.
            claim: how it was won.
            identity: this node, in the epoch and generation that the claim began.
            before: the same partition in an earlier epoch, if this node owned it.
            trimmed: what `trimmed` says of it since the claim.

        Raises:
            OwnershipLostError: another node has claimed it since.
            LostFilesError: its files are not there, or are an older copy.
            TransientStoreError: Redis or the disk failed.
            CorruptionError: a file is damaged.
        """
        series = await self._store.fetch_newer(partition, self.directory(partition))
        manifest, lack, disk = await self._disks.ask((partition, claim, trimmed))
        points = await self._store.put_first(disk, series)
        keys = partition_keys(self._crawl.name, partition)
        if lack and manifest is None:
            await begin_anew(self._client, self._crawl.name, keys, identity)
        elif lack:
            await go_on_with_older(self._client, keys, identity, lack)
        in_redis = await bring_up(self._client, self._looks, keys, identity, disk, claim, self._connections)
        self._crawl_budgets.give_to(disk)
        now_ms = self._clock.monotonic_ms()
        owned = OwnedPartition(
            keys,
            identity,
            disk,
            self.due_heap,
            hot_urls=self._hot_each,
            connections=self._connections,
            loss_ms=self._loss_ms,
            hot_by_host=in_redis.by_host,
            suspects={seq: Suspicion.read(text) for seq, text in claim.deaths.items()},
            moved=before.moved if before is not None else None,
            now_ms=now_ms,
            due_ms=NEVER_MS if in_redis.due_in_ms is None else now_ms + in_redis.due_in_ms,
            points=points,
        )
        owned.limit_extra(self._lateness.extra_divisor)
        return owned

    def _lack(self, partition: int, claim: Claim, trimmed: str) -> tuple[Manifest | None, str]:
        """The newest manifest of a partition, and what its files lack of what Redis has dropped; empty for nothing."""
        directory = self.directory(partition)
        manifest = newest_manifest(directory, self._files)
        where, also = f"{directory}", f" and the store {self._store_url} no point" if self._store_url else ""
        if manifest is None:
            is_begun = claim.committed or trimmed
            lack = f"Redis knows partition {partition} as begun, but {where} holds no manifest{also}"
            return None, lack if is_begun else ""
        also = f" and the store {self._store_url}" if self._store_url else ""
        lack = (
            f"{where}{also} have older files of partition {partition} than there were, up to entry "
            f"{manifest.inbox_id} and batch {manifest.batch_number}, and Redis has dropped what came before {trimmed}"
        )
        return manifest, lack if is_older(manifest, trimmed) else ""

    async def _open_disks(self, asked: Sequence[_Disk]) -> list[_OnDisk | BigcrawlError]:
        return await self._thread.run(lambda: [self._open_or_fail(each) for each in asked])

    def _open_or_fail(self, asked: _Disk) -> _OnDisk | BigcrawlError:
        try:
            return self._open_disk(*asked)
        except BigcrawlError as error:
            return error

    def _open_disk(self, partition: int, claim: Claim, trimmed: str) -> _OnDisk:
        """What `_lack` returns, and the opened partition. Raises LostFilesError if the node does not go on without."""
        manifest, lack = self._lack(partition, claim, trimmed)
        if lack and not self._begins_anew:
            raise LostFilesError(
                f"{lack}: bring its files back, start the node that has them, go on without them "
                f"(BIGCRAWL_LOST_PARTITIONS=refetch), or start the crawl anew (BIGCRAWL_FRESH=1)"
            )
        crawl_budgets = self._crawl_budgets
        disk = Partition.open(
            self.directory(partition),
            claim.epoch,
            self._limits,
            self._files,
            budgets=crawl_budgets.budgets,
            pld_of=crawl_budgets.pld_of,
            pld_key=crawl_budgets.pld_key,
            require_place=self._require_place,
        )
        return manifest, lack, disk


def is_older(manifest: Manifest, trimmed: str) -> bool:
    """Whether Redis may have dropped entries or batches that the files of a manifest lack."""
    inbox_id, _, batch = trimmed.partition(" ")
    return bool(trimmed) and (id_order(manifest.inbox_id) < id_order(inbox_id) or manifest.batch_number < int(batch))
