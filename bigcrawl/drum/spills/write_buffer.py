"""The write buffer: keys, operations and values in memory, and aux in a file, until they become a spill.

Source: IRLbot §4.3, Figure 1. Differs: one array is grouped by bucket when it spills, and one aux file keeps the order
of all arrivals, for the answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bigcrawl.drum.bucket import UPDATE
from bigcrawl.drum.format import KEY_BYTES, KEY_TYPE
from bigcrawl.drum.spills.aux_file import COLUMN_BYTES_MAX, Aux, encode_block
from bigcrawl.drum.spills.sections import KEYS_MAGIC, MIXED, SectionWriter
from bigcrawl.drum.spills.spill import Spill, aux_path, keys_path

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from bigcrawl.drum.bucket import OpArray
    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import KeyArray, ValueArray
    from bigcrawl.drum.spills.aux_file import IdArray
    from bigcrawl.drum.spills.spill import TupleLayout, Tuples

_Item = TypeVar("_Item", bound=np.generic)

# While a spill is sorted: key, index (i64), sorted key, bucket, operation. Values are held three times.
_TUPLE_BYTES = 28


class WriteBuffer:
    """The spill that is being filled. A failed method may be repeated; it changes only files that no manifest names."""

    def __init__(self, directory: Path, files: Files, layout: TupleLayout, memory_bytes: int, number: int) -> None:
        self._directory = directory
        self._files = files
        self._layout = layout
        self._tuples_max = max(1, memory_bytes // 2 // (_TUPLE_BYTES + 3 * layout.value_bytes))
        self._block_bytes = min(max(1, memory_bytes // 16), COLUMN_BYTES_MAX // 4)
        self._keys: KeyArray = np.empty(0, dtype=KEY_TYPE)
        self._values: ValueArray = np.empty(0, dtype=layout.value)
        self._number = number
        self._count = 0
        self._asks = False
        self._clear()

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<WriteBuffer {self._number} tuples={self._count} aux_bytes={self._aux_bytes}>"

    @property
    def tuples_max(self) -> int:
        return self._tuples_max

    @property
    def aux_bytes(self) -> int:
        return self._aux_bytes

    def has_room_for(self, count: int) -> bool:
        return self._count + count <= self._tuples_max

    def put(self, tuples: Tuples, ids: IdArray, aux: Aux) -> None:
        """Add a batch for which there is room; touches no file."""
        start, end = self._count, self._count + len(tuples.keys)
        assert end <= self._tuples_max, "the caller has made room"
        self._keys = _room(self._keys, end, self._tuples_max)
        self._keys[start:end] = tuples.keys
        if self._layout.value is not None:
            self._values = _room(self._values, end, self._tuples_max)
            self._values[start:end] = 0 if tuples.values is None else tuples.values
        self._put_ops(tuples, start, end)
        self._asks = self._asks or tuples.operation != UPDATE
        self._ids.append(ids)
        self._columns.append(aux)
        self._column_bytes += len(aux.blob) + 6 * len(aux)
        self._count = end

    def write_aux(self) -> None:
        if self._column_bytes >= self._block_bytes:
            self._write_block()

    def seal(self, first: int) -> Spill | None:
        """Write everything buffered, unsynced, and return the spill, if any."""
        if not self._count:
            return None
        if self._columns:
            self._write_block()
        path = keys_path(self._directory, self._number)
        operation = MIXED if self._ops is not None else self._operation
        writer = SectionWriter(self._files, path, KEYS_MAGIC, self._layout.buckets, self._count, operation)
        for section in self._sections():
            writer.add(section)
        writer.finish()
        spill = Spill(self._number, first, self._count, self._aux_bytes, self._asks)
        self._number += 1
        self._clear()
        return spill

    def _clear(self) -> None:
        self._count = 0
        self._ops: OpArray | None = None
        self._operation: int = 0
        self._asks = False
        self._ids: list[IdArray] = []
        self._columns: list[Aux] = []
        self._column_bytes: int = 0
        self._aux_bytes: int = 0

    def _put_ops(self, tuples: Tuples, start: int, end: int) -> None:
        if start == 0:
            self._operation = tuples.operation
        if self._ops is None and (tuples.operation == MIXED or tuples.operation != self._operation):
            self._ops = np.empty(self._tuples_max, dtype=np.uint8)
            self._ops[:start] = self._operation
        if self._ops is not None:
            self._ops[start:end] = tuples.operation if tuples.ops is None else tuples.ops

    def _write_block(self) -> None:
        data = encode_block(np.concatenate(self._ids), self._columns)
        self._files.write_at(aux_path(self._directory, self._number), self._aux_bytes, data)
        self._aux_bytes += len(data)
        self._ids, self._columns, self._column_bytes = [], [], 0

    def _sections(self) -> list[bytes | memoryview]:
        keys = self._keys[: self._count]
        ids = self._layout.buckets_of(keys)
        # For 8 and 16 bits the stable sort is a radix sort.
        order = ids.argsort(kind="stable")
        ends = np.cumsum(np.bincount(ids, minlength=self._layout.buckets)).tolist()
        columns: list[npt.NDArray[Any]] = [keys[order]]
        if self._ops is not None:
            columns.append(self._ops[: self._count][order])
        if self._layout.value is not None:
            columns.append(self._values[: self._count][order])
        bounds = list(zip([0, *ends[:-1]], ends, strict=True))
        if len(columns) == 1:
            view = columns[0].data.cast("B")
            return [view[start * KEY_BYTES : end * KEY_BYTES] for start, end in bounds]
        return [b"".join(column[start:end].tobytes() for column in columns) for start, end in bounds]


def _room(array: npt.NDArray[_Item], count: int, count_max: int) -> npt.NDArray[_Item]:
    """Return the array, or a larger one that starts with it; sizes double."""
    if count <= len(array):
        return array
    larger = np.empty(min(max(count, 2 * len(array)), count_max), dtype=array.dtype)
    larger[: len(array)] = array
    return larger
