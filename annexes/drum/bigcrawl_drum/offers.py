"""The tuples that wait for a merge, in order of arrival: the file `offers-<n>`, in blocks.

    offset  bytes  what
    0       u32    tuples, n >= 1
    4       u32    operation of all: 0 check, 1 update, 2 check_update; 3: each has its own
    8       u32    bytes of the aux column
    12      u32    bytes stored of it; 0: every string is empty
    16      u32    crc32 of the bytes after the header
    20      u32    crc32 of bytes 0 to 19
    24      ...    n keys, u64; if each has its own, n operations, u8; n values
    ...            zlib of the aux column (`bigcrawl_drum.aux_column`)

Numbers are little-endian. The manifest says how many bytes are committed. The aux column is compressed because it is
most of the data that a DRUM moves.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from isal import isal_zlib

from bigcrawl.drum.format import KEY_BYTES, KEY_TYPE
from bigcrawl.exceptions import CorruptionError
from bigcrawl_drum.aux_column import COLUMN_BYTES_MAX, Aux, decode_aux, encode_aux

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl.drum.bucket import OpArray
    from bigcrawl.drum.drum_manifest import OffersState
    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import KeyArray, ValueArray

_HEADER = struct.Struct("<IIIII")
_CRC = struct.Struct("<I")
_HEADER_BYTES: Final = _HEADER.size + _CRC.size
_MIXED: Final = 3
_LEVEL: Final = 1


class OfferedTuples(NamedTuple):
    keys: KeyArray
    ops: OpArray
    values: ValueArray | None

    def slice_of(self, start: int, end: int) -> OfferedTuples:
        return OfferedTuples(*(None if column is None else column[start:end] for column in self))  # type: ignore[arg-type]


class Block(NamedTuple):
    tuples: OfferedTuples
    stored: bytes | memoryview
    column_bytes: int
    place: tuple[Path, int]

    def aux(self) -> Aux:
        path, at = self.place
        try:
            raw = isal_zlib.decompress(self.stored, bufsize=self.column_bytes) if self.column_bytes else b""
        except zlib.error as error:
            raise CorruptionError(path, at, "zlib", error) from error
        column = decode_aux(raw, len(self.tuples.keys))
        if column is None or len(raw) != self.column_bytes:
            raise CorruptionError(path, at, f"a column of {self.column_bytes} bytes", f"{len(raw)} bytes")
        return column


class OfferLog:
    """The offers file, and tuples not written to it yet. A failed method changes nothing committed; repeat it."""

    def __init__(
        self, directory: Path, files: Files, value: np.dtype[Any] | None, offered: OffersState, block_bytes: int
    ) -> None:
        self._directory = directory
        self._files = files
        self._value = value
        self._block_bytes = min(max(1, block_bytes), COLUMN_BYTES_MAX // 4)
        self.begin(offered)

    def begin(self, offered: OffersState) -> None:
        self.written = offered
        self._pending: list[tuple[OfferedTuples, Aux]] = []
        self._pending_bytes = 0

    @property
    def path(self) -> Path:
        return self._directory / self.written.name

    def put(self, tuples: OfferedTuples, aux: Aux) -> None:
        self._pending.append((tuples, aux))
        self._pending_bytes += len(aux.blob) + 6 * len(aux)

    def write_full(self) -> None:
        if self._pending_bytes >= self._block_bytes:
            self.write()

    def write(self) -> None:
        """Write the pending tuples, without syncing."""
        if not self._pending:
            return
        data, count = self._encode(), sum(len(tuples.keys) for tuples, _ in self._pending)
        before = self.written
        self._files.write_at(self.path, before.size, data)
        self.begin(before._replace(tuples=before.tuples + count, size=before.size + len(data)))

    def read(self) -> Iterator[Block]:
        """Yield the written blocks, and verify every byte."""
        path, at, tuples = self.path, 0, 0
        while at < self.written.size:
            block, size = self._read_block(path, at)
            yield block
            at += size
            tuples += len(block.tuples.keys)
        if (at, tuples) != (self.written.size, self.written.tuples):
            raise CorruptionError(path, at, f"{self.written.tuples} tuples to {self.written.size}", f"{tuples} to {at}")

    def verify(self) -> None:
        for _ in self.read():
            pass

    def _encode(self) -> bytes:
        stored = raw = encode_aux([aux for _, aux in self._pending])
        if raw:
            stored = isal_zlib.compress(raw, _LEVEL)
        every = [tuples for tuples, _ in self._pending]
        ops = np.concatenate([tuples.ops for tuples in every])
        is_mixed = bool((ops != ops[0]).any())
        columns = [tuples.keys.tobytes() for tuples in every]
        if is_mixed:
            columns.append(ops.tobytes())
        columns += [tuples.values.tobytes() for tuples in every if tuples.values is not None]
        body = b"".join((*columns, stored))
        operation = _MIXED if is_mixed else int(ops[0])
        header = _HEADER.pack(len(ops), operation, len(raw), len(stored), isal_zlib.crc32(body))
        return b"".join((header, _CRC.pack(isal_zlib.crc32(header)), body))

    def _read_block(self, path: Path, at: int) -> tuple[Block, int]:
        head = self._files.read(path, at, _HEADER_BYTES)
        if len(head) < _HEADER_BYTES:
            raise CorruptionError(path, at, f"a block header of {_HEADER_BYTES} bytes", f"{len(head)} bytes")
        count, operation, column_bytes, stored_bytes, crc = _HEADER.unpack_from(head)
        (head_crc,) = _CRC.unpack_from(head, _HEADER.size)
        if head_crc != (found := isal_zlib.crc32(head[: _HEADER.size])):
            raise CorruptionError(path, at, f"block header crc32 {head_crc:#010x}", f"{found:#010x}")
        is_mixed = operation == _MIXED
        value_bytes = self._value.itemsize if self._value is not None else 0
        stored_at = count * (KEY_BYTES + is_mixed + value_bytes)
        at += _HEADER_BYTES
        body = self._files.read(path, at, stored_at + stored_bytes)
        if len(body) < stored_at + stored_bytes:
            raise CorruptionError(path, at, f"a block of {stored_at + stored_bytes} bytes", f"{len(body)} bytes")
        if crc != (found := isal_zlib.crc32(body)):
            raise CorruptionError(path, at, f"block crc32 {crc:#010x}", f"{found:#010x}")
        keys = np.frombuffer(body, dtype=KEY_TYPE, count=count)
        ops = np.full(count, operation, dtype=np.uint8)
        if is_mixed:
            ops = np.frombuffer(body, dtype=np.uint8, count=count, offset=count * KEY_BYTES)
        values = None
        if self._value is not None:
            values = np.frombuffer(body, dtype=self._value, count=count, offset=count * (KEY_BYTES + is_mixed))
        stored = memoryview(body)[stored_at:]
        return Block(OfferedTuples(keys, ops, values), stored, column_bytes, (path, at)), _HEADER_BYTES + len(body)
