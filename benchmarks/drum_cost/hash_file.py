"""The sorted file of hashes that Mercator-B and the paper's DRUM rewrite at each merge: 8 bytes a URL, no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.drum_cost.method import SPAN_BYTES
from bigcrawl.drum.format import KEY_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.drum_cost.urls import Mask
    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import KeyArray


class HashFile:
    """A set of 64-bit keys in one file; it exists once a key is in it."""

    def __init__(self, files: Files, path: Path) -> None:
        self._files = files
        self._path = path
        self._next = path.with_name(path.name + ".next")
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def check_update(self, keys: KeyArray) -> Mask:
        """Return which of the strictly ascending keys are new, and add them: one pass of reading and writing."""
        new = np.ones(len(keys), dtype=np.bool_)
        self._files.write_new(self._next, self._merged(keys, new))
        # No renaming over the old one: some file systems would wait for the disk.
        self._files.unlink(self._path)
        self._path, self._next = self._next, self._path
        self._count += int(new.sum())
        return new

    def _merged(self, keys: KeyArray, new: Mask) -> Iterator[bytes]:
        at = 0
        for held in self._spans():
            end = int(np.searchsorted(keys, held[-1], side="right"))
            wanted = keys[at:end]
            places = np.searchsorted(held, wanted)
            new[at:end] = unseen = held[places] != wanted
            yield np.insert(held, places[unseen], wanted[unseen]).tobytes()
            at = end
        yield keys[at:].tobytes()

    def _spans(self) -> Iterator[KeyArray]:
        size = self._count * KEY_TYPE.itemsize
        for offset in range(0, size, SPAN_BYTES):
            data = self._files.read(self._path, offset, min(SPAN_BYTES, size - offset))
            yield np.frombuffer(data, dtype=KEY_TYPE)
