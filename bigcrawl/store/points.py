"""A durable point: the state and the files of a directory at one moment, and the bytes of its object.

docs/file-formats.md has these bytes; to change them, raise the version: a point of another version is refused.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import msgpack
from isal import isal_zlib

from bigcrawl.exceptions import CorruptionError, OtherVersionError

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAGIC = b"BCPOINT\0"
_VERSION = 1
_HEADER = struct.Struct("<8sIII")


class FilePiece(NamedTuple):
    object: str
    at: int
    length: int
    crc: int


class DurablePoint(NamedTuple):
    """One durable point. The owner's `state` is opaque here; `sizes` are those of all objects with its pieces."""

    name: str
    state: bytes
    files: Mapping[str, tuple[FilePiece, ...]]
    sizes: Mapping[str, int]

    @property
    def objects(self) -> set[str]:
        return {self.name, *self.sizes}


def encode_point(point: DurablePoint, packed: bytes) -> tuple[DurablePoint, bytes]:
    """Return a point as it will be read back, and the bytes of its object, which includes the small pieces `packed`."""
    others = sorted({piece.object for pieces in point.files.values() for piece in pieces} - {point.name})
    index = {name: number for number, name in enumerate((point.name, *others))}
    objects = [("", 0), *((name, point.sizes[name]) for name in others)]
    files = {name: [(index[p.object], *p[1:]) for p in pieces] for name, pieces in point.files.items()}
    head: bytes = msgpack.packb((len(point.state), isal_zlib.crc32(point.state), objects, files))
    data = b"".join((_HEADER.pack(_MAGIC, _VERSION, len(head), isal_zlib.crc32(head)), head, point.state, packed))
    return decode_point(point.name, data), data


def decode_point(name: str, data: bytes) -> DurablePoint:
    if len(data) < _HEADER.size:
        raise CorruptionError(name, 0, f"a header of {_HEADER.size} bytes", f"{len(data)} bytes")
    magic, version, head_bytes, crc = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise CorruptionError(name, 0, repr(_MAGIC), repr(magic))
    if version != _VERSION:
        raise OtherVersionError(name, 8, _VERSION, version)
    start = _HEADER.size + head_bytes
    head = data[_HEADER.size : start]
    _check_crc(name, _HEADER.size, head, crc)
    state_bytes, state_crc, objects, rows = msgpack.unpackb(head, use_list=False)
    end = start + state_bytes
    state = data[start:end]
    _check_crc(name, start, state, state_crc)
    names = [other or name for other, _ in objects]
    own = (end, 0)  # added to offsets in this object, and in others
    files = {
        file: tuple(FilePiece(names[i], at + own[i > 0], length, piece_crc) for i, at, length, piece_crc in pieces)
        for file, pieces in rows.items()
    }
    last = max((p.at + p.length for ps in files.values() for p in ps if p.object == name), default=end)
    if last > len(data):
        raise CorruptionError(name, len(data), f"{last} bytes", f"{len(data)} bytes")
    return DurablePoint(name, state, files, {n: size or len(data) for n, (_, size) in zip(names, objects, strict=True)})


def check_piece(piece: FilePiece, data: bytes) -> None:
    _check_crc(piece.object, piece.at, data, piece.crc)


def _check_crc(name: str, at: int, data: bytes, crc: int) -> None:
    if (found := isal_zlib.crc32(data)) != crc:
        raise CorruptionError(name, at, f"crc32 {crc:#010x}", f"{found:#010x}")
