"""The format of a run: sorted 64-bit keys, each with or without a value, written once and never changed.

docs/file-formats.md has its bytes; to change them, raise the version: an unknown one is refused.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from isal import isal_zlib

from bigcrawl.exceptions import CorruptionError

if TYPE_CHECKING:
    import mmap

    import numpy.typing as npt

    KeyArray = npt.NDArray[np.uint64]
    KeyMask = npt.NDArray[np.bool_]
    CountArray = npt.NDArray[np.int64]
    ValueArray = npt.NDArray[Any]  # of the dtype of the bucket's kind
    Buffer = bytes | bytearray | memoryview | mmap.mmap

RUN_MAGIC = b"BCDRUMRN"
RUN_VERSION = 2

KEY_TYPE = np.dtype("<u8")
KEY_BYTES = 8
CRC_TYPE = np.dtype("<u4")
CRC_BYTES = 4

BLOCK_BYTES = 4096

# How many prefixes form a group; a look-up adds up the counts of one group.
GROUP_PREFIXES = 32

# Limits a run's directory to 2 MiB.
PREFIXES_MAX = 1 << 18

_TRAILER = struct.Struct("<8sIBBHQQQQI")
_TRAILER_CRC = struct.Struct("<I")
TRAILER_BYTES = _TRAILER.size + _TRAILER_CRC.size

assert TRAILER_BYTES == 56


class Records(NamedTuple):
    keys: KeyArray
    values: ValueArray | None


class RunLayout(NamedTuple):
    suffix_bytes: int
    count_bytes: int
    value_bytes: int
    keys: int
    first: int
    last: int
    base: int

    @property
    def record_bytes(self) -> int:
        return self.suffix_bytes + self.value_bytes

    @property
    def suffix_bits(self) -> int:
        return 8 * self.suffix_bytes

    @property
    def prefixes(self) -> int:
        return prefixes_of(self.last - self.base, self.suffix_bytes)

    @property
    def group_bytes(self) -> int:
        return KEY_BYTES + GROUP_PREFIXES * self.count_bytes

    @property
    def directory(self) -> int:
        return self.keys * self.record_bytes

    @property
    def table(self) -> int:
        return self.directory + groups_of(self.prefixes) * self.group_bytes

    @property
    def length(self) -> int:
        return self.table + blocks_of(self.table) * CRC_BYTES + TRAILER_BYTES


def are_ascending(keys: KeyArray) -> bool:
    """Return whether keys are strictly ascending, much faster than `np.unique`."""
    return len(keys) < 2 or bool((keys[1:] > keys[:-1]).all())


def blocks_of(size: int) -> int:
    return -(-size // BLOCK_BYTES)


def groups_of(prefixes: int) -> int:
    return -(-prefixes // GROUP_PREFIXES)


def prefixes_of(extent: int, suffix_bytes: int) -> int:
    return (extent >> 8 * suffix_bytes) + 1


def best_suffix_bytes(keys: int, extent: int) -> int:
    """Return the length of suffixes that makes the run shortest."""

    def cost(suffix_bytes: int) -> int:
        groups = groups_of(prefixes_of(extent, suffix_bytes))
        return keys * suffix_bytes + groups * (KEY_BYTES + GROUP_PREFIXES)

    return min((s for s in range(1, KEY_BYTES + 1) if prefixes_of(extent, s) <= PREFIXES_MAX), key=cost)


def group_type(count_bytes: int) -> np.dtype[np.void]:
    return np.dtype([("start", "<u8"), ("counts", f"<u{count_bytes}", (GROUP_PREFIXES,))])


def encode_records(records: Records, base: int, suffix_bytes: int) -> bytes:
    keys, values = records
    differences = np.subtract(keys, np.uint64(base), dtype=KEY_TYPE)
    if suffix_bytes == KEY_BYTES and values is None:
        return differences.tobytes()
    width = suffix_bytes + (values.dtype.itemsize if values is not None else 0)
    data = bytearray(len(keys) * width)
    column(data, 0, len(keys), width, np.dtype(f"V{suffix_bytes}"))[:] = column(
        differences, 0, len(keys), KEY_BYTES, np.dtype(f"V{suffix_bytes}")
    )
    if values is not None:
        column(data, suffix_bytes, len(keys), width, values.dtype)[:] = values
    return bytes(data)


def decode_suffixes(data: Buffer, offset: int, count: int, layout: RunLayout) -> KeyArray:
    """Return the suffixes of records; at least 8 bytes must follow them."""
    whole = column(data, offset, count, layout.record_bytes, KEY_TYPE)
    return np.bitwise_and(whole, np.uint64((1 << layout.suffix_bits) - 1))


def decode_values(data: Buffer, offset: int, count: int, layout: RunLayout, value: np.dtype[Any]) -> ValueArray:
    return column(data, offset + layout.suffix_bytes, count, layout.record_bytes, value).copy()


def encode_directory(counts: CountArray) -> tuple[bytes, int]:
    """Return the directory for these counts of records by prefix, and the number of bytes in a count."""
    highest = int(counts.max())
    count_bytes = next(size for size in (1, 2, 4, 8) if highest < 1 << 8 * size)
    groups = np.zeros(groups_of(len(counts)), dtype=group_type(count_bytes))
    padded = np.zeros(len(groups) * GROUP_PREFIXES, dtype=np.int64)
    padded[: len(counts)] = counts
    by_group = padded.reshape(-1, GROUP_PREFIXES)
    groups["counts"] = by_group
    groups["start"][1:] = np.cumsum(by_group.sum(axis=1))[:-1]
    return groups.tobytes(), count_bytes


def decode_directory(path: str, data: Buffer, layout: RunLayout) -> CountArray:
    groups = np.frombuffer(data, dtype=group_type(layout.count_bytes))
    ends = np.cumsum(groups["counts"], dtype=np.int64)
    last_of_groups = ends[GROUP_PREFIXES - 1 :: GROUP_PREFIXES]
    if int(ends[-1]) != layout.keys or not np.array_equal(groups["start"][1:], last_of_groups[:-1].astype(KEY_TYPE)):
        raise CorruptionError(path, layout.directory, f"a directory of {layout.keys} records", int(ends[-1]))
    return ends[: layout.prefixes]


def encode_trailer(layout: RunLayout, table: bytes) -> bytes:
    head = (RUN_MAGIC, RUN_VERSION, layout.suffix_bytes, layout.count_bytes, layout.value_bytes)
    data = _TRAILER.pack(*head, layout.keys, layout.first, layout.last, layout.base, isal_zlib.crc32(table))
    return data + _TRAILER_CRC.pack(isal_zlib.crc32(data))


def decode_trailer(path: str, data: bytes, size: int) -> tuple[RunLayout, int]:
    """Return the layout of a run, and the crc32 of its checksum table, from its last bytes."""
    offset = size - TRAILER_BYTES
    if len(data) < TRAILER_BYTES:
        raise CorruptionError(path, 0, f"a trailer of {TRAILER_BYTES} bytes", f"{len(data)} bytes")
    magic, version, suffix_bytes, count_bytes, value_bytes, *numbers, table_crc = _TRAILER.unpack_from(data)
    if magic != RUN_MAGIC:
        raise CorruptionError(path, offset, f"magic {RUN_MAGIC!r}", repr(magic))
    if version != RUN_VERSION:
        raise CorruptionError(path, offset + 8, f"format version {RUN_VERSION}", version)
    (crc,) = _TRAILER_CRC.unpack_from(data, _TRAILER.size)
    found = isal_zlib.crc32(data[: _TRAILER.size])
    if crc != found:
        raise CorruptionError(path, offset, f"trailer crc32 {crc:#010x}", f"{found:#010x}")
    layout = RunLayout(suffix_bytes, count_bytes, value_bytes, *numbers)
    if not (1 <= suffix_bytes <= KEY_BYTES and layout.keys >= 1 and layout.base <= layout.first <= layout.last):
        raise CorruptionError(path, offset + 12, "a sorted run with at least one key", layout)
    if size != layout.length:
        raise CorruptionError(path, size, f"{layout.length} bytes", f"{size} bytes")
    return layout, table_crc


def column(data: Buffer | npt.NDArray[Any], offset: int, count: int, stride: int, dtype: np.dtype[Any]) -> ValueArray:
    return np.ndarray((count,), dtype, buffer=data, offset=offset, strides=(stride,))
