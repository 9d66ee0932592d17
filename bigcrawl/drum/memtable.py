"""The newest records of a bucket, and the effect of mixed batches of checks and updates on them.

A batch has the same effect as if its entries were applied one by one (IRLbot §4.3).
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

import numpy as np

from bigcrawl.drum.format import KEY_BYTES, KEY_TYPE, Records, column

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray, KeyMask, ValueArray

_HALF = np.uint64(32)
_LOW_HALF = np.uint64((1 << 32) - 1)

# Takes 32 KiB of memory in a set, and spreads the cost of creating a file, 0.1 ms.
MEMTABLE_KEYS_MAX = 4096


class Batch:
    def __init__(self, keys: KeyArray, writes: KeyMask) -> None:
        count = len(keys)
        self._order = keys.argsort(kind="stable")
        ordered = keys[self._order]
        begins = np.ones(count, dtype=np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
        starts = np.flatnonzero(begins)
        self.distinct: KeyArray = ordered[starts]
        # For each entry: the index of its key, and the index of that key's first entry.
        self._key = np.cumsum(begins) - 1
        self._start = starts[self._key]
        self._writes = writes[self._order]
        upto = np.maximum.accumulate(np.where(self._writes, np.arange(count), -1))
        self._ends = np.append(starts, count)[1:] - 1
        self._last_write = upto[self._ends]
        self.wrote: KeyMask = self._last_write >= starts
        self._write_before = np.concatenate((np.full(min(count, 1), -1), upto[:-1]))
        self._is_written = self._write_before >= self._start

    def found_before(self, held: KeyMask) -> KeyMask:
        """Return whether each entry's key was present before it, given which keys were `held` before the batch."""
        found: KeyMask = self._as_arrived(held[self._key] | self._is_written)
        return found

    def replace(self, values: ValueArray, held: ValueArray) -> tuple[ValueArray, ValueArray]:
        """Return each entry's value before it, and each key's final value, for writes that replace values."""
        values = values[self._order]
        before = held[self._key]
        before[self._is_written] = values[self._write_before[self._is_written]]
        after = held.copy()
        after[self.wrote] = values[self._last_write[self.wrote]]
        return self._as_arrived(before), after

    def add(self, values: ValueArray, held: ValueArray) -> tuple[ValueArray, ValueArray]:
        """Return each entry's value before it, and each key's final value, for writes that add to values."""
        amounts = np.where(self._writes, values[self._order], 0).astype(np.uint64)
        sums = [self._sums_of(part) for part in (amounts & _LOW_HALF, amounts >> _HALF)]
        added = [sum_with - part for sum_with, part in zip(sums, (amounts & _LOW_HALF, amounts >> _HALF), strict=True)]
        before = _saturated(held[self._key], *added)
        after = _saturated(held, *(sum_with[self._ends] for sum_with in sums))
        return self._as_arrived(before), after

    def _sums_of(self, amounts: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        sums = np.cumsum(amounts, dtype=np.uint64)
        ours: npt.NDArray[np.uint64] = sums - (sums - amounts)[self._start]
        return ours

    def _as_arrived(self, ordered: Any) -> Any:
        arrived = np.empty_like(ordered)
        arrived[self._order] = ordered
        return arrived


def _saturated(held: ValueArray, low: npt.NDArray[np.uint64], high: npt.NDArray[np.uint64]) -> ValueArray:
    """Return held + low + (high << 32), limited to the maximum of held's dtype."""
    start = held.astype(np.uint64)
    low = low + (start & _LOW_HALF)
    high = high + (start >> _HALF) + (low >> _HALF)
    total = np.where(high > _LOW_HALF, ~np.uint64(0), (high << _HALF) | (low & _LOW_HALF))
    return np.minimum(total, np.uint64(np.iinfo(held.dtype).max)).astype(held.dtype)


class Memtable:
    """An immutable sequence of keys, each with or without a value, in order of arrival.

    If `with_added` makes two memtables from the same one, only the later one may be used: they share an array.
    """

    __slots__ = ("_array", "_count", "_record_bytes")

    def __init__(self, array: npt.NDArray[np.uint8], record_bytes: int, count: int) -> None:
        self._array = array
        self._record_bytes = record_bytes
        self._count = count

    @classmethod
    def from_bytes(cls, data: bytes, record_bytes: int = KEY_BYTES) -> Memtable:
        count = len(data) // record_bytes
        array = _lazy_zeros(max(len(data), MEMTABLE_KEYS_MAX * KEY_BYTES)) if count else _NOTHING
        array[: count * record_bytes] = np.frombuffer(data, dtype=np.uint8)
        return cls(array, record_bytes if count else KEY_BYTES, count)

    @classmethod
    def from_strings(cls, strings: Sequence[bytes]) -> Memtable:
        return cls.from_bytes(b"".join(strings), len(strings[0]) if strings else KEY_BYTES)

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        return self._count * self._record_bytes

    def __repr__(self) -> str:
        return f"<Memtable {self._count}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Memtable):
            return NotImplemented
        return len(self) == len(other) and self.begins_with(other)

    def __hash__(self) -> int:
        return hash(self.bytes_from(0))

    def begins_with(self, other: Memtable) -> bool:
        if not other._count:
            return True
        if other._count > self._count or other._record_bytes != self._record_bytes:
            return False
        if self._array is other._array:
            return True
        size = other._count * other._record_bytes
        return np.array_equal(self._array[:size], other._array[:size])

    def with_added(self, keys: KeyArray, values: ValueArray | None = None, room: int = MEMTABLE_KEYS_MAX) -> Memtable:
        """Return these records with others appended. A set must lack the keys of the others."""
        if not len(keys):
            return self
        record_bytes = KEY_BYTES + (values.dtype.itemsize if values is not None else 0)
        assert self._count == 0 or record_bytes == self._record_bytes, "all records are of one size"
        held, count = self._count, self._count + len(keys)
        array = self._array
        if count * record_bytes > len(array):
            array = _lazy_zeros(max(count, room) * record_bytes)
            array[: held * record_bytes] = self._array[: held * record_bytes]
        start = held * record_bytes
        column(array, start, len(keys), record_bytes, KEY_TYPE)[:] = keys
        if values is not None:
            column(array, start + KEY_BYTES, len(keys), record_bytes, values.dtype)[:] = values
        return Memtable(array, record_bytes, count)

    def without_keys(self, unwanted: KeyArray) -> Memtable:
        keys = column(self._array, 0, self._count, self._record_bytes, KEY_TYPE)
        kept = unwanted.take(unwanted.searchsorted(keys), mode="clip") != keys
        if kept.all():
            return self
        rows = self._array[: self._count * self._record_bytes].reshape(-1, self._record_bytes)[kept]
        return Memtable.from_bytes(rows.tobytes(), self._record_bytes)

    def sorted_records(self, value: np.dtype[Any] | None = None) -> Records:
        """Return a sorted copy with the last record of each key."""
        if not self._count:
            return Records(np.empty(0, dtype=KEY_TYPE), np.empty(0, dtype=value) if value is not None else None)
        keys = column(self._array, 0, self._count, self._record_bytes, KEY_TYPE)
        if value is None:
            # numpy sorts with vector instructions unless the sort is stable.
            return Records(np.sort(keys), None)
        keys, places = self._newest_of_each_key()
        return Records(keys, self._values(value)[places])

    def find(self, keys: KeyArray, value: np.dtype[Any] | None = None) -> tuple[KeyMask, ValueArray | None]:
        """Return which of the keys, strictly ascending, are present, and their last values, zero if absent."""
        found = np.zeros(len(keys), dtype=np.bool_)
        values = np.zeros(len(keys), dtype=value) if value is not None else None
        if not self._count or not len(keys):
            return found, values
        if values is None:
            held = self.sorted_records().keys
            return held.take(held.searchsorted(keys), mode="clip") == keys, None
        # The held keys are looked up among those given, mostly few: sorting them, with their places, takes longer.
        held = column(self._array, 0, self._count, self._record_bytes, KEY_TYPE)
        at = keys.searchsorted(held)
        places = np.flatnonzero(keys.take(at, mode="clip") == held)
        at = at[places]
        found[at] = True
        values[at] = self._values(values.dtype)[places]  # in order: the last of a key stays
        return found, values

    def _newest_of_each_key(self) -> tuple[KeyArray, npt.NDArray[np.intp]]:
        keys = column(self._array, 0, self._count, self._record_bytes, KEY_TYPE)
        order = keys.argsort(kind="stable")
        keys = keys[order]
        last = np.ones(len(keys), dtype=np.bool_)
        np.not_equal(keys[1:], keys[:-1], out=last[:-1])
        return keys[last], order[last]

    def _values(self, value: np.dtype[Any]) -> ValueArray:
        return column(self._array, KEY_BYTES, self._count, self._record_bytes, value)

    def bytes_from(self, start: int) -> bytes:
        return self._array[start * self._record_bytes : self._count * self._record_bytes].tobytes()

    def strings_from(self, start: int) -> list[bytes]:
        return in_strings(self.bytes_from(start), self._record_bytes)

    def _check(self) -> None:
        assert 0 <= self._count * self._record_bytes <= len(self._array), "records lie in the array"
        if self._record_bytes == KEY_BYTES:
            keys = self.sorted_records().keys
            assert bool(np.all(keys[:-1] < keys[1:])), "the keys of a set are distinct"


def _lazy_zeros(size: int) -> npt.NDArray[np.uint8]:
    """Return zeros whose memory is allocated page by page, when written."""
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return np.frombuffer(mmap.mmap(-1, size, flags=private), dtype=np.uint8)


_NOTHING = np.empty(0, dtype=np.uint8)

EMPTY_MEMTABLE = Memtable(_NOTHING, KEY_BYTES, 0)


def in_strings(data: bytes, record_bytes: int = KEY_BYTES) -> list[bytes]:
    return [data[at : at + record_bytes] for at in range(0, len(data), record_bytes)]
