"""Mercator-B's URL-seen check, as IRLbot §4.1 tells it.

Hashes with a pointer to their text wait in half of the memory; the text goes to disk as it comes. When that half
is full it is sorted in place and merged with the sorted file of hashes, which is written anew; then the text is
read back, and that of new URLs goes to the queue. Source: Najork & Heydon 2001, by way of IRLbot §4.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.drum_cost.hash_file import HashFile
from benchmarks.drum_cost.method import TextFile, first_arrivals
from benchmarks.drum_cost.models import PAPER, mercator_batch
from benchmarks.drum_cost.queue import UniqueQueue
from bigcrawl.drum.format import KEY_TYPE

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.drum_cost.urls import Batch
    from bigcrawl.drum.files import Files


class MercatorB:
    """Merges every R / 2(H+P) URLs; of a buffer's duplicates each takes its place, as no cache is in front."""

    def __init__(self, directory: Path, files: Files, memory_bytes: int) -> None:
        self.queue = UniqueQueue(files, directory / "queue")
        self.merges = 0
        self._seen = HashFile(files, directory / "seen")
        self._texts = TextFile(files, directory / "text")
        self._waiting = np.empty(int(mercator_batch(PAPER, memory_bytes)), dtype=KEY_TYPE)
        self._count = 0

    def offer(self, batch: Batch) -> None:
        """Take URLs; merge each time the buffer is full."""
        at = 0
        while at < len(batch.keys):
            taken = slice(at, at + min(len(self._waiting) - self._count, len(batch.keys) - at))
            keys = batch.keys[taken]
            self._texts.append(batch.texts[taken])
            self._waiting[self._count : self._count + len(keys)] = keys
            self._count += len(keys)
            at += len(keys)
            if self._count == len(self._waiting):
                self.finish()

    def finish(self) -> None:
        """Merge what waits."""
        if not self._count:
            return
        distinct, places = first_arrivals(self._waiting[: self._count])
        new = self._seen.check_update(distinct)
        self._texts.move_to(self.queue, np.sort(places[new]))
        self._count = 0
        self.merges += 1
