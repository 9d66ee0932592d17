"""Durable points of this node's partitions in the store.

    claimed -> newest point fetched, if the local copy is older -> opened -> first point of the epoch -> admits, folds
    every BIGCRAWL_STORE_SECONDS:
               copy lent by the file thread -> objects written -> Redis trimmed -> old objects deleted

The first point comes before anything is admitted. From then on, no point that the last owner may still write can be
chosen. All calls of the store run in a few threads of their own, and only the opening of partitions waits for them.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from bigcrawl.exceptions import CorruptionError, OwnershipLostError, TransientStoreError
from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.owner.no_store import NoStore
from bigcrawl.scheduler.partition.committed import newest_of, put_back
from bigcrawl.scheduler.partition.manifest_log import decode_manifest
from bigcrawl.scheduler.partition.stored_points import StoredPoints
from bigcrawl.store.series import PointSeries

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from bigcrawl.scheduler.crawl.joined_crawl import JoinedCrawl
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.owned_table import OwnedTable
    from bigcrawl.scheduler.partition.file_work import FileThread
    from bigcrawl.scheduler.partition.manifest import Manifest
    from bigcrawl.scheduler.partition.partition import Partition
    from bigcrawl.store.objects import ObjectStore

logger = logging.getLogger(__name__)

T = TypeVar("T")

AT_ONCE = 8  # partitions; most of their time is spent waiting for the store
LOOK_MS = 1_000  # between two searches for partitions whose points are due
LAST_S = 2.0  # for the points of partitions that are released; a node that ends has few seconds
PROBE_MS = 10_000  # after a failure, partitions are claimed again after this time

_tried_ms = attrgetter("points.tried_ms")


class NodeStore(NoStore):
    is_used = True

    def __init__(self, objects: ObjectStore, crawl: JoinedCrawl, thread: FileThread, table: OwnedTable) -> None:
        self._objects = objects
        self._crawl = crawl.config.crawl.name
        self._interval_ms = crawl.config.store.interval_ms
        self._client = crawl.client
        self._clock = crawl.clock
        self._thread = thread
        self._table = table
        self._workers = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="bigcrawl-store")
        self._storing: dict[OwnedPartition, asyncio.Task[None]] = {}
        self._look_ms = 0
        self._failed_ms: int | None = None

    @property
    def is_away(self) -> bool:  # type: ignore[override]
        """Whether the store has just failed, so that no partition should be claimed whose files it may have."""
        return self._failed_ms is not None and self._clock.monotonic_ms() - self._failed_ms < PROBE_MS

    async def last_epochs(self, partitions: Sequence[int]) -> dict[int, int]:
        """Return the last epoch of each partition that the store knows; 0 without any. Raises TransientStoreError."""
        epochs = await asyncio.gather(*(self._run_in_thread(self._series_of(p).last_epoch) for p in partitions))
        return dict(zip(partitions, epochs, strict=True))

    async def newest_manifest(self, partition: int) -> Manifest | None:
        """Return the manifest in a partition's newest durable point, if any.

        Raises CorruptionError if two are damaged.
        """
        return await self._run_in_thread(partial(self._newest_manifest, partition))

    def _newest_manifest(self, partition: int) -> Manifest | None:
        series = self._series_of(partition)
        return decode_manifest(f"p{partition:04d}", series.state) if series.find_newest() is not None else None

    async def fetch_newer(self, partition: int, directory: Path) -> PointSeries:
        """Update the files of a newly claimed partition to the newest durable point; return its durable points."""
        return await self._run_in_thread(partial(self._fetch_newer, partition, directory))

    def _fetch_newer(self, partition: int, directory: Path) -> PointSeries:
        series = self._series_of(partition)
        stored, local = series.find_newest(), newest_of(directory, self._thread.files)
        if stored is not None and (local is None or local < stored):
            put_back(directory, stored[0], self._thread.files, series.fetch)
            logger.info(
                "partition %(partition)d continues from the store: epoch %(epoch)d, manifest %(number)d",
                {"partition": partition, "epoch": stored[0], "number": stored[1]},
            )
        return series

    async def put_first(self, disk: Partition, series: PointSeries | None) -> StoredPoints | None:
        """Write the first durable point of an epoch, before anything is admitted."""
        assert series is not None, "it was fetched"
        points = StoredPoints(disk, series, self._clock.monotonic_ms())
        await self._put_point(points)
        return points

    def begin_due(self, checkpoint: int = 0) -> None:
        """Start writing the durable points that are due by time or by an operator's order, without waiting."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._look_ms:
            return
        self._look_ms = now_ms + LOOK_MS
        due = [
            owned
            for owned in self._table.undamaged
            if owned.points is not None
            and owned not in self._storing
            and owned.points.is_due(now_ms, self._interval_ms, checkpoint)
        ]
        for owned in self._table.undamaged:
            if owned.points is not None and owned.points.record_order(checkpoint):
                self._table.record_owed(owned)
        for owned in sorted(due, key=_tried_ms)[: AT_ONCE - len(self._storing)]:
            self._storing[owned] = asyncio.create_task(self._store_points(owned, checkpoint))
        if len(due) > AT_ONCE:
            self._look_ms = now_ms

    async def _store_points(self, owned: OwnedPartition, checkpoint: int) -> None:
        points = owned.points
        assert points is not None, "the crawl has a store"
        try:
            await self._put_point(points, checkpoint)
            trim = scripts.trim_partition(owned.keys, owned.identity, *points.trim, owned.publishing.checkpoint_state())
            await self._client.run([trim])
            await self._run_in_thread(points.clear)
        except CorruptionError as error:
            self._table.set_apart(owned, error)
        except OwnershipLostError:
            logger.debug(
                "partition %(partition)d was lost to another node while its files were copied to the store",
                {"partition": owned.keys.partition},
            )
        except TransientStoreError as error:
            logger.debug("partition %(partition)d: %(error)s", {"partition": owned.keys.partition, "error": error})
        finally:
            del self._storing[owned]

    async def put_last(self, partitions: Sequence[OwnedPartition]) -> None:
        """Write last durable points of partitions to be released: the next owner needs the text of their batches."""
        leaving = [owned for owned in partitions if owned.points is not None and not owned.is_damaged]
        if not leaving or self.is_away:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_S):
                await asyncio.gather(*map(self._put_last, leaving), return_exceptions=True)

    async def _put_last(self, owned: OwnedPartition) -> None:
        if owned in self._storing:
            await asyncio.wait([self._storing[owned]])
        if owned.points is not None and owned.points.is_due(self._clock.monotonic_ms(), 0):
            await self._put_point(owned.points)

    async def _put_point(self, points: StoredPoints, checkpoint: int = 0) -> None:
        try:
            copy = await self._thread.run(partial(points.begin, self._clock.monotonic_ms(), checkpoint))
            await self._run_in_thread(partial(points.put, copy))
            points.record_put(copy)
        finally:
            points.end()

    async def close(self) -> None:
        """Abandon pending work at once; the last durable points stay."""
        self._objects.close()
        for task in list(self._storing.values()):
            task.cancel()
        await asyncio.gather(*self._storing.values(), return_exceptions=True)
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _series_of(self, partition: int) -> PointSeries:
        return PointSeries(self._objects, f"{self._crawl}/p{partition:04d}")

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        """Run work in one of the store's threads, and record the store's health."""
        try:
            result = await asyncio.get_running_loop().run_in_executor(self._workers, work)
        except TransientStoreError as error:
            if self._failed_ms is None:
                logger.warning(
                    "partitions are not backed up to the store: %(error)s. Redis keeps the inboxes until they are, "
                    "and nodes wait when those are long: check BIGCRAWL_STORE_URL, its credentials and its space",
                    {"error": error},
                )
            self._failed_ms = self._clock.monotonic_ms()
            raise
        if self._failed_ms is not None:
            self._failed_ms = None
            logger.info("the store answers again")
        return result
