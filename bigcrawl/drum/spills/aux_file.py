"""Aux: opaque byte strings, one for each tuple, stored in blocks in arrival order.

    offset  bytes  what
    0       u32    tuples, n >= 1
    4       u32    bytes of the column
    8       u32    bytes stored of it; 0: every string is empty
    12      u32    crc32 of the bytes after the header
    16      u32    crc32 of bytes 0 to 15
    20      n * 1  bucket of each tuple, u8; n * 2, u16, if there are more than 256 buckets
    ...            zlib of the column: a width, u8, 2 or 4; n lengths of that width; the strings, one after another

Numbers are little-endian. The manifest says how many bytes of a spill's file count. Aux is compressed because it is
most of the data that DRUM moves.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from isal import isal_zlib

from bigcrawl.exceptions import ContractError, CorruptionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike

    import numpy.typing as npt

    LengthArray = npt.NDArray[np.uint32]
    IdArray = npt.NDArray[np.uint8 | np.uint16]

_HEADER = struct.Struct("<IIII")
_CRC = struct.Struct("<I")
BLOCK_HEADER_BYTES = _HEADER.size + _CRC.size
_LEVEL = 1

COLUMN_BYTES_MAX = 2**31


class Aux:
    __slots__ = ("_ends", "blob", "lengths")

    def __init__(self, blob: bytes, lengths: LengthArray) -> None:
        self.blob = blob
        self.lengths = lengths
        self._ends: list[int] | None = None

    @classmethod
    def of(cls, items: Sequence[str] | Sequence[bytes]) -> Self:
        if not items:
            return cls(b"", np.zeros(0, dtype=np.uint32))
        if isinstance(items[0], str):
            text = "".join(items)  # type: ignore[arg-type]
            if text.isascii():
                return cls(text.encode("ascii"), _lengths(items))
            items = [str(item).encode() for item in items]
        return cls(b"".join(items), _lengths(items))  # type: ignore[arg-type]

    @classmethod
    def none(cls, count: int) -> Self:
        return cls(b"", np.zeros(count, dtype=np.uint32))

    def __len__(self) -> int:
        return len(self.lengths)

    def __repr__(self) -> str:
        return f"<Aux {len(self)} bytes={len(self.blob)}>"

    def __getitem__(self, place: int) -> bytes:
        ends = self._ends_list()
        return self.blob[ends[place] - int(self.lengths[place]) : ends[place]]

    def __iter__(self) -> Iterator[bytes]:
        start = 0
        for end in self._ends_list():
            yield self.blob[start:end]
            start = end

    def select(self, mask: npt.NDArray[np.bool_]) -> list[bytes]:
        places = np.flatnonzero(mask)
        ends = np.cumsum(self.lengths, dtype=np.int64)[places]
        starts = ends - self.lengths[places]
        blob = self.blob
        return [blob[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]

    def from_place(self, place: int) -> Self:
        return type(self)(self.blob[int(self.lengths[:place].sum(dtype=np.int64)) :], self.lengths[place:])

    def _ends_list(self) -> list[int]:
        if self._ends is None:
            ends: list[int] = np.cumsum(self.lengths, dtype=np.int64).tolist()
            self._ends = ends
        return self._ends


def _lengths(items: Sequence[str] | Sequence[bytes]) -> LengthArray:
    return np.fromiter(map(len, items), dtype=np.uint32, count=len(items))


def encode_block(ids: IdArray, columns: Sequence[Aux]) -> bytes:
    column_bytes, stored = 0, b""
    if any(column.blob for column in columns):
        lengths = np.concatenate([column.lengths for column in columns])
        width = np.dtype("<u2" if int(lengths.max()) < 1 << 16 else "<u4")
        packed = lengths.astype(width).tobytes()
        raw = b"".join((bytes([width.itemsize]), packed, *(column.blob for column in columns)))
        column_bytes = len(raw)
        if column_bytes > COLUMN_BYTES_MAX:
            raise ContractError(f"aux of {len(raw)} bytes at once; at most {COLUMN_BYTES_MAX}: offer smaller batches")
        stored = isal_zlib.compress(raw, _LEVEL)
    id_bytes = ids.astype(ids.dtype.newbyteorder("<"), copy=False).tobytes()
    crc = isal_zlib.crc32(stored, isal_zlib.crc32(id_bytes))
    header = _HEADER.pack(len(ids), column_bytes, len(stored), crc)
    return b"".join((header, _CRC.pack(isal_zlib.crc32(header)), id_bytes, stored))


class BlockHeader(NamedTuple):
    tuples: int
    column_bytes: int
    stored_bytes: int
    crc: int

    def body_bytes(self, id_bytes: int) -> int:
        return self.tuples * id_bytes + self.stored_bytes


def decode_block_header(path: str | PathLike[str], offset: int, data: bytes) -> BlockHeader:
    if len(data) < BLOCK_HEADER_BYTES:
        raise CorruptionError(path, offset, f"a block header of {BLOCK_HEADER_BYTES} bytes", f"{len(data)} bytes")
    header = BlockHeader(*_HEADER.unpack_from(data))
    (crc,) = _CRC.unpack_from(data, _HEADER.size)
    if crc != (found := isal_zlib.crc32(data[: _HEADER.size])):
        raise CorruptionError(path, offset, f"block header crc32 {crc:#010x}", f"{found:#010x}")
    return header


def decode_block(
    path: str | PathLike[str], offset: int, header: BlockHeader, body: bytes, id_type: np.dtype[Any]
) -> tuple[IdArray, Aux]:
    at = offset + BLOCK_HEADER_BYTES
    if len(body) < header.body_bytes(id_type.itemsize):
        expected = f"a block of {header.body_bytes(id_type.itemsize)} bytes"
        raise CorruptionError(path, at, expected, f"{len(body)} bytes")
    if header.crc != (found := isal_zlib.crc32(body)):
        raise CorruptionError(path, at, f"block crc32 {header.crc:#010x}", f"{found:#010x}")
    count = header.tuples
    ids: IdArray = np.frombuffer(body, dtype=id_type, count=count)
    if not header.stored_bytes:
        return ids, Aux.none(count)
    try:
        raw = isal_zlib.decompress(memoryview(body)[count * id_type.itemsize :], bufsize=header.column_bytes)
    except zlib.error as error:
        raise CorruptionError(path, at, "zlib", error) from error
    width = raw[0] if raw else 0
    if len(raw) != header.column_bytes or width not in {2, 4}:
        raise CorruptionError(path, at, f"a column of {header.column_bytes} bytes", f"{len(raw)}, width {width}")
    lengths = np.frombuffer(raw, dtype=f"<u{width}", count=count, offset=1).astype(np.uint32)
    return ids, Aux(raw[1 + count * width :], lengths)
