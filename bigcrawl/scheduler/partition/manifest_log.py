"""The manifest's file, `MANIFEST`: a log to which a step appends one record (docs/file-formats.md). That is the commit.

The first record has the whole manifest. It is written to `MANIFEST.tmp`, which is then renamed: at the start of an
epoch, and at a durable point if the log has grown long. The record of a step is appended without a sync.

A crash of the process may leave an incomplete last record, which is ignored. A complete record with a wrong checksum is
damage. A power failure may lose or damage all bytes since the last sync. Each record names the manifest that was
durable when it was written. The one named by the last sound record, or the log's first record if that is later,
certainly exists with all its files.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import msgpack
from isal import isal_zlib

from bigcrawl.drum.files import Files, replace_surely
from bigcrawl.drum.log_records import HEADER_BYTES, check_header, encode_header
from bigcrawl.exceptions import CorruptionError
from bigcrawl.scheduler.partition.admit_batch import check_admit_batch, decode_admit_batch, encode_admit_batch
from bigcrawl.scheduler.partition.manifest import BatchPlace, Manifest, apply_changes, manifest_changes
from bigcrawl.scheduler.queues.epoch_directory import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike

    from bigcrawl.scheduler.partition.manifest import Fields

    AnyPath = str | PathLike[str]

MANIFEST_TEMPORARY = "MANIFEST.tmp"

# A longer log is replaced at the next durable point, unless its first record is more than half of it.
LOG_BYTES_MAX = 128 << 10

_MAGIC = b"BCMANIFS"
_VERSION = 16  # 9 to 15 were never written: with one bit flipped, 16 is no version that is read
_OLDEST_VERSION = 7
_RECORD = struct.Struct("<III")
_CRC = struct.Struct("<I")
_RECORD_BYTES = _RECORD.size + _CRC.size


class ManifestLog:
    """The log of one epoch directory, written by its owner.

    Invariant: the first `size` bytes of the file are whole records; together they describe the last manifest.
    """

    def __init__(self, directory: AnyPath, files: Files) -> None:
        self._path = f"{directory}/{MANIFEST}"
        self._temporary = f"{directory}/{MANIFEST_TEMPORARY}"
        self._files = files
        self._manifest: Manifest | None = None
        self._first_bytes = 0
        self._size = 0
        self._without_text_upto = 0
        self._has_rest = False

    @property
    def size(self) -> int:
        return self._size

    @property
    def has_grown(self) -> bool:
        return self._size > max(LOG_BYTES_MAX, 2 * self._first_bytes)

    def begin(self, manifest: Manifest, batches: Sequence[bytes], *, synced: bool = False) -> Manifest:
        """Write a log of one record over the existing one. Return the manifest with the places of its batches."""
        manifest, data = encode_log(manifest, batches)
        self._files.write_new(self._temporary, (data,))
        if synced:
            self._files.sync_file(self._temporary)
        replace_surely(self._files, self._temporary, self._path, data)
        self._manifest, self._first_bytes, self._size, self._has_rest = manifest, len(data), len(data), False
        return manifest

    def begin_anew(self, without_text_upto: int = 0) -> Manifest:
        """Replace the log by a synced one of one record; batches up to `without_text_upto` keep only their keys."""
        assert self._manifest is not None, "a log is begun once before it is begun anew"
        places, batches = self._manifest.retained, self._retained_batches()
        for at, (place, batch) in enumerate(zip(places, batches, strict=True)):
            if self._without_text_upto < place.number <= without_text_upto:
                old = decode_admit_batch(self._path, batch, place.offset)
                batches[at] = encode_admit_batch(old.without_text())
            else:
                check_admit_batch(self._path, batch, place.offset)
        self._without_text_upto = max(self._without_text_upto, without_text_upto)
        return self.begin(self._manifest, batches, synced=True)

    def append(self, manifest: Manifest, batch: bytes = b"") -> Manifest:
        """Commit a manifest and its admit batch, if any; a failure leaves the log as it was."""
        if batch:
            place = BatchPlace(manifest.batch_number, self._size + _RECORD_BYTES, len(batch))
            manifest = replace(manifest, retained=(*manifest.retained, place))
        record = encode_record(self._manifest, manifest, [batch] if batch else [])
        self._cut_torn_rest()
        self._check_size()
        self._has_rest = True
        # The log must not be created again if a later owner has removed this epoch.
        self._files.write_at(self._path, self._size, record, create=False)
        self._has_rest = False
        self._manifest, self._size = manifest, self._size + len(record)
        return manifest

    def copy(self) -> bytes:
        assert self._manifest is not None, "a log is begun once before it is copied"
        batches = self._retained_batches()
        for place, batch in zip(self._manifest.retained, batches, strict=True):
            check_admit_batch(self._path, batch, place.offset)
        return encode_log(self._manifest, batches)[1]

    def _retained_batches(self) -> list[bytes]:
        assert self._manifest is not None, "a log is begun first"
        places = self._manifest.retained
        start = places[0].offset if places else self._size
        data = self._files.read(self._path, start, self._size - start)
        return [data[at - start : at - start + length] for _, at, length in places]

    def sync(self) -> None:
        self._cut_torn_rest()
        self._check_size()
        self._files.sync_file(self._path)

    def _check_size(self) -> None:
        """Raise CorruptionError for an older copy or another file, before it gets a hole or counts as durable."""
        if (size := self._files.size(self._path)) != self._size:
            raise CorruptionError(self._path, min(size, self._size), f"a log of {self._size} bytes", f"{size} bytes")

    def _cut_torn_rest(self) -> None:
        if self._has_rest:
            self._files.truncate(self._path, self._size)
            self._has_rest = False


def encode_log(manifest: Manifest, batches: Sequence[bytes]) -> tuple[Manifest, bytes]:
    start = HEADER_BYTES + _RECORD_BYTES
    offsets = accumulate(map(len, batches), initial=start)
    pairs = zip(manifest.retained, batches, offsets, strict=False)
    manifest = replace(manifest, retained=tuple(BatchPlace(p.number, at, len(b)) for p, b, at in pairs))
    return manifest, encode_header(_MAGIC, _VERSION) + encode_record(None, manifest, batches)


def encode_record(before: Manifest | None, after: Manifest, batches: Sequence[bytes]) -> bytes:
    """Return the record that turns one manifest into the next; `before` is None for a log's first record."""
    fields = manifest_changes(before, after)
    added = after.retained[len(after.retained) - len(batches) :]
    if added:
        fields["batches"] = [(place.number, place.length) for place in added]
    retained_from = after.retained[0].number if after.retained else after.batch_number + 1
    if before is None or any(place.number < retained_from for place in before.retained[:1]):
        fields["retained_from"] = retained_from
    packed: bytes = msgpack.packb(fields)
    body = b"".join((*batches, packed))
    lengths = _RECORD.pack(len(body) - len(packed), len(packed), isal_zlib.crc32(body))
    return lengths + _CRC.pack(isal_zlib.crc32(lengths)) + body


class _LogRecord(NamedTuple):
    fields: Fields
    batches: tuple[BatchPlace, ...]


def decode_manifest(path: AnyPath, data: bytes) -> Manifest:
    return _manifest_of(path, list(_read_records(path, data)))


def decode_sound_manifests(path: AnyPath, data: bytes) -> Iterator[Manifest]:
    """Yield the last manifest before the damage, then the one that it names as durable, if different."""
    records: list[_LogRecord] = []
    try:
        records.extend(_read_records(path, data))
    except CorruptionError:
        if not records:
            raise
    yield (newest := _manifest_of(path, records))
    durable = [record for record in records if record.fields["number"] <= newest.durable] or records[:1]
    if len(durable) < len(records):
        yield _manifest_of(path, durable)


def _read_records(path: AnyPath, data: bytes) -> Iterator[_LogRecord]:
    check_header(path, data, _MAGIC, _VERSION, _OLDEST_VERSION)
    at = HEADER_BYTES
    while len(data) - at >= _RECORD_BYTES:
        lengths = data[at : at + _RECORD.size]
        batches_bytes, fields_bytes, crc = _RECORD.unpack(lengths)
        (stored,) = _CRC.unpack_from(data, at + _RECORD.size)
        if (found := isal_zlib.crc32(lengths)) != stored:
            raise CorruptionError(path, at, f"record header crc32 {stored:#010x}", f"{found:#010x}")
        start = at + _RECORD_BYTES
        end = start + batches_bytes + fields_bytes
        if end > len(data):
            break
        if (found := isal_zlib.crc32(data[start:end])) != crc:
            raise CorruptionError(path, at, f"record crc32 {crc:#010x}", f"{found:#010x}")
        fields = msgpack.unpackb(data[start + batches_bytes : end], use_list=False, strict_map_key=False)
        yield _LogRecord(fields, _batch_places(fields.pop("batches", ()), start))
        at = end
    if at == HEADER_BYTES:
        raise CorruptionError(path, at, "a whole record", f"{len(data) - at} bytes")


def _batch_places(batches: Sequence[tuple[int, int]], start: int) -> tuple[BatchPlace, ...]:
    places = []
    for number, length in batches:
        places.append(BatchPlace(number, start, length))
        start += length
    return tuple(places)


def _manifest_of(path: AnyPath, records: Sequence[_LogRecord]) -> Manifest:
    retained_from = 0
    retained: list[BatchPlace] = []
    for record in records:
        retained += record.batches
        retained_from = record.fields.get("retained_from", retained_from)
    kept = [place for place in retained if place.number >= retained_from]
    fields = ({k: v for k, v in record.fields.items() if k != "retained_from"} for record in records)
    return apply_changes(path, fields, kept)
