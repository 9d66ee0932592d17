"""A spill: tuples on disk that wait for a merge, and how they are divided into buckets.

It is two files: `aux-<n>` (`bigcrawl.drum.spills.aux_file`) with blocks of aux in order of arrival, and `keys-<n>`
(`bigcrawl.drum.spills.sections`), whose section b holds the tuples of bucket b in order of arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bigcrawl.drum.format import KEY_BYTES, KEY_TYPE
from bigcrawl.drum.spills.sections import MIXED

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.drum.bucket import OpArray
    from bigcrawl.drum.format import KeyArray, ValueArray
    from bigcrawl.drum.spills.aux_file import IdArray

_BITS: Final = 64


class Tuples(NamedTuple):
    """A batch, or part of one: entry i of each column is one tuple.

    Attributes:
        keys: uint64.
        operation: of all tuples; if `MIXED`, see `ops`.
        ops: uint8, one for each tuple, or None.
        values: of the kind's dtype, one for each tuple, or None in a set.
    """

    keys: KeyArray
    operation: int
    ops: OpArray | None
    values: ValueArray | None


class Spill(NamedTuple):
    """Tuples on disk, as the manifest stores them.

    Attributes:
        number: part of its files' names.
        first: ordinal of its first tuple: how many were offered before it.
        tuples: their number, at least 1.
        aux_bytes: committed bytes of the aux file.
        asks: whether any tuple wants an answer.
    """

    number: int
    first: int
    tuples: int
    aux_bytes: int
    asks: bool

    @property
    def end(self) -> int:
        """Ordinal of the first tuple after it."""
        return self.first + self.tuples


class TupleLayout(NamedTuple):
    """How tuples are divided into buckets, and their width.

    Attributes:
        buckets: a power of two.
        value: dtype of the values, or None.
    """

    buckets: int
    value: np.dtype[Any] | None

    @property
    def id_type(self) -> np.dtype[Any]:
        """Dtype of a bucket number, little-endian."""
        return np.dtype("<u1" if self.buckets <= 1 << 8 else "<u2")

    @property
    def value_bytes(self) -> int:
        """Bytes of a value; 0 in a set."""
        return self.value.itemsize if self.value else 0

    @property
    def tuple_bytes(self) -> int:
        """Bytes of a tuple in a section of keys, without its operation."""
        return KEY_BYTES + self.value_bytes

    def record_bytes(self, operation: int) -> int:
        """Return the bytes of a tuple in a section of keys."""
        return self.tuple_bytes + (operation == MIXED)

    def buckets_of(self, keys: KeyArray) -> IdArray:
        """Return the bucket of each key: its top bits."""
        shift = _BITS - (self.buckets.bit_length() - 1)
        if shift == _BITS:
            return np.zeros(len(keys), dtype=self.id_type)
        ids: IdArray = (keys >> np.uint64(shift)).astype(self.id_type)
        return ids


def keys_path(directory: Path, number: int) -> Path:
    """Return the path of a spill's keys."""
    return directory / f"keys-{number}"


def aux_path(directory: Path, number: int) -> Path:
    """Return the path of a spill's aux."""
    return directory / f"aux-{number}"


def decode_section(data: bytes | memoryview, operation: int, layout: TupleLayout) -> Tuples:
    """Return the tuples of a section of keys. The arrays are views."""
    is_mixed = operation == MIXED
    count = len(data) // layout.record_bytes(operation)
    keys = np.frombuffer(data, dtype=KEY_TYPE, count=count)
    ops = np.frombuffer(data, dtype=np.uint8, count=count, offset=count * KEY_BYTES) if is_mixed else None
    values = None
    if layout.value is not None:
        values = np.frombuffer(data, dtype=layout.value, count=count, offset=count * (KEY_BYTES + is_mixed))
    return Tuples(keys, operation, ops, values)
