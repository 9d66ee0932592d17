"""A DRUM's manifest: the log `MANIFEST`, which says what is committed.

    offset  bytes  what
    0       8      magic "BCDRUMMF"
    8       u32    format version, 1
    12      ...    records (`bigcrawl.drum.log_records`), each a msgpack map

    kind       prefix, dtype of the values as a string or a list of fields, whether updates add, memtable's maximum
    buckets    of each bucket its runs and the records of its memtable
    spills     number, ordinal of the first tuple, tuples, bytes of aux, whether any asks
    answered   ordinal of the first tuple that has no answer yet
    told       ordinal of the first tuple whose answer is not acknowledged

Numbers are little-endian. To change the layout, raise the version; a log of another version is refused. The first
record has all fields. It is written to `MANIFEST.tmp`, synced and renamed, which commits a merge. Later records are
appended and have `told` or new `spills`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgpack
import numpy as np

from bigcrawl.drum.bucket import BucketState, Kind
from bigcrawl.drum.files import replace_surely
from bigcrawl.drum.log_records import HEADER_BYTES, check_header, encode_header, encode_record, read_records
from bigcrawl.drum.memtable import Memtable
from bigcrawl.drum.run import RunInfo
from bigcrawl.drum.spills.spill import Spill
from bigcrawl.exceptions import CorruptionError

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.drum.files import Files

MANIFEST = "MANIFEST"
MANIFEST_TEMPORARY = "MANIFEST.tmp"

_MAGIC = b"BCDRUMMF"
_VERSION = 1


class DrumState(NamedTuple):
    """The committed state; `spills` are those with unacknowledged answers, without gaps.

    `answered` is the ordinal of the first tuple without an answer, `told` that of the first unacknowledged one.
    """

    kind: Kind
    buckets: tuple[BucketState, ...]
    spills: tuple[Spill, ...] = ()
    answered: int = 0
    told: int = 0

    @property
    def end(self) -> int:
        return self.spills[-1].end if self.spills else self.told

    def with_spill(self, spill: Spill) -> DrumState:
        return self._replace(spills=(*self.spills, spill))

    def with_told(self, told: int) -> DrumState:
        return self._replace(told=told, spills=tuple(spill for spill in self.spills if spill.end > told))

    def _check(self) -> None:
        assert self.told <= self.answered <= self.end, "only answered tuples are told"
        firsts = [spill.first for spill in self.spills]
        assert firsts[1:] == [spill.end for spill in self.spills][:-1], "spills follow one another"
        assert not firsts or firsts[0] <= self.told, "everything before the spills is told"
        assert all(self.answered <= s.first or self.answered >= s.end for s in self.spills), "a spill is answered whole"


class DrumLog:
    """The manifest's file; a failed method changes nothing that counts."""

    def __init__(self, directory: Path, files: Files, size: int = 0) -> None:
        self._directory = directory
        self._path = directory / MANIFEST
        self._temporary = directory / MANIFEST_TEMPORARY
        self._files = files
        self._size = size
        # A failed append or a crash may have left bytes after `size`.
        self._has_rest = True
        self._is_named = True

    def __repr__(self) -> str:
        return f"<DrumLog {self._path} bytes={self._size}>"

    def begin(self, state: DrumState) -> None:
        """Commit a complete state, which `sync_name` makes durable."""
        data = encode_header(_MAGIC, _VERSION) + _encode(_whole(state))
        self._files.write_new(self._temporary, (data,))
        self._files.sync_file(self._temporary)
        replace_surely(self._files, self._temporary, self._path, data)
        self._size, self._has_rest, self._is_named = len(data), False, False

    def sync_name(self) -> None:
        if not self._is_named:
            self._files.sync_directory(self._directory)
            self._is_named = True

    def append_spill(self, spill: Spill) -> None:
        self._append({"spills": [tuple(spill)]})

    def append_told(self, told: int) -> None:
        self._append({"told": told})

    def sync(self) -> None:
        self._files.sync_file(self._path)

    def _append(self, fields: dict[str, Any]) -> None:
        record = _encode(fields)
        if self._has_rest:
            self._files.truncate(self._path, self._size)
        self._has_rest = True
        self._files.write_at(self._path, self._size, record, create=False)
        self._size, self._has_rest = self._size + len(record), False


def read_log(directory: Path, files: Files) -> tuple[DrumState, DrumLog]:
    path = directory / MANIFEST
    data = files.read(path)
    check_header(path, data, _MAGIC, _VERSION)
    state, size = None, HEADER_BYTES
    for end, body in read_records(path, data, size):
        fields = msgpack.unpackb(body, use_list=False)
        state = _state(fields) if state is None else _changed(state, fields)
        size = end
    if state is None:
        raise CorruptionError(path, HEADER_BYTES, "a whole record", f"{len(data) - HEADER_BYTES} bytes")
    return state, DrumLog(directory, files, size)


def _encode(fields: dict[str, Any]) -> bytes:
    return encode_record(msgpack.packb(fields))


def _whole(state: DrumState) -> dict[str, Any]:
    prefix, value, increment, fresh_max = state.kind
    return {
        "kind": (prefix, _dtype_text(value), increment, fresh_max),
        "buckets": [([tuple(run) for run in runs], memtable.strings_from(0)) for runs, memtable in state.buckets],
        "spills": [tuple(spill) for spill in state.spills],
        "answered": state.answered,
        "told": state.told,
    }


def _state(fields: dict[str, Any]) -> DrumState:
    prefix, value, increment, fresh_max = fields["kind"]
    kind = Kind(prefix, _dtype_of(value), increment, fresh_max)
    buckets = tuple(
        BucketState(tuple(RunInfo(*run) for run in runs), Memtable.from_strings(memtable))
        for runs, memtable in fields["buckets"]
    )
    spills = tuple(Spill(*spill) for spill in fields["spills"])
    return DrumState(kind, buckets, spills, fields["answered"], fields["told"])


def _changed(state: DrumState, fields: dict[str, Any]) -> DrumState:
    for spill in fields.get("spills", ()):
        state = state.with_spill(Spill(*spill))
    return state.with_told(fields["told"]) if "told" in fields else state


def is_storable(value: np.dtype[Any] | None) -> bool:
    """Return whether a manifest can describe the dtype: one without padding and objects."""
    if value is None:
        return True
    return not value.hasobject and all(field[0] for field in value.descr if value.names) and value.isnative


def _dtype_text(value: np.dtype[Any] | None) -> Any:
    if value is None:
        return None
    return value.descr if value.names else value.str


def _dtype_of(text: Any) -> np.dtype[Any] | None:
    if text is None:
        return None
    return np.dtype(text if isinstance(text, str) else [tuple(field) for field in text])
