"""Records of a log: appended one by one, each checked by itself.

    offset  bytes  what
    0       u32    bytes of the body, n
    4       u32    crc32 of the body
    8       u32    crc32 of bytes 0 to 7
    12      n      body

All numbers are little-endian. What a crash leaves is a last record that is cut short, or whose bytes are zeros
from some place on; it is passed over. Any other record with a wrong checksum is damage.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from isal import isal_zlib

from bigcrawl.exceptions import CorruptionError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

_HEAD = struct.Struct("<II")
_CRC = struct.Struct("<I")
_HEAD_BYTES = _HEAD.size + _CRC.size


def encode_record(body: bytes) -> bytes:
    """Return a record."""
    head = _HEAD.pack(len(body), isal_zlib.crc32(body))
    return b"".join((head, _CRC.pack(isal_zlib.crc32(head)), body))


def read_records(path: str | PathLike[str], data: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """Yield where each record ends, and its body.

    Args:
        path: of the log, for errors.
        data: the whole log.
        at: where its first record begins.

    Raises:
        CorruptionError: a record is damaged.
    """
    while len(data) - at >= _HEAD_BYTES:
        start = at + _HEAD_BYTES
        length, crc = _HEAD.unpack_from(data, at)
        (head_crc,) = _CRC.unpack_from(data, at + _HEAD.size)
        if (found := isal_zlib.crc32(data[at : at + _HEAD.size])) != head_crc:
            if not any(data[at:]):
                return
            raise CorruptionError(path, at, f"record header crc32 {head_crc:#010x}", f"{found:#010x}")
        body = data[start : start + length]
        if len(body) < length:
            return
        if (found := isal_zlib.crc32(body)) != crc:
            if not any(data[start:]):
                return
            raise CorruptionError(path, at, f"record crc32 {crc:#010x}", f"{found:#010x}")
        at = start + length
        yield at, body
