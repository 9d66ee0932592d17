"""The format of a log: a header, then records appended one by one, each with a checksum.

The header is a magic of eight bytes and the version of the format, a u32. A record:

    offset  bytes  what
    0       u32    bytes of the body, n
    4       u32    crc32 of the body
    8       u32    crc32 of bytes 0 to 7
    12      n      body

Numbers are little-endian. A crash can leave a last record that is cut short or ends in zeros; it is ignored. Any other
record with a wrong checksum is damage.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from isal import isal_zlib

from bigcrawl.exceptions import CorruptionError, OtherVersionError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

_HEADER = struct.Struct("<8sI")
HEADER_BYTES = _HEADER.size

_HEAD = struct.Struct("<II")
_CRC = struct.Struct("<I")
_HEAD_BYTES = _HEAD.size + _CRC.size


def encode_header(magic: bytes, version: int) -> bytes:
    return _HEADER.pack(magic, version)


def check_header(path: str | PathLike[str], data: bytes, magic: bytes, version: int, oldest: int | None = None) -> None:
    """Check that a log has this magic, and a version from `oldest` to `version`."""
    if len(data) < HEADER_BYTES:
        raise CorruptionError(path, 0, f"a header of {HEADER_BYTES} bytes", f"{len(data)} bytes")
    found_magic, found_version = _HEADER.unpack_from(data)
    if found_magic != magic:
        raise CorruptionError(path, 0, f"magic {magic!r}", repr(found_magic))
    if not (version if oldest is None else oldest) <= found_version <= version:
        raise OtherVersionError(path, 8, version, found_version)


def encode_record(body: bytes) -> bytes:
    head = _HEAD.pack(len(body), isal_zlib.crc32(body))
    return b"".join((head, _CRC.pack(isal_zlib.crc32(head)), body))


def read_records(path: str | PathLike[str], data: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """Yield the end offset and the body of each record from offset `at`."""
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
