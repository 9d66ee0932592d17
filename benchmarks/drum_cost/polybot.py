"""PolyBot's URL-seen check: PolyBot §3.2, with the sizes of IRLbot §4.1.

Text waits in half of the memory, in a tree of four pointers a node; when that half is full, the sorted text is
merged with the front-coded file of all URLs, which is written anew. New URLs go to the queue in sorted order.

Differs: the tree is an array that is sorted for the merge, with a tree's sizes: bytes on disk are what counts.
Of a buffer's duplicates each takes its place; a tree would hold one of them, which is a cache, and no method has
one here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.drum_cost.front_coding import FrontCodedFile
from benchmarks.drum_cost.models import PAPER, polybot_batch
from benchmarks.drum_cost.queue import UniqueQueue
from benchmarks.drum_cost.urls import TEXT_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.drum_cost.urls import Batch
    from bigcrawl.drum.files import Files


class PolyBot:
    """Merges every R / 2(b+4P) URLs."""

    def __init__(self, directory: Path, files: Files, memory_bytes: int) -> None:
        self.queue = UniqueQueue(files, directory / "queue")
        self.merges = 0
        self._seen = FrontCodedFile(files, directory / "seen")
        self._waiting = np.empty((int(polybot_batch(PAPER, memory_bytes)), TEXT_BYTES), dtype=np.uint8)
        self._count = 0

    @property
    def compressed_bytes(self) -> float:
        """bq: bytes a URL in the file, mean over the merges."""
        return self._seen.bytes_a_url

    def offer(self, batch: Batch) -> None:
        """Take URLs; merge each time the buffer is full."""
        at = 0
        while at < len(batch.texts):
            texts = batch.texts[at : at + len(self._waiting) - self._count]
            self._waiting[self._count : self._count + len(texts)] = texts
            self._count += len(texts)
            at += len(texts)
            if self._count == len(self._waiting):
                self.finish()

    def finish(self) -> None:
        """Merge what waits."""
        if not self._count:
            return
        # As strings of numpy they sort as bytes do; none ends in a zero byte, which those would lose.
        urls = np.unique(self._waiting[: self._count].view(f"S{TEXT_BYTES}"))
        new = self._seen.check_update(urls.tolist())
        self.queue.append(np.frombuffer(b"".join(new), dtype=np.uint8).reshape(-1, TEXT_BYTES))
        self._count = 0
        self.merges += 1
