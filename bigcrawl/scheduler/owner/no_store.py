"""Takes the place of `node_store.NodeStore` on a node without a store; it handles no durable points."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.partition.manifest import Manifest
    from bigcrawl.scheduler.partition.partition import Partition
    from bigcrawl.scheduler.partition.stored_points import StoredPoints
    from bigcrawl.store.series import PointSeries


class NoStore:
    is_used = False
    is_away = False

    async def last_epochs(self, partitions: Sequence[int]) -> dict[int, int]:
        return dict.fromkeys(partitions, 0)

    async def newest_manifest(self, partition: int) -> Manifest | None:
        return None

    async def fetch_newer(self, partition: int, directory: Path) -> PointSeries | None:
        return None

    async def put_first(self, disk: Partition, series: PointSeries | None) -> StoredPoints | None:
        return None

    def begin_due(self, checkpoint: int = 0) -> None: ...

    async def put_last(self, partitions: Sequence[OwnedPartition]) -> None: ...

    async def close(self) -> None: ...
