"""Records too new to be worth a file, in memory: one array for each bucket, allocated once and filled.

A batch's records go behind those before them, so that no batch costs an object. The array is mapped, apart from
the heap: with hundreds of buckets in a process, arrays of some kilobytes that come and go among everything else
leave holes there that soon are as large as all they hold.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

import numpy as np

from bigcrawl.drum.format import KEY_BYTES, KEY_TYPE, Records, column

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray, ValueArray

# More fresh records than this become a run. They cost 32 KiB of memory a set, and creating a file, about 0.1 ms
# of system time, is spread over so many keys.
FRESH_KEYS_MAX = 4096


class Fresh:
    """Keys, each with a value or none, in the order they came: a value, never changed.

    The keys of a set are distinct. Where keys have values it is a log: of a key that came more than once the last
    record counts. A record is a key's 8 bytes and then the value's, little-endian.

    Those made by `with_added` have a common array, of which each knows how much is its own, as the committed
    length of a file. Of two made from the same records only the one made last may be kept.
    """

    __slots__ = ("_array", "_count", "_record_bytes")

    def __init__(self, array: npt.NDArray[np.uint8], record_bytes: int, count: int) -> None:
        self._array = array
        self._record_bytes = record_bytes
        self._count = count

    @classmethod
    def from_bytes(cls, data: bytes, record_bytes: int = KEY_BYTES) -> Fresh:
        """Return the records that `bytes_from` wrote."""
        count = len(data) // record_bytes
        array = _mapped(max(len(data), FRESH_KEYS_MAX * KEY_BYTES)) if count else _NOTHING
        array[: count * record_bytes] = np.frombuffer(data, dtype=np.uint8)
        return cls(array, record_bytes if count else KEY_BYTES, count)

    @classmethod
    def from_strings(cls, strings: Sequence[bytes]) -> Fresh:
        """Return the records that `strings_from` cut, all of one length."""
        return cls.from_bytes(b"".join(strings), len(strings[0]) if strings else KEY_BYTES)

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<Fresh {self._count}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fresh):
            return NotImplemented
        return len(self) == len(other) and self.begins_with(other)

    def __hash__(self) -> int:
        return hash(self.bytes_from(0))

    def begins_with(self, other: Fresh) -> bool:
        """Return whether the other's records are the first of these. Cost: none where one was made from the other."""
        if not other._count:
            return True
        if other._count > self._count or other._record_bytes != self._record_bytes:
            return False
        if self._array is other._array:
            return True
        size = other._count * other._record_bytes
        return np.array_equal(self._array[:size], other._array[:size])

    def with_added(self, keys: KeyArray, values: ValueArray | None = None, room: int = FRESH_KEYS_MAX) -> Fresh:
        """Return these records and, behind them, others.

        Args:
            keys: those of the others; in a set none of them is among these.
            values: as many, of one dtype in all records; None for a set.
            room: records to make room for when there is no array yet, or too small a one.
        """
        if not len(keys):
            return self
        record_bytes = KEY_BYTES + (values.dtype.itemsize if values is not None else 0)
        assert self._count == 0 or record_bytes == self._record_bytes, "all records are of one size"
        held, count = self._count, self._count + len(keys)
        array = self._array
        if count * record_bytes > len(array):
            array = _mapped(max(count, room) * record_bytes)
            array[: held * record_bytes] = self._array[: held * record_bytes]
        start = held * record_bytes
        column(array, start, len(keys), record_bytes, KEY_TYPE)[:] = keys
        if values is not None:
            column(array, start + KEY_BYTES, len(keys), record_bytes, values.dtype)[:] = values
        return Fresh(array, record_bytes, count)

    def without(self, unwanted: KeyArray) -> Fresh:
        """Return the records of other keys than the ascending ones, or these when none is among them."""
        keys = column(self._array, 0, self._count, self._record_bytes, KEY_TYPE)
        kept = unwanted.take(unwanted.searchsorted(keys), mode="clip") != keys
        if kept.all():
            return self
        rows = self._array[: self._count * self._record_bytes].reshape(-1, self._record_bytes)[kept]
        return Fresh.from_bytes(rows.tobytes(), self._record_bytes)

    def ascending(self, value: np.dtype[Any] | None = None) -> Records:
        """Return a sorted copy; of each key only the last record, which is all there is in a set.

        Args:
            value: the dtype of the values; None for a set.
        """
        if not self._count:
            return Records(np.empty(0, dtype=KEY_TYPE), np.empty(0, dtype=value) if value is not None else None)
        keys = column(self._array, 0, self._count, self._record_bytes, KEY_TYPE)
        if value is None:
            # Stable sorting of 64-bit keys finds the batches, which ascend, and merges them: 20 us at most.
            return Records(np.sort(keys, kind="stable"), None)
        values = column(self._array, KEY_BYTES, self._count, self._record_bytes, value)
        order = keys.argsort(kind="stable")
        keys = keys[order]
        last = np.ones(len(keys), dtype=np.bool_)
        np.not_equal(keys[1:], keys[:-1], out=last[:-1])
        return Records(keys[last], values[order[last]])

    def bytes_from(self, start: int) -> bytes:
        """Return the records from the one numbered `start` on."""
        return self._array[start * self._record_bytes : self._count * self._record_bytes].tobytes()

    def strings_from(self, start: int) -> list[bytes]:
        """Return the records from the one numbered `start` on, a string each."""
        return in_strings(self.bytes_from(start), self._record_bytes)

    def _check(self) -> None:
        assert 0 <= self._count * self._record_bytes <= len(self._array), "records lie in the array"
        if self._record_bytes == KEY_BYTES:
            keys = self.ascending().keys
            assert bool(np.all(keys[:-1] < keys[1:])), "a key of a set is fresh once"


def _mapped(size: int) -> npt.NDArray[np.uint8]:
    """Return an array of zeros, which take memory page by page as they are written over."""
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return np.frombuffer(mmap.mmap(-1, size, flags=private), dtype=np.uint8)


_NOTHING = np.empty(0, dtype=np.uint8)

EMPTY_FRESH = Fresh(_NOTHING, KEY_BYTES, 0)


def in_strings(data: bytes, record_bytes: int = KEY_BYTES) -> list[bytes]:
    """Cut records into strings of one record each."""
    return [data[at : at + record_bytes] for at in range(0, len(data), record_bytes)]
