"""Partitions whose URLSeen is large before the crawl begins, and about to be merged whole."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from bigcrawl.drum.bucket import BucketState
from bigcrawl.drum.files import DiskFiles
from bigcrawl.drum.format import Records
from bigcrawl.drum.memtable import EMPTY_MEMTABLE, MEMTABLE_KEYS_MAX
from bigcrawl.drum.record_merge import FAN_IN
from bigcrawl.drum.run import RunBounds, RunInfo, write_run
from bigcrawl.scheduler.partition.manifest import UNKNOWN, Manifest
from bigcrawl.scheduler.partition.manifest_log import ManifestLog
from bigcrawl.scheduler.partition.tables import KINDS
from bigcrawl.scheduler.partition.takeover import begin_epoch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# Runs of a partition are told apart by the lowest bits of their keys, so that no key is in two.
_RUN_BITS: Final = 6


def run_sizes(keys: int, flushes: int) -> list[int]:
    """Keys of runs, oldest first, that all become one at the last of so many flushes.

    Each tier has one run less than are merged. The largest ones have most of `keys`; the smallest are what so many
    flushes, less than are merged, leave to be done.

    Args:
        keys: of all runs together, at least some 10^5; up to three times as many where tiers would have it so.
        flushes: 1 to `FAN_IN`.
    """
    size = MEMTABLE_KEYS_MAX + 1
    sizes = [size] * (FAN_IN - flushes)
    while True:
        size *= FAN_IN
        largest = (keys - sum(sizes)) // (FAN_IN - 1)
        if largest < 2 * size * MEMTABLE_KEYS_MAX // (MEMTABLE_KEYS_MAX + 1):  # still of the tier of `size`
            sizes += [max(size, largest)] * (FAN_IN - 1)
            return sizes[::-1]
        sizes += [size] * (FAN_IN - 1)


def prefill(directory: Path, sizes: Sequence[int], seed: int) -> None:
    """Write a partition's directory as if it had seen so many URLs; none of them waits.

    Args:
        directory: the partition's; not there yet.
        sizes: keys of each run, oldest first; at most 63.
        seed: of the keys.
    """
    own = begin_epoch(directory, 1, DiskFiles())
    numbers = np.random.default_rng(seed)
    runs: list[RunInfo] = []
    for number, size in enumerate(sizes, 1):
        drawn = numbers.integers(0, 1 << (64 - _RUN_BITS), size, dtype=np.uint64)
        keys = np.unique(drawn) << np.uint64(_RUN_BITS) | np.uint64(number)
        bounds = RunBounds(len(keys), int(keys[0]), int(keys[-1]))
        run = write_run(DiskFiles(), own.path / f"{KINDS['seen'].prefix}-{number}", [Records(keys, None)], bounds)
        assert run is not None
        runs.append(run)
    tables = {"seen": BucketState(tuple(runs), EMPTY_MEMTABLE)}
    manifest = replace(Manifest(own.epoch), number=1, tables=tables, repeats=UNKNOWN)  # the keys' URLs are in no place
    ManifestLog(own.path, own.files).begin(manifest, [])
