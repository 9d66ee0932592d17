"""The bytes of a run: a set of 64-bit keys, sorted, written once and never changed.

    offset  bytes         what
    0       8             magic "BCDRUMRN"
    8       u32           format version, 1
    12      u32           keys a block, 512
    16      u64           number of keys, n >= 1
    24      u64           first key
    32      u64           last key
    40      u32           crc32 of bytes 0..39
    44      u32           zero
    48      n * u64       keys, strictly ascending; block i is keys i*512 .. i*512+511
    ...     b * u32       crc32 of each of the b blocks
    end-4   u32           crc32 of that table

All numbers are little-endian. To change the layout, raise the version: an unknown one is refused.
A run has no temporary name and no commit mark of its own: it exists when its owner's manifest names it,
and a crash before that leaves a file that nothing refers to.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from isal import isal_zlib

from bigcrawl.exceptions import CorruptionError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    KeyArray = npt.NDArray[np.uint64]
    CrcArray = npt.NDArray[np.uint32]

RUN_MAGIC = b"BCDRUMRN"
RUN_VERSION = 1
KEY_BYTES = 8
KEY_TYPE = np.dtype("<u8")
CRC_TYPE = np.dtype("<u4")

# One block is one 4 KiB page: the least a disk reads, and 1 us of crc32.
BLOCK_KEYS = 512
BLOCK_BYTES = BLOCK_KEYS * KEY_BYTES

_HEADER = struct.Struct("<8sIIQQQ")
_HEADER_CRC = struct.Struct("<II")
HEADER_BYTES = _HEADER.size + _HEADER_CRC.size
CRC_BYTES = 4

assert HEADER_BYTES == 48


class RunHeader(NamedTuple):
    """What a run says of itself."""

    keys: int
    first: int
    last: int


def blocks_of(count: int) -> int:
    """Return how many blocks `count` keys fill."""
    return -(-count // BLOCK_KEYS)


def run_bytes(count: int) -> int:
    """Return the exact length of a run of `count` keys."""
    return HEADER_BYTES + count * KEY_BYTES + blocks_of(count) * CRC_BYTES + CRC_BYTES


def encode_header(header: RunHeader) -> bytes:
    """Return the header's 48 bytes."""
    data = _HEADER.pack(RUN_MAGIC, RUN_VERSION, BLOCK_KEYS, header.keys, header.first, header.last)
    return data + _HEADER_CRC.pack(isal_zlib.crc32(data), 0)


def decode_header(path: Path, data: bytes, size: int) -> RunHeader:
    """Return the header of a run whose file is `size` bytes long.

    Raises:
        CorruptionError: not a run, another version, a damaged header, or a file of another length.
    """
    if len(data) < HEADER_BYTES:
        raise CorruptionError(path, 0, f"a header of {HEADER_BYTES} bytes", f"{len(data)} bytes")
    magic, version, block_keys, count, first, last = _HEADER.unpack_from(data)
    if magic != RUN_MAGIC:
        raise CorruptionError(path, 0, f"magic {RUN_MAGIC!r}", repr(magic))
    if version != RUN_VERSION:
        raise CorruptionError(path, 8, f"format version {RUN_VERSION}", version)
    crc, _ = _HEADER_CRC.unpack_from(data, _HEADER.size)
    found = isal_zlib.crc32(data[: _HEADER.size])
    if crc != found:
        raise CorruptionError(path, 0, f"header crc32 {crc:#010x}", f"{found:#010x}")
    if block_keys != BLOCK_KEYS or count < 1 or first > last:
        raise CorruptionError(path, 12, f"blocks of {BLOCK_KEYS} keys, at least one key", (block_keys, count))
    if size != run_bytes(count):
        raise CorruptionError(path, size, f"{run_bytes(count)} bytes", f"{size} bytes")
    return RunHeader(count, first, last)


def encode_crc_table(crcs: list[int]) -> bytes:
    """Return the crc table and its own crc."""
    table = np.array(crcs, dtype=CRC_TYPE).tobytes()
    return table + isal_zlib.crc32(table).to_bytes(CRC_BYTES, "little")


def decode_crc_table(path: Path, data: bytes, count: int) -> CrcArray:
    """Return the crc of each block of a run of `count` keys from the bytes behind its keys.

    Raises:
        CorruptionError: the table itself is damaged.
    """
    table, stored = data[:-CRC_BYTES], int.from_bytes(data[-CRC_BYTES:], "little")
    found = isal_zlib.crc32(table)
    if stored != found or len(table) != blocks_of(count) * CRC_BYTES:
        offset = HEADER_BYTES + count * KEY_BYTES
        raise CorruptionError(path, offset, f"crc table crc32 {stored:#010x}", f"{found:#010x}")
    return np.frombuffer(table, dtype=CRC_TYPE)
