"""A spill: tuples on disk that wait for a merge.

`aux-<n>` has blocks of aux in order of arrival (`bigcrawl.drum.spills.aux_file`). Section b of `keys-<n>` has the
tuples of bucket b in order of arrival (`bigcrawl.drum.spills.sections`).
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
    """A batch, or part of one. `operation` is that of all tuples; if it is `MIXED`, `ops` has one for each."""

    keys: KeyArray
    operation: int
    ops: OpArray | None
    values: ValueArray | None


class Spill(NamedTuple):
    """Tuples on disk, as the manifest stores them.

    Attributes:
        number: part of its files' names.
        first: ordinal of its first tuple.
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
        return self.first + self.tuples


class TupleLayout(NamedTuple):
    buckets: int
    value: np.dtype[Any] | None

    @property
    def id_type(self) -> np.dtype[Any]:
        return np.dtype("<u1" if self.buckets <= 1 << 8 else "<u2")

    @property
    def value_bytes(self) -> int:
        return self.value.itemsize if self.value else 0

    @property
    def tuple_bytes(self) -> int:
        """Bytes of a tuple without its operation."""
        return KEY_BYTES + self.value_bytes

    def record_bytes(self, operation: int) -> int:
        return self.tuple_bytes + (operation == MIXED)

    def buckets_of(self, keys: KeyArray) -> IdArray:
        """Return the bucket of each key: its top bits."""
        shift = _BITS - (self.buckets.bit_length() - 1)
        if shift == _BITS:
            return np.zeros(len(keys), dtype=self.id_type)
        ids: IdArray = (keys >> np.uint64(shift)).astype(self.id_type)
        return ids


def keys_path(directory: Path, number: int) -> Path:
    return directory / f"keys-{number}"


def aux_path(directory: Path, number: int) -> Path:
    return directory / f"aux-{number}"


def decode_section(data: bytes | memoryview, operation: int, layout: TupleLayout) -> Tuples:
    is_mixed = operation == MIXED
    count = len(data) // layout.record_bytes(operation)
    keys = np.frombuffer(data, dtype=KEY_TYPE, count=count)
    ops = np.frombuffer(data, dtype=np.uint8, count=count, offset=count * KEY_BYTES) if is_mixed else None
    values = None
    if layout.value is not None:
        values = np.frombuffer(data, dtype=layout.value, count=count, offset=count * (KEY_BYTES + is_mixed))
    return Tuples(keys, operation, ops, values)
