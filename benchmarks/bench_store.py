"""How long a node takes to take over all partitions of a dead one from a store.

Run on a quiet machine: ``python -m benchmarks.bench_store [partitions] [keys]``; 256 and 100,000,000 by default.

Held fixed: a store in a directory of the same disk (file://), partitions of equal size, each URL seen once and most of
them waiting. The node's own disk is empty. Measured is what comes between claim and admission: the newest point is
found and fetched, the partition opened, and the first point of the epoch written; Redis has no part in it. With another
partition count the keys of each stay as they are at 256, and the last line says what all would take.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.bench_partition import make_batches
from bigcrawl.clock import SystemClock
from bigcrawl.config import read_config
from bigcrawl.scheduler.owner.node_store import NodeStore
from bigcrawl.scheduler.partition.file_work import FileThread
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.partition.stored_points import StoredPoints
from bigcrawl.store.objects import ObjectStore

ALL = 256
STEP_URLS = 50_000
NAMED = read_config({"BIGCRAWL_CRAWL": "crawl"})
nobody: Any = None  # in place of Redis and of the table of owned partitions


def filled(directory: Path, keys: int) -> Partition:
    """A partition that has seen so many keys."""
    disk = Partition.open(directory, 1, PartitionLimits())
    for start in range(0, keys, STEP_URLS):
        disk.step(make_batches(start, min(STEP_URLS, keys - start), 1_000), 100, {})
    assert len(disk.state.tables.seen) == keys
    return disk


async def take_over(store: NodeStore, thread: FileThread, below: Path, partitions: int) -> int:
    """Open all partitions as `Claims` does; return how many keys they have."""

    async def open_one(number: int) -> int:
        directory = below / f"p{number:04d}"
        series = await store.fetch_newer(number, directory)
        disk = await thread.run(partial(Partition.open, directory, 2, PartitionLimits()))
        await store.put_first(disk, series)
        return len(disk.state.tables.seen)

    return sum(await asyncio.gather(*map(open_one, range(partitions))))


async def main(partitions: int, keys: int) -> None:
    each = keys // ALL
    with tempfile.TemporaryDirectory() as place:
        objects = ObjectStore(f"file://{place}/store")
        crawl: Any = SimpleNamespace(objects=objects, config=NAMED, client=None, clock=SystemClock())
        thread = FileThread(crawl.clock, 60_000, lambda: False)
        store = NodeStore(crawl.objects, crawl, thread, nobody)
        disk = filled(Path(place) / "first" / "p0000", each)
        for number in range(partitions):
            points = StoredPoints(disk, store._series_of(number), 0)
            points.put(points.begin(0))
        stored = sum(objects.list("crawl").values())
        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        found = await take_over(store, thread, Path(place) / "second", partitions)
        seconds, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
        await store.close()
        thread.close(wait=True)
    assert found == partitions * each
    print(f"{partitions} partitions of {each:,} keys, {stored / 1e6:,.0f} MB in the store")  # noqa: T201
    print(f"taken over in {seconds:.1f} s, {seconds / found * 1e9:,.0f} ns a key; CPU {cpu_s:.1f} s")  # noqa: T201
    print(f"all {ALL} with {keys:,} keys: {seconds * ALL / partitions:.1f} s")  # noqa: T201


if __name__ == "__main__":
    chosen = [int(word) for word in sys.argv[1:]]
    asyncio.run(main(*(chosen + [ALL, 100_000_000][len(chosen) :])))
