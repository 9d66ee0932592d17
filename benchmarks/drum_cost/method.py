"""What the measured methods have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from benchmarks.drum_cost.urls import TEXT_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.drum_cost.queue import UniqueQueue
    from benchmarks.drum_cost.urls import Batch, Texts
    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import KeyArray

# One read of a sequential pass.
SPAN_BYTES = 1 << 20
_SPAN_TEXTS = SPAN_BYTES // TEXT_BYTES


class Method(Protocol):
    """A URL-seen check that answers in batches of its own choice."""

    @property
    def queue(self) -> UniqueQueue:
        """Where the new URLs have gone."""

    @property
    def merges(self) -> int:
        """How often what waited was merged with the set."""

    def offer(self, batch: Batch) -> None:
        """Take URLs, and merge as often as memory or disk is full."""

    def finish(self) -> None:
        """Merge what still waits."""


def first_arrivals(keys: KeyArray) -> tuple[KeyArray, KeyArray]:
    """Return the distinct keys, ascending, and the place at which each came first."""
    distinct, places = np.unique(keys, return_index=True)
    return distinct, places.astype(np.uint64)


class TextFile:
    """Texts in the order they arrived: written as they come, read back once in a merge, then overwritten."""

    def __init__(self, files: Files, path: Path) -> None:
        self._files = files
        self._path = path
        self._count = 0

    def append(self, texts: Texts) -> None:
        self._files.write_at(self._path, self._count * TEXT_BYTES, texts.tobytes())
        self._count += len(texts)

    def move_to(self, queue: UniqueQueue, places: KeyArray) -> None:
        """Read all, hand the texts at these ascending places to the queue, and begin anew."""
        for start in range(0, self._count, _SPAN_TEXTS):
            count = min(_SPAN_TEXTS, self._count - start)
            data = self._files.read(self._path, start * TEXT_BYTES, count * TEXT_BYTES)
            low, high = np.searchsorted(places, np.array([start, start + count], dtype=np.uint64)).tolist()
            chosen = (places[low:high] - np.uint64(start)).astype(np.intp)
            queue.append(np.frombuffer(data, dtype=np.uint8).reshape(count, TEXT_BYTES)[chosen])
        self._count = 0
