"""The manifest's file, `MANIFEST`: a log to which a step appends one record. That append is the commit.

    offset  bytes  what
    0       8      magic "BCMANIFS"
    8       u32    format version, 16; 8 does not count repeats, 7 lacks what is known of copies too; both are read
    12      ...    records

    record
    0       u32    bytes of the admit batches, a
    4       u32    bytes of the changes, c
    8       u32    crc32 of the batches and the changes
    12      u32    crc32 of bytes 0 to 11
    16      a      admit batches, one after another, see `bigcrawl.scheduler.partition.admit_batch`
    16 + a  c      changes: msgpack, a map

All numbers are little-endian. To change the layout, raise the version; a log of an unknown one is refused. The changes
are those of `bigcrawl.scheduler.partition.manifest`, with two further fields: `batches`, the number and length of each
batch in the record, and `retained_from`, the number of the first batch that is kept.

The first record has the whole manifest. It is written to `MANIFEST.tmp`, which is then renamed. That happens when an
epoch begins, and at a durable point if the log has grown long. The record of a step is appended without a sync.

A crash of the process may leave an incomplete last record. It was not committed, and is ignored. A complete record with
a wrong checksum is damage, wherever it is, because no crash of a process produces one. A power failure leaves the log
as it was synced, perhaps with all or part of what was appended since, and perhaps files with their length but not their
bytes. Each record names the manifest that was durable when it was written. That manifest, as named by the last sound
record, is certainly there with all its files; if the log was begun later, its first record is.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import msgpack
from isal import isal_zlib

from bigcrawl.drum.files import replace_surely
from bigcrawl.drum.log_records import HEADER_BYTES, check_header, encode_header
from bigcrawl.exceptions import CorruptionError
from bigcrawl.scheduler.partition.admit_batch import check_admit_batch, decode_admit_batch, encode_admit_batch
from bigcrawl.scheduler.partition.manifest import BatchPlace, apply_changes, changes
from bigcrawl.scheduler.queues.epoch_directory import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike

    from bigcrawl.drum.files import Files
    from bigcrawl.scheduler.partition.manifest import Fields, Manifest

    AnyPath = str | PathLike[str]

MANIFEST_TEMPORARY = "MANIFEST.tmp"

# At the next durable point, a longer log is replaced by a new one, unless its first record is more than half of it.
# Some hundred steps fit. Replacing the log takes a millisecond, and so does reading it when a partition is opened.
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
        # Whether a failed append may have left bytes after `size`.
        self._has_rest = False

    def __repr__(self) -> str:
        return f"<ManifestLog {self._path} bytes={self._size}>"

    @property
    def size(self) -> int:
        """The length of the log without the rest of a failed append."""
        return self._size

    @property
    def has_grown(self) -> bool:
        """Whether the log should be replaced by a new one."""
        return self._size > max(LOG_BYTES_MAX, 2 * self._first_bytes)

    def begin(self, manifest: Manifest, batches: Sequence[bytes], *, synced: bool = False) -> Manifest:
        """Write a log of one record, and rename it over the existing log, if there is one.

        Args:
            manifest: what is committed; `retained` names the batches.
            batches: the retained batches, in order.
            synced: whether to sync the file before it is renamed.

        Returns:
            The manifest, with the places of its batches in the new log.
        """
        manifest, data = encode_log(manifest, batches)
        self._files.write_new(self._temporary, (data,))
        if synced:
            self._files.sync_file(self._temporary)
        replace_surely(self._files, self._temporary, self._path, data)
        self._manifest, self._first_bytes, self._size, self._has_rest = manifest, len(data), len(data), False
        return manifest

    def begin_anew(self, without_text_upto: int = 0) -> Manifest:
        """Replace the log by a synced one with a single record for the same manifest. Return that manifest.

        Args:
            without_text_upto: admit batches up to this number keep only their keys.

        Raises:
            CorruptionError: a retained batch is damaged.
        """
        assert self._manifest is not None, "a log is begun once before it is begun anew"
        places, batches = self._manifest.retained, self._retained()
        for at, (place, batch) in enumerate(zip(places, batches, strict=True)):
            if self._without_text_upto < place.number <= without_text_upto:
                old = decode_admit_batch(self._path, batch, place.offset)
                batches[at] = encode_admit_batch(old.without_text())
            else:
                check_admit_batch(self._path, batch, place.offset)
        self._without_text_upto = max(self._without_text_upto, without_text_upto)
        return self.begin(self._manifest, batches, synced=True)

    def append(self, manifest: Manifest, batch: bytes = b"") -> Manifest:
        """Commit a manifest: append its changes. A failure leaves the log as it was, and the call may be repeated.

        Raises:
            CorruptionError: the file is not the one that was written so far.

        Args:
            manifest: the successor of the last one committed.
            batch: an admit batch to retain, with the number `manifest.batch_number`; empty for none.

        Returns:
            The manifest, with the batch's place.
        """
        if batch:
            place = BatchPlace(manifest.batch_number, self._size + _RECORD_BYTES, len(batch))
            manifest = replace(manifest, retained=(*manifest.retained, place))
        record = encode_record(self._manifest, manifest, [batch] if batch else [])
        self._cut()
        self._check_size()
        self._has_rest = True
        # If a later owner has removed this epoch and its log, the log must not be created again.
        self._files.write_at(self._path, self._size, record, create=False)
        self._has_rest = False
        self._manifest, self._size = manifest, self._size + len(record)
        return manifest

    def copy(self) -> bytes:
        """Return the bytes of a log of one record for the same manifest.

        Raises:
            CorruptionError: a retained batch is damaged.
        """
        assert self._manifest is not None, "a log is begun once before it is copied"
        batches = self._retained()
        for place, batch in zip(self._manifest.retained, batches, strict=True):
            check_admit_batch(self._path, batch, place.offset)
        return encode_log(self._manifest, batches)[1]

    def _retained(self) -> list[bytes]:
        """The retained batches, in order; not checked."""
        assert self._manifest is not None, "a log is begun first"
        places = self._manifest.retained
        start = places[0].offset if places else self._size
        data = self._files.read(self._path, start, self._size - start)
        return [data[at - start : at - start + length] for _, at, length in places]

    def sync(self) -> None:
        """Force all records to the medium. Raises as `append`."""
        self._cut()
        self._check_size()
        self._files.sync_file(self._path)

    def _check_size(self) -> None:
        """Notice that the file is an older copy, or another one, before it gets a hole or counts as durable."""
        if (size := self._files.size(self._path)) != self._size:
            raise CorruptionError(self._path, min(size, self._size), f"a log of {self._size} bytes", f"{size} bytes")

    def _cut(self) -> None:
        if self._has_rest:
            self._files.truncate(self._path, self._size)
            self._has_rest = False


def encode_log(manifest: Manifest, batches: Sequence[bytes]) -> tuple[Manifest, bytes]:
    """Return a manifest with the places of its retained batches in a log of one record, and the bytes of that log."""
    start = HEADER_BYTES + _RECORD_BYTES
    offsets = accumulate(map(len, batches), initial=start)
    pairs = zip(manifest.retained, batches, offsets, strict=False)
    manifest = replace(manifest, retained=tuple(BatchPlace(p.number, at, len(b)) for p, b, at in pairs))
    return manifest, encode_header(_MAGIC, _VERSION) + encode_record(None, manifest, batches)


def encode_record(before: Manifest | None, after: Manifest, batches: Sequence[bytes]) -> bytes:
    """Return the record that turns one manifest into the next.

    Args:
        before: the manifest so far; None for a log's first record.
        after: the next manifest. Its `retained` ends with the places of `batches`.
        batches: the new batches in the record.
    """
    fields = changes(before, after)
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


class _Record(NamedTuple):
    fields: Fields
    batches: tuple[BatchPlace, ...]


def decode_manifest(path: AnyPath, data: bytes) -> Manifest:
    """Return the last manifest committed to a log, given its bytes.

    Raises:
        CorruptionError: the bytes are not a manifest of this version, have no whole record, or have a damaged one.
    """
    return _manifest_of(list(_records(path, data)))


def decode_sound_manifests(path: AnyPath, data: bytes) -> Iterator[Manifest]:
    """Yield the manifests to fall back to if a log, or a file that it names, is damaged; the newest first.

    They are the manifest of the last record before the damage, and the one that this record names as durable.

    Raises:
        CorruptionError: no record is sound.
    """
    records: list[_Record] = []
    try:
        records.extend(_records(path, data))
    except CorruptionError:
        if not records:
            raise
    yield (newest := _manifest_of(records))
    durable = [record for record in records if record.fields["number"] <= newest.durable] or records[:1]
    if len(durable) < len(records):
        yield _manifest_of(durable)


def _records(path: AnyPath, data: bytes) -> Iterator[_Record]:
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
        yield _Record(fields, _places(fields.pop("batches", ()), start))
        at = end
    if at == HEADER_BYTES:
        raise CorruptionError(path, at, "a whole record", f"{len(data) - at} bytes")


def _places(batches: Sequence[tuple[int, int]], start: int) -> tuple[BatchPlace, ...]:
    places = []
    for number, length in batches:
        places.append(BatchPlace(number, start, length))
        start += length
    return tuple(places)


def _manifest_of(records: Sequence[_Record]) -> Manifest:
    retained_from = 0
    retained: list[BatchPlace] = []
    for record in records:
        retained += record.batches
        retained_from = record.fields.get("retained_from", retained_from)
    kept = [place for place in retained if place.number >= retained_from]
    fields = ({k: v for k, v in record.fields.items() if k != "retained_from"} for record in records)
    return apply_changes(fields, kept)
