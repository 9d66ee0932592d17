"""Computes the effect of a mixed batch of checks and updates, as if they were applied one by one (IRLbot §4.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray, KeyMask, ValueArray

_HALF = np.uint64(32)
_LOW_HALF = np.uint64((1 << 32) - 1)


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
