"""Keys too new to be worth a file, in memory: one array for each set, allocated once and filled.

A batch's keys go behind those before them, so that no batch costs an object. The array is mapped, apart from the
heap: with hundreds of sets in a process, arrays of some kilobytes that come and go among everything else leave
holes there that soon are as large as all they hold.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.drum.format import KEY_BYTES, KEY_TYPE

if TYPE_CHECKING:
    from bigcrawl.drum.format import KeyArray

# More fresh keys than this become a run. They cost 32 KiB of memory a set, and creating a file, about 0.1 ms
# of system time, is spread over so many keys.
FRESH_KEYS_MAX = 4096


class FreshKeys:
    """Distinct keys in the order they came: a value, never changed.

    Those made by `with_added` have a common array, of which each knows how much is its own, as the committed
    length of a file. Of two made from the same keys only the one made last may be kept.
    """

    __slots__ = ("_array", "_count")

    def __init__(self, array: KeyArray, count: int) -> None:
        self._array = array
        self._count = count

    @classmethod
    def from_bytes(cls, data: bytes) -> FreshKeys:
        """Return the keys that `bytes_from` wrote."""
        keys = np.frombuffer(data, dtype=KEY_TYPE)
        return EMPTY_FRESH.with_added(keys)

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<FreshKeys {self._count}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FreshKeys):
            return NotImplemented
        return len(self) == len(other) and self.begins_with(other)

    def __hash__(self) -> int:
        return hash(self.bytes_from(0))

    def begins_with(self, other: FreshKeys) -> bool:
        """Return whether the other's keys are the first of these. Cost: none where one was made from the other."""
        count = len(other)
        if count > self._count:
            return False
        return self._array is other._array or np.array_equal(self._array[:count], other._array[:count])

    def with_added(self, keys: KeyArray) -> FreshKeys:
        """Return these keys and, behind them, others, none of which is among these."""
        count = self._count + len(keys)
        array = self._array
        if count > len(array):
            array = _mapped(max(count, FRESH_KEYS_MAX))
            array[: self._count] = self._array[: self._count]
        array[self._count : count] = keys
        return FreshKeys(array, count)

    def ascending(self) -> KeyArray:
        """Return a sorted copy."""
        # Stable sorting of 64-bit keys finds the batches, which ascend, and merges them: 20 us at most.
        return np.sort(self._array[: self._count], kind="stable")

    def bytes_from(self, start: int) -> bytes:
        """Return the keys from the one numbered `start` on, little-endian."""
        return self._array[start : self._count].tobytes()

    def _check(self) -> None:
        assert 0 <= self._count <= len(self._array), "keys lie in the array"
        keys = self.ascending()
        assert bool(np.all(keys[:-1] < keys[1:])), "a key is fresh once"


def _mapped(count: int) -> KeyArray:
    """Return an array of zeros, which take memory page by page as they are written over."""
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return np.frombuffer(mmap.mmap(-1, count * KEY_BYTES, flags=private), dtype=KEY_TYPE)


EMPTY_FRESH = FreshKeys(np.empty(0, dtype=KEY_TYPE), 0)


def in_strings(data: bytes) -> list[bytes]:
    """Cut keys into strings of one key each."""
    return [data[at : at + KEY_BYTES] for at in range(0, len(data), KEY_BYTES)]
