from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.drum.bucket import EMPTY_BUCKET, BucketState
from bigcrawl.drum.files import DiskFiles
from bigcrawl.drum.memtable import Memtable
from bigcrawl.drum.run import RunInfo
from bigcrawl.exceptions import ConfigError, CorruptionError, OtherVersionError
from bigcrawl.scheduler.partition import manifest as manifest_module
from bigcrawl.scheduler.partition import manifest_log as manifest_log_module
from bigcrawl.scheduler.partition.admit_batch import AdmitBatch, encode_admit_batch
from bigcrawl.scheduler.partition.manifest import UNKNOWN, Manifest
from bigcrawl.scheduler.partition.manifest_log import ManifestLog, decode_manifest, decode_sound_manifests
from tests.support.disks.faulty_files import Fault, FaultyFiles
from tests.support.worlds.partition_world import make_url
from tests.unit.scheduler.partition.test_manifest import FULL, tables_of

if TYPE_CHECKING:
    from bigcrawl.drum.files import Files

PATH = Path("e7/MANIFEST")
BATCHES = [encode_admit_batch(AdmitBatch(number, 10 * number, [make_url(number)])) for number in range(15)]

BEFORE_FEATURES = base64.b64decode(
    b"QkNNQU5JRlMQAAAAAAAAADYBAADYDnkpjnExy94AFaVlcG9jaAembnVtYmVyY6dkdXJhYmxlAKhpbmJveF9pZKMwLTCldHVybnOfAAAAAAQB"
    b"BAHCAADCwgAAqmluX2RlZ3JlZXPEAKdjcmVkaXRzlQAAAAAArGJhdGNoX251bWJlcgCoYWRtaXR0ZWQAp2FscmVhZHmQq2ZvbGRlZF91cmxz"
    b"AKpkdXBsaWNhdGVzAKdyZXBlYXRzAKhpbXBvcnRlZACocmVqZWN0ZWQArGV4YWN0X2NvcGllcx6rbmVhcl9jb3BpZXMEp21pcnJvcnMApnVu"
    b"dG9sZMQYMjQgYnl0ZXMgdGhhdCBnbyBhc3RyYXkupnRhYmxlc4Gkc2VlbpORlaVydW4tNM0D6ADP///////////NF9QAkcQIOCBieXRlcy6t"
    b"cmV0YWluZWRfZnJvbQEAAAAAUgAAAFwIQIPpTtZnhKZudW1iZXJkrGV4YWN0X2NvcGllcx+nbWlycm9ycwWmdGFibGVzgadtaXJyb3Jzk8AA"
    b"kcQcYSByZWNvcmQgb2YgYSBQTEQgdGhhdCBpcy4yOAAAAAASAAAAfEXsgPafgA2Cpm51bWJlcmWnbWlycm9ycwQ="
)
"""Three records of a log, written when tables and counts of copies and mirrors were fields of every manifest."""


def begin(directory: Path, files: Files | None = None) -> tuple[ManifestLog, Manifest]:
    log = ManifestLog(directory, files or DiskFiles())
    return log, log.begin(FULL, BATCHES[11:13])


def bytes_of(directory: Path) -> bytes:
    return (directory / "MANIFEST").read_bytes()


@pytest.mark.parametrize("manifest", [FULL, Manifest(epoch=1)])
def test_a_manifest_reads_back_equal(tmp_path: Path, manifest: Manifest) -> None:
    """Every field survives, types included."""
    written = ManifestLog(tmp_path, DiskFiles()).begin(manifest, BATCHES[11:13] if manifest.retained else [])
    decoded = decode_manifest(PATH, bytes_of(tmp_path))
    assert decoded == written
    assert replace(decoded, retained=manifest.retained) == manifest
    assert [type(run) for run in decoded.tables["seen"].runs] == [type(run) for run in manifest.tables["seen"].runs]
    assert type(decoded.turns) is type(manifest.turns)
    assert decoded.files_needed() == manifest.files_needed()


def test_a_log_is_its_last_manifest(tmp_path: Path) -> None:
    """Records follow each other; batches lie where the manifest says, until they are kept no longer."""
    log, manifest = begin(tmp_path)
    seen = FULL.tables["seen"]
    more = seen._replace(memtable=Memtable.from_bytes(seen.memtable.bytes_from(0) + b"8 more.."))
    for number, step in (
        (13, {"tables": {**FULL.tables, "seen": more}, "duplicates": 41}),
        (14, {"queues": {}, "tables": {**FULL.tables, "seen": EMPTY_BUCKET}, "already": ()}),
        (14, {"rejected": 3}),
    ):
        batch = BATCHES[number] if number > manifest.batch_number else b""
        kept = manifest.retained[1:]
        manifest = replace(manifest, number=manifest.number + 1, batch_number=number, retained=kept, **step)
        manifest = log.append(manifest, batch)
        data = bytes_of(tmp_path)
        assert decode_manifest(PATH, data) == manifest
        assert len(data) == log.size
        places = manifest.retained
        assert [data[at : at + length] for _, at, length in places] == [BATCHES[n] for n, *_ in places]
    assert [place.number for place in manifest.retained] == [14]


def test_a_log_begun_anew_says_the_same(tmp_path: Path) -> None:
    """One record takes the place of all; batches move with it."""
    log, manifest = begin(tmp_path)
    for number in range(100, 200):
        manifest = log.append(replace(manifest, number=number))
    anew = log.begin_anew()
    assert replace(anew, retained=manifest.retained) == manifest
    assert decode_manifest(PATH, bytes_of(tmp_path)) == anew
    assert len(bytes_of(tmp_path)) == log.size
    data = bytes_of(tmp_path)
    assert [data[at : at + length] for _, at, length in anew.retained] == BATCHES[11:13]


def test_a_damaged_batch_is_not_carried_on(tmp_path: Path) -> None:
    """A log whose batch was damaged since is not begun anew: the copy would be sound and wrong."""
    log, manifest = begin(tmp_path)
    data = bytearray(bytes_of(tmp_path))
    data[manifest.retained[0].offset + 40] ^= 1
    (tmp_path / "MANIFEST").write_bytes(data)
    with pytest.raises(CorruptionError) as caught:
        log.begin_anew()
    assert caught.value.offset == manifest.retained[0].offset
    assert bytes_of(tmp_path) == data


def two_records(directory: Path) -> tuple[Manifest, int, Manifest, bytes]:
    log, first = begin(directory)
    size = log.size
    second = log.append(replace(first, number=100, durable=99, batch_number=13), BATCHES[13])
    return first, size, second, bytes_of(directory)


def test_every_damaged_byte_is_found(tmp_path: Path) -> None:
    """Whichever byte of whichever record is flipped, a manifest is refused with its path, the last one's too."""
    _, size, _, data = two_records(tmp_path)
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 0x01
        with pytest.raises(CorruptionError, match="e7/MANIFEST") as caught:
            decode_manifest(PATH, bytes(damaged))
        assert caught.value.offset == (size if place >= size else 12 if place >= 12 else 8 if place >= 8 else 0)


def test_a_record_that_was_cut_was_not_committed(tmp_path: Path) -> None:
    """A log is what its whole records make; without one it is damage, never an empty manifest."""
    first, size, second, data = two_records(tmp_path)
    for end in range(len(data)):
        if end < size:
            with pytest.raises(CorruptionError, match="e7/MANIFEST"):
                decode_manifest(PATH, data[:end])
        else:
            assert decode_manifest(PATH, data[:end]) == first
    assert decode_manifest(PATH, data) == second


def test_behind_damage_the_durable_manifest_is_found(tmp_path: Path) -> None:
    """The newest sound record comes first, then the one that it calls durable, or the first of the log."""
    log, manifest = begin(tmp_path)
    written = [manifest]
    sizes = [log.size]
    for number, durable in ((100, 90), (101, 100), (102, 100), (103, 100)):
        written.append(log.append(replace(written[-1], number=number, durable=durable)))
        sizes.append(log.size)
    data = bytes_of(tmp_path)
    assert list(decode_sound_manifests(PATH, data)) == [written[4], written[1]]
    zeroed = data[: sizes[3]] + bytes(len(data) - sizes[3])
    assert list(decode_sound_manifests(PATH, zeroed)) == [written[3], written[1]]
    assert list(decode_sound_manifests(PATH, data[: sizes[1]])) == [written[1], written[0]]
    assert list(decode_sound_manifests(PATH, data[: sizes[0]])) == [written[0]]
    with pytest.raises(CorruptionError):
        list(decode_sound_manifests(PATH, bytes(len(data))))


@pytest.mark.parametrize("fault", [Fault.DISK_FULL, Fault.FAILS_AFTER])
def test_what_a_failed_append_left_is_cut_off(tmp_path: Path, fault: Fault) -> None:
    """Half a record, or a whole one whose writer was told that it failed, is gone before the next stands there."""
    files = FaultyFiles()
    log, manifest = begin(tmp_path, files)
    files.fail(files.operations + 1, fault)
    with pytest.raises(OSError, match=r"No space|Input/output"):
        log.append(replace(manifest, number=100, batch_number=13), BATCHES[13])
    shorter = log.append(replace(manifest, number=100))
    assert len(bytes_of(tmp_path)) == log.size
    assert decode_manifest(PATH, bytes_of(tmp_path)) == shorter
    files.fail(files.operations + 1, fault)
    with pytest.raises(OSError, match=r"No space|Input/output"):
        log.append(replace(manifest, number=101))
    log.sync()
    assert decode_manifest(PATH, bytes_of(tmp_path)) == shorter
    assert len(bytes_of(tmp_path)) == log.size


def test_another_version_is_refused(tmp_path: Path) -> None:
    """What an earlier or later version wrote is not guessed at."""
    begin(tmp_path)
    for version in (6, 17):
        data = bytearray(bytes_of(tmp_path))
        data[8] = version
        with pytest.raises(OtherVersionError, match=f"format version {version}, and this bigcrawl reads 16"):
            decode_manifest(PATH, bytes(data))


@pytest.mark.parametrize("version", [7, 8])
def test_versions_before_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    """A log that knows nothing of copies is of a partition that has none; its repeats are not known."""
    added = ["repeats", "imported"]
    before = replace(FULL, repeats=UNKNOWN, imported=0)
    if version == 7:
        added += ["untold"]
        before = replace(before, counts={}, untold=b"")
    with monkeypatch.context() as patches:
        patches.setattr(manifest_module, "_PLAIN", tuple(n for n in manifest_module._PLAIN if n not in added))
        patches.setattr(manifest_log_module, "_VERSION", version)
        written = ManifestLog(tmp_path, DiskFiles()).begin(before, BATCHES[11:13])
    assert bytes_of(tmp_path)[8] == version
    assert decode_manifest(PATH, bytes_of(tmp_path)) == written


def test_a_log_written_before_features_is_read(tmp_path: Path) -> None:
    """Counts and tables that were fields of each manifest are those of features, and what is appended goes on there."""
    mirrors = BucketState((), Memtable.from_bytes(b"a record of a PLD that is.28", 28))
    seen = BucketState((RunInfo("run-4", 1000, 0, 2**64 - 1, 6100),), Memtable.from_bytes(b"8 bytes."))
    found = decode_manifest(PATH, BEFORE_FEATURES)
    assert found == Manifest(
        7,
        101,
        tables=tables_of(seen=seen, mirrors=mirrors),
        counts={"exact_copies": 31, "near_copies": 4, "mirrors": 4},
        untold=b"24 bytes that go astray.",
    )
    log = ManifestLog(tmp_path, DiskFiles())
    after = log.append(replace(log.begin(found, []), number=102, counts={**found.counts, "mirrors": 0}))
    assert decode_manifest(PATH, bytes_of(tmp_path)) == after


@pytest.mark.parametrize(
    ("state", "name"),
    [
        ({"tables": {**FULL.tables, "languages": FULL.tables["plds"]}}, "languages"),
        ({"counts": {**FULL.counts, "foreign_pages": 3}}, "foreign_pages"),
    ],
)
def test_state_of_a_feature_that_is_not_there_is_refused(tmp_path: Path, state: dict[str, Any], name: str) -> None:
    """It would be lost with the next manifest; the operator is told where it is, and what it takes to go on."""
    log, manifest = begin(tmp_path)
    log.append(replace(manifest, number=100, **state))
    with pytest.raises(
        ConfigError, match=f"^{PATH} has state of features that this version of bigcrawl lacks: {name}; continue with"
    ):
        decode_manifest(PATH, bytes_of(tmp_path))
