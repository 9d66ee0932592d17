"""The manifest: the one file whose rename commits a step.

    offset  bytes  what
    0       8      magic "BCMANIFS"
    8       u32    format version, 1
    12      u32    payload bytes
    16      u32    crc32 of the payload
    20      ...    payload: msgpack, a map

All numbers are little-endian. To change the payload, raise the version: an unknown one is refused.
A step writes `MANIFEST.tmp` and renames it to `MANIFEST`, unsynced; a durable point syncs what it names,
then itself, and keeps a second name for it, `DURABLE`. After a crash of the process `MANIFEST` is the
truth; after a power cut it may be lost or name bytes that are, and `DURABLE` is what certainly is there.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgpack
from isal import isal_zlib

from bigcrawl.drum.format import run_bytes
from bigcrawl.drum.run import RunInfo
from bigcrawl.exceptions import CorruptionError
from bigcrawl.scheduler.front_queues import EMPTY_LEVEL, LEVELS, Cursor, LevelState
from bigcrawl.scheduler.parked_queues import EMPTY_PARKED, Extent, ParkedState
from bigcrawl.scheduler.segments import Segment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MANIFEST = "MANIFEST"
MANIFEST_TEMPORARY = "MANIFEST.tmp"
DURABLE = "DURABLE"
DURABLE_TEMPORARY = "DURABLE.tmp"

_MAGIC = b"BCMANIFS"
_VERSION = 1
_HEADER = struct.Struct("<8sIII")

# The id before every id of a stream.
NO_INBOX_ID = "0-0"


def admit_name(number: int) -> str:
    """Return the file name of an admit batch."""
    return f"admit-{number}"


def level_name(level: int) -> str:
    """Return the prefix of a front queue's segments."""
    return f"queue-{level}"


PARK_NAME = "park"


@dataclass(frozen=True, slots=True)
class Manifest:
    """All of a partition's committed state but the bytes of the files it names.

    Attributes:
        number: one more than the manifest before, over all epochs.
        inbox_id: the last inbox entry that was folded.
        batch_number: the last admit batch, 0 before the first.
        admitted: URLs admitted so far, which is the sequence number of the next one.
        retained: numbers of the admit batches whose files are kept.
        already: keys that Redis admitted beyond an earlier manifest, with how often; still to be skipped.
    """

    epoch: int
    number: int = 0
    inbox_id: str = NO_INBOX_ID
    runs: tuple[RunInfo, ...] = ()
    levels: tuple[LevelState, ...] = (EMPTY_LEVEL,) * LEVELS
    credits: tuple[int, ...] = (0,) * LEVELS
    parked: ParkedState = EMPTY_PARKED
    batch_number: int = 0
    admitted: int = 0
    retained: tuple[int, ...] = ()
    already: tuple[tuple[int, int], ...] = ()
    folded_urls: int = 0
    duplicates: int = 0
    rejected: int = 0

    def files_needed(self) -> dict[str, int]:
        """Return the names of all files this manifest refers to, with the least length of each."""
        needed = {run.name: run_bytes(run.keys) for run in self.runs}
        for level, state in enumerate(self.levels):
            needed |= {f"{level_name(level)}-{s.number}": s.length for s in state.segments}
        needed |= {f"{PARK_NAME}-{s.number}": s.length for s in self.parked.segments}
        needed |= {admit_name(number): 1 for number in self.retained}
        return needed


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the manifest's file."""
    payload: bytes = msgpack.packb({name: getattr(manifest, name) for name in Manifest.__slots__})
    return _HEADER.pack(_MAGIC, _VERSION, len(payload), isal_zlib.crc32(payload)) + payload


def decode_manifest(path: Path, data: bytes) -> Manifest:
    """Return what `encode_manifest` was given.

    Raises:
        CorruptionError: not a manifest, another version, or damaged.
    """
    if len(data) < _HEADER.size:
        raise CorruptionError(path, 0, f"a header of {_HEADER.size} bytes", f"{len(data)} bytes")
    magic, version, length, crc = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise CorruptionError(path, 0, f"magic {_MAGIC!r}", repr(magic))
    if version != _VERSION:
        raise CorruptionError(path, 8, f"format version {_VERSION}", version)
    payload = data[_HEADER.size :]
    if len(payload) != length:
        raise CorruptionError(path, len(data), f"a payload of {length} bytes", f"{len(payload)} bytes")
    found = isal_zlib.crc32(payload)
    if found != crc:
        raise CorruptionError(path, _HEADER.size, f"crc32 {crc:#010x}", f"{found:#010x}")
    fields = msgpack.unpackb(payload, use_list=False, strict_map_key=False)
    fields["runs"] = tuple(RunInfo(*run) for run in fields["runs"])
    fields["levels"] = tuple(map(_level, fields["levels"]))
    fields["parked"] = _parked(*fields["parked"])
    return Manifest(**fields)


def _segments(rows: Sequence[tuple[int, int, int]]) -> tuple[Segment, ...]:
    return tuple(Segment(*row) for row in rows)


def _level(row: tuple[Sequence[tuple[int, int, int]], int, tuple[int, int, int], int]) -> LevelState:
    segments, next_number, head, count = row
    return LevelState(_segments(segments), next_number, Cursor(*head), count)


def _parked(
    segments: Sequence[tuple[int, int, int]],
    next_number: int,
    chains: Sequence[tuple[str, Sequence[tuple[int, Sequence[tuple[int, int, int, int]]]]]],
) -> ParkedState:
    return ParkedState(
        _segments(segments),
        next_number,
        tuple(
            (host, tuple((level, tuple(Extent(*row) for row in rows)) for level, rows in levels))
            for host, levels in chains
        ),
    )
