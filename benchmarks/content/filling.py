"""Fills the maps of copies: a process of its own, `python -m benchmarks.content.filling spec.json`.

The maps are those of a crawl of `PARTITIONS` partitions, filled in batches of random keys and sketches, from which real
ones cannot be told. Each hundredth key of a batch is one of an earlier batch, and must be found.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from benchmarks.crawl import procfs
from benchmarks.drum_speed.confined import enter
from bigcrawl.content import exact_copies, near_copies
from bigcrawl.content.sketched import NEAR, ROW, SKETCH_WORDS
from bigcrawl.content.sketches import BANDS
from bigcrawl.drum.bucket import EMPTY_BUCKET, Bucket
from bigcrawl.drum.files import DiskFiles

if TYPE_CHECKING:
    from bigcrawl.drum.bucket import Kind
    from bigcrawl.drum.format import KeyArray

PARTITIONS: Final = 64
BATCH_ROWS: Final = 1 << 19
COPIES_PART: Final = 100


class Maps:
    """The maps of one kind, one for each partition."""

    def __init__(self, directory: Path, kind: Kind) -> None:
        self._maps = []
        for number in range(PARTITIONS):
            (path := directory / f"p{number}").mkdir()
            self._maps.append(Bucket(path, kind, EMPTY_BUCKET, DiskFiles()))
        self._directory = directory

    def add(self, keys: KeyArray, pages: KeyArray, sketches: Any = None) -> int:
        """Add rows to the maps of their keys, and return how many were copies."""
        copied = 0
        for number, table in enumerate(self._maps):
            here = keys % np.uint64(PARTITIONS) == np.uint64(number)
            if sketches is None:
                found = exact_copies.find_and_add(table, keys[here], pages[here], table.commit)
            else:
                rows = np.empty(int(here.sum()), dtype=ROW)
                # Contents are as many as pages, and larger the later they come: the first with a band is the original.
                rows["band"], rows["content"], rows["page"] = keys[here], pages[here], pages[here]
                rows["sketch"] = sketches[here]
                found = near_copies.find_near(table, rows, table.commit).contents
            copied += int((found != 0).sum())
            self._remove_obsolete(table, number)
        return copied

    def _remove_obsolete(self, table: Bucket, number: int) -> None:
        held = {run.name for run in table.state.runs}
        for path in (self._directory / f"p{number}").iterdir():
            if path.name not in held:
                path.unlink()

    def disk_bytes(self) -> int:
        """What all files take."""
        return sum(path.stat().st_size for path in self._directory.rglob("*") if path.is_file())


def fill(directory: Path, kind: str, pages: int) -> dict[str, Any]:
    """Fill the maps with so many pages; return the figures."""
    is_near = kind == "near"
    maps = Maps(directory, NEAR if is_near else exact_copies.CONTENTS)
    rows_a_page = BANDS if is_near else 1
    per_batch = BATCH_ROWS // rows_a_page
    asked = found = peak = 0
    began, cpu = time.perf_counter(), time.process_time()
    for start in range(0, pages, per_batch):
        count = min(per_batch, pages - start)
        keys, sketches = _batch(start // per_batch, count, is_near=is_near)
        numbers = np.arange(start + 1, start + 1 + count, dtype=np.uint64).repeat(rows_a_page)
        if start:
            # The keys and sketches of the first batch again, at other pages.
            part = min(count, per_batch // COPIES_PART) * rows_a_page
            first_keys, first_sketches = _batch(0, per_batch, is_near=is_near)
            keys[:part] = first_keys[:part]
            if sketches is not None and first_sketches is not None:
                sketches[:part] = first_sketches[:part]
            asked += part
        found += maps.add(keys, numbers, sketches)
        peak = max(peak, _anonymous_bytes())
    return {
        "seconds": time.perf_counter() - began,
        "cpu_s": time.process_time() - cpu,
        "asked": asked,
        "found": found,
        "anonymous_bytes": peak,
        "resident_bytes": procfs.rss_bytes(os.getpid()),
        "disk_bytes": maps.disk_bytes(),
    }


def _batch(number: int, pages: int, *, is_near: bool) -> tuple[KeyArray, Any]:
    rng = np.random.default_rng(number)
    if not is_near:
        return rng.integers(1, 1 << 64, pages, dtype=np.uint64), None
    bands = rng.integers(1, 1 << 64, pages * BANDS, dtype=np.uint64)
    return bands, rng.integers(0, 1 << 64, (pages, SKETCH_WORDS), dtype=np.uint64).repeat(BANDS, axis=0)


def _anonymous_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    return 0


if __name__ == "__main__":
    spec = json.loads(Path(sys.argv[1]).read_text())
    enter(Path(spec["group"]) if spec["group"] else None, spec["core"])
    print(json.dumps(fill(Path(spec["directory"]), spec["kind"], spec["pages"])))  # noqa: T201 - its answer
