"""Files with one section for each bucket: the tuples of a spill, and the answers to it.

    offset  bytes      what
    0       8          magic: "BCDRUMKY" keys, "BCDRUMAN" answers
    8       u32        format version, 1
    12      u32        number of sections, k
    16      u64        number of tuples
    24      u32        operation of all tuples: 0 check, 1 update, 2 check_update; 3: each has its own
    28      u32        crc32 of bytes 0 to 27 and the table
    32      k * 8      table: length and crc32 of each section, u32 each
    ...                the sections, in order

    section of keys:     c keys, u64; if each has its own, c operations, u8; c values
    section of answers:  c bits, the first the lowest of its byte, 1: found; c values, as before the tuple

Numbers are little-endian. To change the layout, raise the version: an unknown one is refused.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import numpy as np
from isal import isal_zlib

from bigcrawl.exceptions import CorruptionError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    from bigcrawl.drum.files import Files

KEYS_MAGIC: Final = b"BCDRUMKY"
ANSWERS_MAGIC: Final = b"BCDRUMAN"
MIXED: Final = 3

_VERSION = 1
_HEADER = struct.Struct("<8sIIQI")
_CRC = struct.Struct("<I")
_TABLE_AT = _HEADER.size + _CRC.size
_ROW_BYTES = 8
_TABLE_TYPE = np.dtype("<u4")

assert _TABLE_AT == 32


class SectionWriter:
    """Writes a file section by section, and finally its header, unsynced."""

    def __init__(
        self,
        files: Files,
        path: Path,
        magic: bytes,
        sections: int,
        tuples: int,
        operation: int,
        buffer_bytes: int = 1 << 20,
    ) -> None:
        self._files = files
        self.path = path
        self._header = _HEADER.pack(magic, _VERSION, sections, tuples, operation)
        self._table = np.zeros((sections, 2), dtype=_TABLE_TYPE)
        self._count = 0
        self._offset = _TABLE_AT + self._table.nbytes
        self._buffer_bytes = buffer_bytes
        self._buffer: list[bytes | memoryview] = []
        self._buffered = 0
        files.write_new(path, ())

    def __repr__(self) -> str:
        return f"<SectionWriter {self.path.name} sections={self._count} of {len(self._table)}>"

    def add(self, section: bytes | memoryview) -> None:
        self._table[self._count] = len(section), isal_zlib.crc32(section)
        self._count += 1
        self._buffer.append(section)
        self._buffered += len(section)
        if self._buffered >= self._buffer_bytes:
            self._write_buffer()

    def finish(self) -> None:
        assert self._count == len(self._table), "every section is added"
        self._write_buffer()
        table = self._table.tobytes()
        crc = _CRC.pack(_head_crc(self._header, table))
        self._files.write_at(self.path, 0, b"".join((self._header, crc, table)))

    def _write_buffer(self) -> None:
        if self._buffered:
            data = b"".join(self._buffer)
            self._files.write_at(self.path, self._offset, data)
            self._offset += len(data)
        self._buffer, self._buffered = [], 0


class SectionReader:
    """Reads sections on demand; every method raises CorruptionError for damage in what it reads."""

    def __init__(self, files: Files, path: Path, magic: bytes, sections: int, tuples: int) -> None:
        self._files = files
        self._path = path
        head = files.read(path, 0, _TABLE_AT + sections * _ROW_BYTES)
        if len(head) < _TABLE_AT + sections * _ROW_BYTES:
            raise CorruptionError(path, len(head), f"a header and {sections} sections", f"{len(head)} bytes")
        found_magic, version, count, self.tuples, self.operation = _HEADER.unpack_from(head)
        if found_magic != magic:
            raise CorruptionError(path, 0, f"magic {magic!r}", repr(found_magic))
        if version != _VERSION:
            raise CorruptionError(path, 8, f"format version {_VERSION}", version)
        (crc,) = _CRC.unpack_from(head, _HEADER.size)
        if crc != (found := _head_crc(head[: _HEADER.size], head[_TABLE_AT:])):
            raise CorruptionError(path, 0, f"header crc32 {crc:#010x}", f"{found:#010x}")
        if (count, self.tuples) != (sections, tuples):
            raise CorruptionError(path, 12, f"{sections} sections, {tuples} tuples", f"{count}, {self.tuples}")
        # Not unpacked: a merge has one for each spill, with thousands of sections.
        self._table = np.frombuffer(head, dtype=_TABLE_TYPE, offset=_TABLE_AT).reshape(-1, 2)
        self._at = (0, len(head))  # next section, its offset
        end = len(head) + int(self.lengths.sum(dtype=np.int64))
        if (size := files.size(path)) != end:
            raise CorruptionError(path, min(size, end), f"{end} bytes", f"{size} bytes")

    def __repr__(self) -> str:
        return f"<SectionReader {self._path.name} tuples={self.tuples}>"

    @property
    def lengths(self) -> npt.NDArray[np.uint32]:
        return self._table[:, 0]

    def read(self, number: int) -> bytes:
        offset, length = self._place(number)
        if not length:
            return b""
        data = self._files.read(self._path, offset, length)
        self._verify(number, offset, data)
        return data

    def read_all(self) -> Iterator[memoryview]:
        data = memoryview(self._files.read(self._path))
        for number in range(len(self._table)):
            offset, length = self._place(number)
            section = data[offset : offset + length]
            self._verify(number, offset, section)
            yield section

    def _place(self, number: int) -> tuple[int, int]:
        at, offset = self._at
        if number != at:
            first = _TABLE_AT + self._table.nbytes
            offset = first + int(self.lengths[:number].sum(dtype=np.int64))
        length = int(self._table[number, 0])
        self._at = (number + 1, offset + length)
        return offset, length

    def _verify(self, number: int, offset: int, data: bytes | memoryview) -> None:
        expected, found = int(self._table[number, 1]), isal_zlib.crc32(data)
        if found != expected:
            raise CorruptionError(self._path, offset, f"section crc32 {expected:#010x}", f"{found:#010x}")


def _head_crc(header: bytes, table: bytes) -> int:
    crc: int = isal_zlib.crc32(table, isal_zlib.crc32(header))
    return crc
