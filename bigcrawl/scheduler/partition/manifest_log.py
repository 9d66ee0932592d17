"""The manifest's file, `MANIFEST`: a log to which a step appends one record. That append is the commit.

    offset  bytes  what
    0       8      magic "BCMANIFS"
    8       u32    format version, 5
    12      ...    records

    record
    0       u32    bytes of the admit batches, a
    4       u32    bytes of the changes, c
    8       u32    crc32 of the batches and the changes
    12      u32    crc32 of bytes 0 to 11
    16      a      admit batches, one after another, see `bigcrawl.scheduler.partition.admit_batch`
    16 + a  c      changes: msgpack, a map

All numbers are little-endian. To change the layout, raise the version: an unknown one is refused. The
changes are those of `bigcrawl.scheduler.partition.manifest`, and two fields more: `batches`, the number and length of
each batch in the record, and `retained_from`, the number from which batches are kept.

The first record is whole: it is written to `MANIFEST.tmp` and renamed, when an epoch begins and when the log
has grown at a durable point. A step's record is appended, unsynced.

What a crash of the process leaves: a last record that is cut short. It was not committed, and is passed
over. A record of full length with a wrong checksum is damage, wherever it stands: no crash of a process
makes one. What a power cut leaves: the log as it was synced, whole or partly what was appended since, and
perhaps the lengths of files without their bytes. Then the record that the last sound one calls durable, or,
if the log was begun since, its first one, is what certainly is there with all that it names.
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

# A longer log is begun anew at the next durable point, unless its first record alone is half of it. Some
# hundred steps: beginning anew costs a millisecond, and reading it, when a partition is opened, about as much.
LOG_BYTES_MAX = 128 << 10

_MAGIC = b"BCMANIFS"
_VERSION = 6
_RECORD = struct.Struct("<III")
_CRC = struct.Struct("<I")
_RECORD_BYTES = _RECORD.size + _CRC.size


class ManifestLog:
    """The log of one epoch directory, written by its owner.

    Invariant: the first `size` bytes of the file are whole records, the last of which made `manifest`.
    """

    def __init__(self, directory: AnyPath, files: Files) -> None:
        self._path = f"{directory}/{MANIFEST}"
        self._temporary = f"{directory}/{MANIFEST_TEMPORARY}"
        self._files = files
        self._manifest: Manifest | None = None
        self._first_bytes = 0
        self._size = 0
        self._without_text_upto = 0
        # Whether bytes of an append that failed may lie behind `size`.
        self._has_rest = False

    def __repr__(self) -> str:
        return f"<ManifestLog {self._path} bytes={self._size}>"

    @property
    def size(self) -> int:
        """Bytes of the log that count."""
        return self._size

    @property
    def has_grown(self) -> bool:
        """Whether it is time to begin anew."""
        return self._size > max(LOG_BYTES_MAX, 2 * self._first_bytes)

    def begin(self, manifest: Manifest, batches: Sequence[bytes], *, synced: bool = False) -> Manifest:
        """Make a file of one record and rename it into place, over the log there is.

        Args:
            manifest: what is committed; `retained` names the batches.
            batches: the retained batches, in their order.
            synced: whether the bytes are on the medium before they are renamed.

        Returns:
            the manifest with the places of its batches in the new log.
        """
        start = HEADER_BYTES + _RECORD_BYTES
        offsets = accumulate(map(len, batches), initial=start)
        pairs = zip(manifest.retained, batches, offsets, strict=False)
        manifest = replace(manifest, retained=tuple(BatchPlace(p.number, at, len(b)) for p, b, at in pairs))
        data = encode_header(_MAGIC, _VERSION) + encode_record(None, manifest, batches)
        self._files.write_new(self._temporary, (data,))
        if synced:
            self._files.sync_file(self._temporary)
        replace_surely(self._files, self._temporary, self._path, data)
        self._manifest, self._first_bytes, self._size, self._has_rest = manifest, len(data), len(data), False
        return manifest

    def begin_anew(self, without_text_upto: int = 0) -> Manifest:
        """Replace the log, synced, by one of a single record that says the same; return that manifest.

        Args:
            without_text_upto: of admit batches up to this number only the keys are kept.

        Raises:
            CorruptionError: a retained batch is damaged.
        """
        assert self._manifest is not None, "a log is begun once before it is begun anew"
        places = self._manifest.retained
        start = places[0].offset if places else self._size
        data = self._files.read(self._path, start, self._size - start)
        batches = [data[at - start : at - start + length] for _, at, length in places]
        for at, (place, batch) in enumerate(zip(places, batches, strict=True)):
            if self._without_text_upto < place.number <= without_text_upto:
                old = decode_admit_batch(self._path, batch, place.offset)
                batches[at] = encode_admit_batch(old.without_text())
            else:
                check_admit_batch(self._path, batch, place.offset)
        self._without_text_upto = max(self._without_text_upto, without_text_upto)
        return self.begin(self._manifest, batches, synced=True)

    def append(self, manifest: Manifest, batch: bytes = b"") -> Manifest:
        """Commit: append what has changed. What fails leaves the log as it was; it may be repeated.

        Args:
            manifest: follows the last one committed.
            batch: an admit batch to be retained with the number `manifest.batch_number`, if any.

        Returns:
            the manifest, with the batch's place.
        """
        if batch:
            place = BatchPlace(manifest.batch_number, self._size + _RECORD_BYTES, len(batch))
            manifest = replace(manifest, retained=(*manifest.retained, place))
        record = encode_record(self._manifest, manifest, [batch] if batch else [])
        self._cut()
        self._has_rest = True
        # A log that is gone, with the epoch of an owner that was fenced, stays gone.
        self._files.write_at(self._path, self._size, record, create=False)
        self._has_rest = False
        self._manifest, self._size = manifest, self._size + len(record)
        return manifest

    def sync(self) -> None:
        """Return when all records are on the medium."""
        self._cut()
        self._files.sync_file(self._path)

    def _cut(self) -> None:
        if self._has_rest:
            self._files.truncate(self._path, self._size)
            self._has_rest = False


def encode_record(before: Manifest | None, after: Manifest, batches: Sequence[bytes]) -> bytes:
    """Return the record that makes `after` of `before`.

    Args:
        before: the manifest of the record before; None for a log's first.
        after: `retained` ends with the places of the batches.
        batches: those that the record brings.
    """
    fields = changes(before, after)
    brought = after.retained[len(after.retained) - len(batches) :]
    if brought:
        fields["batches"] = [(place.number, place.length) for place in brought]
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
        CorruptionError: not a manifest, another version, no whole record, or a damaged one.
    """
    return _manifest_of(list(_records(path, data)))


def decode_sound_manifests(path: AnyPath, data: bytes) -> Iterator[Manifest]:
    """Yield what may be gone back to when a log, or a file it names, is damaged: the newest first.

    That is the manifest of the last record before any damage, and the one which that calls durable.

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
    check_header(path, data, _MAGIC, _VERSION)
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
