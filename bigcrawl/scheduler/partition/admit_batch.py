"""A numbered batch of URLs to admit into Redis, and its bytes on disk."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from isal import isal_zlib

from bigcrawl.exceptions import CorruptionError
from bigcrawl.scheduler.records.queued_url import BatchFormatError, QueuedUrl, decode_batch, encode_batch

if TYPE_CHECKING:
    from os import PathLike

_MAGIC = b"BCADMITB"
_VERSION = 1
_HEADER = struct.Struct("<8sIQQ")
_CRC = struct.Struct("<I")
_PAYLOAD_START = _HEADER.size + _CRC.size


class AdmitBatch(NamedTuple):
    """A numbered admission: Redis accepts n only after n - 1. `urls[i]` has the sequence number `first_seq + i`."""

    number: int
    first_seq: int
    urls: list[QueuedUrl]

    @property
    def has_text(self) -> bool:
        """Whether its URLs can be admitted; an old batch has only their keys, or nothing."""
        return bool(self.urls and self.urls[0].body)

    def without_text(self) -> AdmitBatch:
        return self._replace(urls=[QueuedUrl(url.key, "", 0, 0, b"") for url in self.urls])


def encode_admit_batch(batch: AdmitBatch) -> bytes:
    payload = encode_batch(batch.urls)
    header = _HEADER.pack(_MAGIC, _VERSION, batch.number, batch.first_seq)
    return header + _CRC.pack(isal_zlib.crc32(payload, isal_zlib.crc32(header))) + payload


def check_admit_batch(path: str | PathLike[str], data: bytes, offset: int = 0) -> None:
    if len(data) < _PAYLOAD_START:
        raise CorruptionError(path, offset, f"a header of {_PAYLOAD_START} bytes", f"{len(data)} bytes")
    magic, version, *_ = _HEADER.unpack_from(data)
    if magic != _MAGIC or version != _VERSION:
        raise CorruptionError(path, offset, f"{_MAGIC!r} version {_VERSION}", f"{magic!r} version {version}")
    (crc,) = _CRC.unpack_from(data, _HEADER.size)
    found = isal_zlib.crc32(data[_PAYLOAD_START:], isal_zlib.crc32(data[: _HEADER.size]))
    if found != crc:
        raise CorruptionError(path, offset, f"batch crc32 {crc:#010x}", f"{found:#010x}")


def decode_admit_batch(path: str | PathLike[str], data: bytes, offset: int = 0) -> AdmitBatch:
    check_admit_batch(path, data, offset)
    _, _, number, first_seq = _HEADER.unpack_from(data)
    try:
        return AdmitBatch(number, first_seq, decode_batch(data[_PAYLOAD_START:]))
    except BatchFormatError as error:
        raise CorruptionError(path, offset + _PAYLOAD_START, "a batch", error) from error
