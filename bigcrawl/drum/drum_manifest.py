"""A DRUM's manifest: the log `MANIFEST`, which says what is committed.

    offset  bytes  what
    0       8      magic "BCDRUMMF"
    8       u32    format version, 2
    12      ...    records (`bigcrawl.drum.log_records`), each a msgpack map

    kind       prefix, dtype of the values as a string or a list of fields, whether updates add, memtable's maximum
    buckets    of each bucket its runs and the records of its memtable
    offers     of the offers file its number, the ordinal of its first tuple, tuples, bytes
    told       ordinal of the first tuple whose answer is not acknowledged

Numbers are little-endian. To change the layout, raise the version. A log of another version is refused, except one of
version 1 in which no tuple waits. The first record has all fields. It is written to `MANIFEST.tmp`, synced and
renamed, which commits a merge. Later records are appended and have `told` or `offers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgpack
import numpy as np

from bigcrawl.drum.bucket import BucketState, Kind
from bigcrawl.drum.files import Files, replace_surely
from bigcrawl.drum.log_records import HEADER_BYTES, check_header, encode_header, encode_record, read_records
from bigcrawl.drum.memtable import Memtable
from bigcrawl.drum.run import RunInfo
from bigcrawl.exceptions import ConfigError, CorruptionError

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST = "MANIFEST"
MANIFEST_TEMPORARY = "MANIFEST.tmp"

_MAGIC = b"BCDRUMMF"
_VERSION = 2
_OLDEST_VERSION = 1


class OffersState(NamedTuple):
    """The committed part of an offers file (of `bigcrawl_drum`); `first` is the ordinal of its first tuple."""

    number: int = 1
    first: int = 0
    tuples: int = 0
    size: int = 0

    @property
    def end(self) -> int:
        return self.first + self.tuples

    @property
    def name(self) -> str:
        return f"offers-{self.number}"


class DrumState(NamedTuple):
    """The committed state; `told` is the ordinal of the first tuple whose answer is not acknowledged."""

    kind: Kind
    buckets: tuple[BucketState, ...]
    offered: OffersState = OffersState()
    told: int = 0

    def _check(self) -> None:
        assert self.offered.first <= self.told <= self.offered.end, "what was told is flushed, and not yet in the runs"


class DrumLog:
    """The file of the manifest. A method that fails changes nothing committed."""

    def __init__(self, directory: Path, files: Files, size: int = 0) -> None:
        self._directory = directory
        self._path = directory / MANIFEST
        self._temporary = directory / MANIFEST_TEMPORARY
        self._files = files
        self._size = size
        # Whether a failed append or a crash may have left bytes after `size`.
        self._has_rest = True
        self._is_named = True

    def begin(self, state: DrumState) -> None:
        """Commit a complete state, which `sync_name` makes durable."""
        data = encode_header(_MAGIC, _VERSION) + _encode_record(_whole_state_fields(state))
        self._files.write_new(self._temporary, (data,))
        self._files.sync_file(self._temporary)
        replace_surely(self._files, self._temporary, self._path, data)
        self._size, self._has_rest, self._is_named = len(data), False, False

    def sync_name(self) -> None:
        if not self._is_named:
            self._files.sync_directory(self._directory)
            self._is_named = True

    def append_offered(self, offered: OffersState) -> None:
        self._append({"offers": tuple(offered)})

    def append_told(self, told: int) -> None:
        self._append({"told": told})

    def sync(self) -> None:
        self._files.sync_file(self._path)

    def _append(self, fields: dict[str, Any]) -> None:
        record = _encode_record(fields)
        if self._has_rest:
            self._files.truncate(self._path, self._size)
        self._has_rest = True
        self._files.write_at(self._path, self._size, record, create=False)
        self._size, self._has_rest = self._size + len(record), False


def read_log(directory: Path, files: Files) -> tuple[DrumState, DrumLog]:
    path = directory / MANIFEST
    data = files.read(path)
    check_header(path, data, _MAGIC, _VERSION, _OLDEST_VERSION)
    state, size, spilled = None, HEADER_BYTES, 0
    for end, body in read_records(path, data, size):
        fields = msgpack.unpackb(body, use_list=False)
        state = _parse_state(fields) if state is None else _changed_state(state, fields)
        spilled = max([spilled, *(first + tuples for _, first, tuples, *_ in fields.get("spills", ()))])
        size = end
    if state is None:
        raise CorruptionError(path, HEADER_BYTES, "a whole record", f"{len(data) - HEADER_BYTES} bytes")
    if spilled > state.told:
        count = spilled - state.told
        raise ConfigError(f"{path}: {count} tuples wait in format version 1; merge them with the code that wrote them")
    log = DrumLog(directory, files, size)
    if not data.startswith(encode_header(_MAGIC, _VERSION)):
        # Code of version 1 would ignore records that are appended now.
        state = state._replace(offered=OffersState(first=state.told))
        log.begin(state)
    return state, log


def _encode_record(fields: dict[str, Any]) -> bytes:
    return encode_record(msgpack.packb(fields))


def _whole_state_fields(state: DrumState) -> dict[str, Any]:
    prefix, value, increment, fresh_max = state.kind
    return {
        "kind": (prefix, _dtype_text(value), increment, fresh_max),
        "buckets": [([tuple(run) for run in runs], memtable.strings_from(0)) for runs, memtable in state.buckets],
        "offers": tuple(state.offered),
        "told": state.told,
    }


def _parse_state(fields: dict[str, Any]) -> DrumState:
    prefix, value, increment, fresh_max = fields["kind"]
    kind = Kind(prefix, _dtype_of(value), increment, fresh_max)
    buckets = tuple(
        BucketState(tuple(RunInfo(*run) for run in runs), Memtable.from_strings(memtable))
        for runs, memtable in fields["buckets"]
    )
    return DrumState(kind, buckets, OffersState(*fields.get("offers", ())), fields["told"])


def _changed_state(state: DrumState, fields: dict[str, Any]) -> DrumState:
    offered = OffersState(*fields["offers"]) if "offers" in fields else state.offered
    return state._replace(offered=offered, told=fields.get("told", state.told))


def is_storable(value: np.dtype[Any] | None) -> bool:
    """Return whether a manifest can describe the dtype: only one without padding or objects."""
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
