"""A numbered batch of URLs to admit into Redis, and its bytes on disk (step 7)."""

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
    """One numbered admission.

    Attributes:
        number: one more than that of the previous batch. Redis accepts n only after n - 1.
        first_seq: the sequence number of ``urls[0]``; ``urls[i]`` has ``first_seq + i``.
    """

    number: int
    first_seq: int
    urls: list[QueuedUrl]

    @property
    def has_text(self) -> bool:
        """Whether its URLs can be admitted. An old batch has only their keys, and a still older one has nothing."""
        return bool(self.urls and self.urls[0].body)

    def without_text(self) -> AdmitBatch:
        """Return the batch with only the keys of its URLs, some eight bytes each."""
        return self._replace(urls=[QueuedUrl(url.key, "", 0, 0, b"") for url in self.urls])


def encode_admit_batch(batch: AdmitBatch) -> bytes:
    """Return an admit batch as the manifest's log stores it: magic, version, number, first_seq, crc32 of all, URLs."""
    payload = encode_batch(batch.urls)
    header = _HEADER.pack(_MAGIC, _VERSION, batch.number, batch.first_seq)
    return header + _CRC.pack(isal_zlib.crc32(payload, isal_zlib.crc32(header))) + payload


def check_admit_batch(path: str | PathLike[str], data: bytes, offset: int = 0) -> None:
    """Check the bytes that `encode_admit_batch` returned.

    Args:
        path: the file that the bytes come from, for error messages.
        data: the bytes.
        offset: their position in the file.

    Raises:
        CorruptionError: the bytes are damaged, or not an admit batch of this version.
    """
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
    """Return the admit batch that was encoded. Takes and raises what `check_admit_batch` does."""
    check_admit_batch(path, data, offset)
    _, _, number, first_seq = _HEADER.unpack_from(data)
    try:
        return AdmitBatch(number, first_seq, decode_batch(data[_PAYLOAD_START:]))
    except BatchFormatError as error:
        raise CorruptionError(path, offset + _PAYLOAD_START, "a batch", error) from error
