"""Features' observations as rows for partitions: a field of inbox entries (docs/redis-keys.md).

A feature declares the kinds of its rows in its module `rows`: KINDS, and perhaps OWED, the kind that an owner keeps
until it has arrived; SOUND, a check of rows; ALONE, the kind that earlier versions sent in a separate field. A row's
first field is a key that decides its partition. Rows may come twice.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.feature_list import modules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    import numpy.typing as npt

    Rows = npt.NDArray[Any]

KINDS: Final[dict[int, np.dtype[Any]]] = {kind: row for m in modules_of("rows") for kind, row in m.KINDS.items()}

OWED: Final[int] = next((module.OWED for module in modules_of("rows") if hasattr(module, "OWED")), -1)

ALONE: Final[int] = next((module.ALONE for module in modules_of("rows") if hasattr(module, "ALONE")), -1)

_SOUND: Final[dict[int, Callable[[Rows], bool]]] = {
    kind: is_sound for module in modules_of("rows") for kind, is_sound in getattr(module, "SOUND", {}).items()
}
_VERSION: Final = 1
_KIND: Final = struct.Struct("<BI")
_ROW_BYTES: Final = 16  # this many bytes take as much room as a URL
_NOTHING: Final = {kind: np.empty(0, dtype=row) for kind, row in KINDS.items()}


class ObservedFormatError(BigcrawlError):
    pass


class ObservedRows(NamedTuple):
    partition: int
    rows: bytes | bytearray
    kind: int


def pack_observed(by_kind: Mapping[int, bytes | bytearray]) -> bytes:
    parts: list[bytes | bytearray] = [bytes((_VERSION,))]
    for kind, packed in sorted(by_kind.items()):
        if packed:
            parts += (_KIND.pack(kind, len(packed) // KINDS[kind].itemsize), packed)
    return b"".join(parts) if len(parts) > 1 else b""


def unpack_observed(data: bytes) -> dict[int, Rows]:
    if not data or data[0] != _VERSION:
        found = data[0] if data else "nothing"
        raise ObservedFormatError(f"rows have format version {found}; this version reads {_VERSION}")
    at, last, rows = 1, -1, _NOTHING.copy()
    while at < len(data):
        if len(data) < at + _KIND.size:
            raise ObservedFormatError(f"rows of {len(data)} bytes end within a count of rows")
        kind, count = _KIND.unpack_from(data, at)
        if kind <= last or kind not in KINDS:
            raise ObservedFormatError(f"rows of kind {kind} come after those of kind {last}, not in ascending order")
        at, last = at + _KIND.size, kind
        end = at + count * KINDS[kind].itemsize
        if end > len(data):
            raise ObservedFormatError(f"{len(data)} bytes are too few for {count} rows")
        rows[kind] = np.frombuffer(data, dtype=KINDS[kind], count=count, offset=at)
        if kind in _SOUND and not _SOUND[kind](rows[kind]):
            raise ObservedFormatError(f"a row of kind {kind} has a value out of range")
        at = end
    return rows


def unpack_alone(data: bytes) -> dict[int, Rows]:
    if ALONE not in KINDS:
        return _NOTHING.copy()
    if len(data) % KINDS[ALONE].itemsize:
        raise ObservedFormatError(f"{len(data)} bytes are not whole rows of {KINDS[ALONE].itemsize} bytes")
    return unpack_observed(pack_observed({ALONE: data}))


def concatenate_rows(several: Sequence[Mapping[int, Rows]]) -> Mapping[int, Rows]:
    if len(several) == 1:
        return several[0]
    # Joined as bytes, because numpy compares the types of structured arrays field by field.
    joined = {kind: b"".join([rows[kind].tobytes() for rows in several]) for kind in KINDS}
    return {kind: np.frombuffer(packed, dtype=KINDS[kind]) for kind, packed in joined.items()}


def rows_by_partition(kind: int, rows: Iterable[tuple[int, ...]], partitions: int) -> list[ObservedRows]:
    packed = np.array(list(rows), dtype=KINDS[kind])
    return [ObservedRows(home, some, kind) for home, some in _by_home(packed, partitions).items()]


def owed_by_partition(owed: bytes, partitions: int) -> dict[int, bytes]:
    return _by_home(np.frombuffer(owed, dtype=KINDS[OWED]), partitions)


def owed_in(owed: bytes, homes: Collection[int], partitions: int) -> bytes:
    rows = np.frombuffer(owed, dtype=KINDS[OWED])
    return rows[np.isin(_partitions_of(rows, partitions), list(homes))].tobytes()


def rows_owed(owed: int) -> int:
    return owed // KINDS[OWED].itemsize if owed else 0


def weight_of(packed: bytes) -> int:
    return len(packed) // _ROW_BYTES


def _by_home(rows: Rows, partitions: int) -> dict[int, bytes]:
    homes = _partitions_of(rows, partitions)
    return {home: rows[homes == home].tobytes() for home in set(homes.tolist())}


def _partitions_of(rows: Rows, partitions: int) -> Rows:
    names = rows.dtype.names
    assert names, "a row has fields"
    homes: Rows = rows[names[0]] % np.uint64(partitions)
    return homes
