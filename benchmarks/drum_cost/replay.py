"""What tiered runs move at sizes nobody can run: bigcrawl's own rule for merging them, replayed on counts alone."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.drum.format import KEY_BYTES, RunLayout, best_suffix_bytes, prefixes_of
from bigcrawl.drum.record_merge import runs_to_merge

if TYPE_CHECKING:
    from collections.abc import Callable


class RunCost(NamedTuple):
    """Bytes that `replayed` found, over all buckets.

    Attributes:
        checked: of runs, read to find out what is new.
        merged: of runs, read to be merged into larger ones.
        written: of runs.
        logged: of fresh keys that a manifest took, being too few for a run.
    """

    checked: float
    merged: float
    written: float
    logged: float

    @property
    def total(self) -> float:
        return sum(self)


@cache
def run_bytes(keys: int, buckets: int) -> int:
    """Length of a run of so many evenly spread keys of one of so many buckets, by the format's own rules."""
    extent = 2**64 // buckets - 1
    suffix_bytes = best_suffix_bytes(keys, extent)
    mean = keys / prefixes_of(extent, suffix_bytes)
    # A count must hold the fullest prefix; six deviations are beyond any that a run has.
    fullest = mean + 6 * math.sqrt(mean)
    count_bytes = next(size for size in (1, 2, 4, 8) if fullest < 256**size)
    return RunLayout(suffix_bytes, count_bytes, 0, keys, 0, extent, 0).length


def whole_key_bytes(keys: int, _: int) -> int:
    """Length of a run that keeps its keys whole, as the paper's cache does."""
    return keys * KEY_BYTES


def replayed(
    offered: float,
    batch: float,
    *,
    buckets: int,
    unique_share: float,
    seen_before: float = 0,
    fresh_max: int,
    length: Callable[[int, int], int] = run_bytes,
) -> RunCost:
    """Follow one bucket through all merges; the others are as it, because keys spread evenly.

    Every run is counted as read whole in every merge, which holds where a merge asks for at least one key in
    four blocks; fewer are looked up by pages and cost less. A manifest is counted as a log of what was added.

    Args:
        offered: URLs in all, n.
        batch: URLs of a merge, over all buckets.
        buckets: how many the keys are spread over by their top bits, a power of two.
        unique_share: p.
        seen_before: U, in one run a bucket.
        fresh_max: as in `Kind`.
        length: of a run, in bytes, given its keys and the number of buckets.

    Cost: 5 us a merge.
    """
    runs = [int(seen_before / buckets)] if seen_before >= buckets else []
    fresh, checked, merged, written, logged = 0, 0, 0, 0, 0
    known = float(sum(runs))
    left = offered
    while left > 0:
        known += min(batch, left) * unique_share / buckets
        left -= batch
        checked += sum(length(keys, buckets) for keys in runs)
        added = int(known) - sum(runs) - fresh
        fresh += added
        if fresh <= fresh_max:
            logged += added * KEY_BYTES
            continue
        kept = len(runs) - runs_to_merge(runs, fresh)
        merged += sum(length(keys, buckets) for keys in runs[kept:])
        runs[kept:] = [fresh + sum(runs[kept:])]
        written += length(runs[-1], buckets)
        fresh = 0
    return RunCost(*(each * buckets for each in (checked, merged, written, logged)))
