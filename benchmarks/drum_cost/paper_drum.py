"""DRUM's URL-seen check as IRLbot §4.3 draws it, with the sizes of §4.4.

Half of the memory is 2k buffers of M bytes: a hash and a text buffer for each of k buckets, written to the
bucket's two files as they fill. When a bucket has the r bytes of hashes that the other half can sort, or all
together have the disk they may, each bucket is read, sorted, and merged with its range of the sorted hashes; then
its text is read and that of new URLs, in the order they came, goes to the queue.

Differs: the sorted hashes are a file for each bucket, so that one pass over them is k passes over its parts. The
bytes are the same. What holds the hashes is handed in, so that the buckets can stand before another kind of set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from benchmarks.drum_cost.hash_file import HashFile
from benchmarks.drum_cost.method import TextFile, first_arrivals
from benchmarks.drum_cost.models import PAPER
from benchmarks.drum_cost.queue import UniqueQueue
from benchmarks.drum_cost.urls import TEXT_BYTES
from bigcrawl.drum.format import KEY_BYTES, KEY_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy.typing as npt

    from benchmarks.drum_cost.urls import Batch, Mask, Texts
    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import KeyArray

_TUPLE_BYTES: Final = KEY_BYTES + TEXT_BYTES


class SeenSet(Protocol):
    """What a bucket's keys are merged with."""

    def check_update(self, keys: KeyArray) -> Mask:
        """Return which of the strictly ascending keys are new, and add them."""


class PaperDrum:
    """k buckets, a power of two, all merged together; the paper has R / 4M."""

    def __init__(
        self,
        directory: Path,
        files: Files,
        memory_bytes: int,
        disk_bytes: int,
        buckets: int,
        buffer_bytes: int,
        make_seen: Callable[[Files, Path], SeenSet] = HashFile,
    ) -> None:
        self.queue = UniqueQueue(files, directory / "queue")
        self.merges = 0
        self._bits = buckets.bit_length() - 1
        numbers = range(buckets)
        seen = [make_seen(files, directory / f"seen-{number}") for number in numbers]
        self._buckets = [_DiskBucket(directory, files, number, buffer_bytes, seen[number]) for number in numbers]
        self._bucket_keys_max = memory_bytes // (2 * PAPER.tuple_bytes)
        self._keys_max = disk_bytes // _TUPLE_BYTES
        self._waiting = np.zeros(len(self._buckets), dtype=np.int64)

    def offer(self, batch: Batch) -> None:
        """Take URLs; merge all buckets when one of them, or the disk, is full."""
        while len(batch.keys):
            taken = self._spread(batch)
            if self._waiting.max() >= self._bucket_keys_max or self._waiting.sum() >= self._keys_max:
                self.finish()
            batch = batch.from_place(taken)

    def finish(self) -> None:
        """One pass: merge what waits in all buckets."""
        if not self._waiting.any():
            return
        for bucket in self._buckets:
            bucket.merge(self.queue)
        self._waiting[:] = 0
        self.merges += 1

    def _spread(self, batch: Batch) -> int:
        """Give URLs to their buckets until one of these, or the disk, is full; return how many were taken."""
        taken = self._how_many(self._owners(batch.keys))
        owners = self._owners(batch.keys[:taken])
        order = np.argsort(owners, kind="stable")
        counts = np.bincount(owners, minlength=len(self._buckets))
        ends = np.cumsum(counts)
        for number in np.flatnonzero(counts).tolist():
            chosen = order[ends[number] - counts[number] : ends[number]]
            self._buckets[number].add(batch.keys[chosen], batch.texts[chosen])
        self._waiting += counts
        return taken

    def _how_many(self, owners: npt.NDArray[np.intp]) -> int:
        """How many of the next URLs fit, in the order they come."""
        taken = min(len(owners), self._keys_max - int(self._waiting.sum()))
        order = np.argsort(owners, kind="stable")
        counts = np.bincount(owners, minlength=len(self._buckets))
        room = self._bucket_keys_max - self._waiting
        filled = np.flatnonzero(counts >= room)
        last_places = order[np.cumsum(counts)[filled] - counts[filled] + room[filled] - 1]
        return min(taken, int(last_places.min()) + 1) if len(filled) else taken

    def _owners(self, keys: KeyArray) -> npt.NDArray[np.intp]:
        # A shift by all 64 bits would leave the number as it is.
        return (keys >> np.uint64(64 - self._bits) if self._bits else np.zeros_like(keys)).astype(np.intp)


class _DiskBucket:
    """The files Q^H and Q^T of one bucket, its two buffers, and its range of the keys."""

    def __init__(self, directory: Path, files: Files, number: int, buffer_bytes: int, seen: SeenSet) -> None:
        self._files = files
        self._path = directory / f"bucket-{number}"
        self._texts = TextFile(files, directory / f"text-{number}")
        self._seen = seen
        self._buffer_bytes = buffer_bytes
        self._keys_held: list[KeyArray] = []
        self._texts_held: list[Texts] = []
        self._key_bytes_held = 0
        self._text_bytes_held = 0
        self._bytes = 0

    def add(self, keys: KeyArray, texts: Texts) -> None:
        self._keys_held.append(keys)
        self._texts_held.append(texts)
        self._key_bytes_held += keys.nbytes
        self._text_bytes_held += texts.nbytes
        if self._key_bytes_held >= self._buffer_bytes:
            self._write_keys()
        if self._text_bytes_held >= self._buffer_bytes:
            self._write_texts()

    def merge(self, queue: UniqueQueue) -> None:
        self._write_keys()
        self._write_texts()
        if not self._bytes:
            return
        keys = np.frombuffer(self._files.read(self._path, 0, self._bytes), dtype=KEY_TYPE)
        distinct, places = first_arrivals(keys)
        new = self._seen.check_update(distinct)
        self._texts.move_to(queue, np.sort(places[new]))
        self._bytes = 0

    def _write_keys(self) -> None:
        if self._keys_held:
            data = np.concatenate(self._keys_held).tobytes()
            self._files.write_at(self._path, self._bytes, data)
            self._bytes += len(data)
        self._keys_held, self._key_bytes_held = [], 0

    def _write_texts(self) -> None:
        if self._texts_held:
            self._texts.append(np.concatenate(self._texts_held))
        self._texts_held, self._text_bytes_held = [], 0
