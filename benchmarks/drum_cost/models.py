"""Theorems 1 to 3 of IRLbot §4: bytes read and written for each byte of URL text, and the pages/s a disk allows.

Every function takes the URLs offered, n, and not pages: n = 59 N. Sizes are bytes, decimal as the paper's.

Where the formulas come from, since the paper keeps its proofs for a report: a merge reads and writes the whole
set, of U + pn/2 entries on average, so it moves 2UH + pHn bytes. Half of the memory holds the batch that waits
for a merge while the other half is merged, so Mercator-B merges every R / 2(H+P) URLs and PolyBot, with text and
four pointers a node, every R / 2(b+4P). DRUM gives half of its memory to 2k file buffers of M bytes, which makes k
= R/4M buckets, and half to sorting one bucket of R / 2(H+P) keys: a pass takes R^2 / 8M(H+P) URLs, or what the
disk holds of them, D / (H+b), if that is less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LINKS_PER_PAGE: Final = 59

# What a disk bucket needs to be read efficiently; below 2 * this * (1 + P/H) of memory Theorem 2 does not hold.
BUCKET_BYTES_MIN: Final = 32 * 10**6


@dataclass(frozen=True, slots=True)
class Workload:
    """What the theorems take as given, by the paper's letters; the defaults are its Table 2.

    Attributes:
        seen_before: U, entries of the set at the start.
        unique_share: p, of the URLs offered.
        text_bytes: b, a URL.
        hash_bytes: H.
        pointer_bytes: P.
        compressed_bytes: bq, a URL in PolyBot's file. The text says 5; Table 2 and the ratio of 7.2 need 5.5.
        buffer_bytes: M, of each open file. "256 KB": 256,000 is what gives Table 3 and Theorem 3.
    """

    seen_before: int = 10**8
    unique_share: float = 1 / 9
    text_bytes: float = 110
    hash_bytes: int = 8
    pointer_bytes: int = 4
    compressed_bytes: float = 5.5
    buffer_bytes: int = 256_000

    @property
    def tuple_bytes(self) -> int:
        """A hash with its pointer: H + P."""
        return self.hash_bytes + self.pointer_bytes

    @property
    def node_bytes(self) -> float:
        """A URL in PolyBot's tree: b + 4P."""
        return self.text_bytes + 4 * self.pointer_bytes


PAPER: Final = Workload()


def mercator_batch(load: Workload, memory: float) -> float:
    """URLs between two merges of Mercator-B."""
    return memory / (2 * load.tuple_bytes)


def polybot_batch(load: Workload, memory: float) -> float:
    """URLs between two merges of PolyBot."""
    return memory / (2 * load.node_bytes)


def drum_batch(load: Workload, memory: float, disk: float) -> float:
    """URLs between two passes of DRUM: what its memory can sort, or its disk hold."""
    by_memory = memory**2 / (8 * load.buffer_bytes * load.tuple_bytes)
    return min(by_memory, disk / (load.hash_bytes + load.text_bytes))


def mercator_alpha(load: Workload, offered: float, memory: float) -> float:
    """Theorem 1, equation (1)."""
    moved = _rewritten(load, load.hash_bytes, offered) / mercator_batch(load, memory)
    return moved / load.text_bytes + 2 + load.unique_share


def polybot_alpha(load: Workload, offered: float, memory: float) -> float:
    """Theorem 1, equation (2)."""
    moved = _rewritten(load, load.compressed_bytes, offered) / polybot_batch(load, memory)
    return moved / load.text_bytes + load.unique_share


def drum_alpha(load: Workload, offered: float, memory: float, disk: float) -> float:
    """Theorem 2, both cases of equation (5)."""
    moved = _rewritten(load, load.hash_bytes, offered) / drum_batch(load, memory, disk)
    return moved / load.text_bytes + drum_bound(load)


def _rewritten(load: Workload, entry_bytes: float, offered: float) -> float:
    """Bytes an average merge reads and writes of the set: 2U + pn entries."""
    return (2 * load.seen_before + load.unique_share * offered) * entry_bytes


def drum_bound(load: Workload) -> float:
    """2 + p + 2H/b: what every method moves that stores hashes and text on disk before it checks them."""
    return 2 + load.unique_share + 2 * load.hash_bytes / load.text_bytes


def optimal_disk(load: Workload, memory: float) -> float:
    """Equation (6): bytes of disk beyond which memory is what limits a pass."""
    return memory**2 * (load.hash_bytes + load.text_bytes) / (8 * load.buffer_bytes * load.tuple_bytes)


def optimal_buckets(load: Workload, memory: float) -> float:
    """k = R / 4M, which is also by how much DRUM's quadratic term is below Mercator-B's at the optimal disk."""
    return memory / (4 * load.buffer_bytes)


def disk_pages_per_s(load: Workload, alpha: float, disk_bytes_per_s: float) -> float:
    """Theorem 3: the pages/s that a disk of that many bytes/s, reads and writes together, allows."""
    return disk_bytes_per_s / (alpha * load.text_bytes * LINKS_PER_PAGE)


def table_3_disk(load: Workload, offered: float, least: float) -> float:
    """D(n) of Table 3: as large as the hashes that the crawl adds, and not less than `least`."""
    return max(load.unique_share * load.hash_bytes * offered, least)
