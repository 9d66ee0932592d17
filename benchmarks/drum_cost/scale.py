"""How much memory and disk the methods are given: the paper's R, D and M, or all three scaled down together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from benchmarks.drum_cost.models import PAPER, Workload, optimal_disk
from benchmarks.drum_cost.urls import UNIQUE_SHARE


@dataclass(frozen=True, slots=True)
class Scale:
    """What every method gets of a machine.

    Attributes:
        memory_bytes: R.
        disk_bytes: D, of what waits in buckets; the set and the queue come on top.
        buffer_bytes: M.
    """

    memory_bytes: int
    disk_bytes: int
    buffer_bytes: int

    @property
    def load(self) -> Workload:
        """The paper's workload on it, with a set that is empty at the start, as measured."""
        return replace(PAPER, seen_before=0, unique_share=UNIQUE_SHARE, buffer_bytes=self.buffer_bytes)

    @property
    def buckets(self) -> int:
        """k = R / 4M, rounded down to a power of two, because buckets are told by the top bits of a key."""
        return 1 << (max(self.memory_bytes // (4 * self.buffer_bytes), 1).bit_length() - 1)

    @property
    def fresh_max(self) -> int:
        """Keys a bucket of ours may keep out of runs: a quarter of the memory, up to what it keeps by default."""
        return max(1, min(4096, self.memory_bytes // (4 * 8 * self.buckets)))


def scaled_down(memory_bytes: int, buckets: int) -> Scale:
    """A scale with the optimal disk of equation (6) and buffers so small that there are so many buckets."""
    buffer_bytes = memory_bytes // (4 * buckets)
    scale = Scale(memory_bytes, 0, buffer_bytes)
    return replace(scale, disk_bytes=int(optimal_disk(scale.load, memory_bytes)))


# The quadratic term is as large as it is at R = 1 GB with 8,000 times the URLs.
SMALL: Final = scaled_down(128_000, 64)
MIDDLE: Final = scaled_down(1_024_000, 64)
# The paper's memory and buffers, and a disk that a small machine can spare.
REAL: Final = Scale(10**9, 8 * 10**9, PAPER.buffer_bytes)
