"""bigcrawl's `Drum` as it is used: buckets, compressed aux, tiered runs and manifest, all through counted files."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.drum_cost.counting import CountingFiles
from benchmarks.drum_cost.queue import UniqueQueue
from benchmarks.drum_cost.urls import TEXT_BYTES
from bigcrawl.drum.bucket import Kind
from bigcrawl_drum.aux_column import Aux
from bigcrawl_drum.drum import Drum

if TYPE_CHECKING:
    from benchmarks.drum_cost.urls import Batch
    from bigcrawl.drum.files import Files
    from bigcrawl_drum.merge import Answer


class OurDrum:
    """A `Drum` of URLs whose receiver appends the text of the new ones to the queue."""

    def __init__(
        self, directory: Path, files: Files, memory_bytes: int, disk_bytes: int, buckets: int, fresh_max: int
    ) -> None:
        self.queue = UniqueQueue(files, directory / "queue")
        self.merges = 0
        self.drum = Drum(
            directory / "drum",
            self._receive,
            kind=Kind("run", fresh_max=fresh_max),
            buckets=buckets,
            memory_bytes=memory_bytes,
            disk_bytes=disk_bytes,
            files=files,
        )

    def offer(self, batch: Batch) -> None:
        """Take URLs; the drum merges when it is full."""
        for start in range(0, len(batch.keys), self.drum.batch_max):
            keys = batch.keys[start : start + self.drum.batch_max]
            texts = batch.texts[start : start + len(keys)]
            aux = Aux(texts.tobytes(), np.full(len(keys), TEXT_BYTES, dtype=np.uint32))
            waited = self.drum.waiting
            self.drum.check_update(keys, aux=aux)
            self.merges += self.drum.waiting < waited + len(keys)

    def finish(self) -> None:
        """Merge what still waits."""
        self.merges += self.drum.waiting > 0
        self.drum.merge()

    def _receive(self, answer: Answer) -> None:
        texts = np.frombuffer(answer.aux.blob, dtype=np.uint8).reshape(-1, TEXT_BYTES)
        self.queue.append(texts[~answer.found])


@cache
def tuples_max(memory_bytes: int, buckets: int) -> int:
    """How many tuples a set of that memory gathers before it merges, disk apart, by the rules of `Drum`.

    A `Drum` of one bucket says so, because a bucket's bound is the same and it is made sooner.
    """
    with tempfile.TemporaryDirectory(prefix="bigcrawl-drum-cost-") as directory:
        at = Path(directory) / "drum"
        drum = Drum(at, lambda _: None, buckets=1, memory_bytes=memory_bytes, files=CountingFiles())
        return buckets * drum._bucket_tuples_max
