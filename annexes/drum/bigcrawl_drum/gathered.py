"""Gathers the tuples that wait for a merge by bucket: in memory, and beyond that in a scratch file for each bucket.

Nothing here is durable: when a DRUM is opened, the tuples in its offers file are gathered again.

Source: IRLbot §4.3, Figure 1. Differs: instead of one array per bucket, a single array is grouped by bucket when full.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from isal import isal_zlib

from bigcrawl.drum.bucket import UPDATE
from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.exceptions import CorruptionError
from bigcrawl_drum.offers import OfferedTuples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import KeyArray

    IdArray = npt.NDArray[np.uint8 | np.uint16]
    CountArray = npt.NDArray[np.int64]

_KEY_BITS: Final = 64

# For a tuple while the array is grouped: key and operation twice, place (i64), bucket. Values are held three times.
_TUPLE_BYTES: Final = 28


def buckets_of(keys: KeyArray, buckets: int) -> IdArray:
    """Return each key's bucket: its top bits, as 8 or 16 bits, which numpy's stable sort sorts by radix."""
    id_type = np.uint8 if buckets <= 1 << 8 else np.uint16
    if buckets == 1:
        return np.zeros(len(keys), dtype=id_type)
    ids: IdArray = (keys >> np.uint64(_KEY_BITS - (buckets.bit_length() - 1))).astype(id_type)
    return ids


class GatheredTuples:
    def __init__(
        self, directory: Path, files: Files, value: np.dtype[Any] | None, buckets: int, memory_bytes: int
    ) -> None:
        self._directory = directory
        self._files = files
        self._buckets = buckets
        fields: list[Any] = [("key", KEY_TYPE), ("op", "u1")]
        self._type = np.dtype(fields if value is None else [*fields, ("value", value)])
        value_bytes = value.itemsize if value is not None else 0
        self.tuples_max = max(1, memory_bytes // (_TUPLE_BYTES + 3 * value_bytes))
        self._held: npt.NDArray[Any] = np.empty(0, dtype=self._type)
        self._count = 0
        self._crcs: list[int] = []
        self.asks = False
        self._reset()

    @property
    def file_bytes(self) -> int:
        return int(self._in_files.sum()) * self._type.itemsize

    def make_room(self, count: int) -> None:
        if self._count + count <= self.tuples_max:
            return
        grouped, ends = self._group_by_bucket()
        starts, crcs = [0, *ends[:-1]], list(self._crcs)
        for bucket in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
            data = grouped[starts[bucket] : ends[bucket]].tobytes()
            self._files.write_at(self._bucket_path(bucket), int(self._in_files[bucket]) * self._type.itemsize, data)
            crcs[bucket] = isal_zlib.crc32(data, crcs[bucket])
        # Only now: a failed write is repeated at the same place.
        self._in_files[:] = self.counts
        self._crcs, self._count = crcs, 0

    def put(self, tuples: OfferedTuples, counts: CountArray) -> None:
        """Add tuples, for which there must be room; `counts` is their number in each bucket."""
        start, end = self._count, self._count + len(tuples.keys)
        assert end <= self.tuples_max, "the caller has made room"
        if end > len(self._held):
            larger = np.empty(min(max(end, 2 * len(self._held)), self.tuples_max), dtype=self._type)
            larger[:start] = self._held[:start]
            self._held = larger
        rows = self._held[start:end]
        rows["key"], rows["op"] = tuples.keys, tuples.ops
        if tuples.values is not None:
            rows["value"] = tuples.values
        self._count = end
        self.counts += counts
        self.asks = self.asks or bool((tuples.ops != UPDATE).any())

    def by_bucket(self) -> Iterator[OfferedTuples]:
        grouped, ends = self._group_by_bucket()
        start = 0
        for bucket, end in enumerate(ends):
            rows = grouped[start:end]
            if self._in_files[bucket]:
                rows = np.concatenate((self._read_bucket(bucket), rows))
            start = end
            values = np.ascontiguousarray(rows["value"]) if "value" in (self._type.names or ()) else None
            yield OfferedTuples(np.ascontiguousarray(rows["key"]), np.ascontiguousarray(rows["op"]), values)

    def clear(self) -> None:
        """Forget all tuples. Files that cannot be deleted now are deleted at the next opening, or overwritten."""
        for bucket in np.flatnonzero(self._in_files).tolist():
            with contextlib.suppress(OSError):
                self._files.unlink(self._bucket_path(bucket))
        self._reset()

    def _reset(self) -> None:
        self._count, self.asks = 0, False
        self.counts: CountArray = np.zeros(self._buckets, dtype=np.int64)
        self._in_files: CountArray = np.zeros(self._buckets, dtype=np.int64)
        self._crcs = [0] * self._buckets

    def _group_by_bucket(self) -> tuple[npt.NDArray[Any], list[int]]:
        held = self._held[: self._count]
        ids = buckets_of(held["key"], self._buckets)
        ends: list[int] = np.cumsum(np.bincount(ids, minlength=self._buckets)).tolist()
        # Rows without fields are moved several times faster.
        whole = held.view(f"V{self._type.itemsize}")
        return whole[ids.argsort(kind="stable")].view(self._type), ends

    def _read_bucket(self, bucket: int) -> npt.NDArray[Any]:
        path, size = self._bucket_path(bucket), int(self._in_files[bucket]) * self._type.itemsize
        data = self._files.read(path, 0, size)
        if len(data) != size or isal_zlib.crc32(data) != self._crcs[bucket]:
            raise CorruptionError(path, 0, f"{size} bytes of crc32 {self._crcs[bucket]:#010x}", "others")
        return np.frombuffer(data, dtype=self._type)

    def _bucket_path(self, bucket: int) -> Path:
        return self._directory / f"gathered-{bucket:03x}"
