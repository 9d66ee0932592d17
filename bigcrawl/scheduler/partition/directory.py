from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from bigcrawl.drum.files import DiskFiles, Files, store_errors
from bigcrawl.exceptions import CorruptionError
from bigcrawl.scheduler.partition.admit_batch import decode_admit_batch
from bigcrawl.scheduler.partition.manifest import PARK_NAME, Manifest
from bigcrawl.scheduler.partition.manifest_log import decode_manifest, decode_sound_manifests
from bigcrawl.scheduler.partition.tables import Tables
from bigcrawl.scheduler.queues.epoch_directory import MANIFEST, EpochDirectory, epoch_path, list_committed, list_epochs
from bigcrawl.scheduler.queues.segments import SegmentLog

if TYPE_CHECKING:
    from pathlib import Path


def last_epoch(directory: Path, files: Files | None = None) -> int:
    """Return the highest epoch that was started and not removed, or 0."""
    with store_errors(directory):
        epochs = list_epochs(directory, files or DiskFiles())
    return epochs[0] if epochs else 0


def is_unused(directory: Path, files: Files | None = None) -> bool:
    """Whether Redis may forget the partition without loss: no URL has ended yet, and all batches are retained."""
    files = files or DiskFiles()
    with store_errors(directory):
        committed = list_committed(directory, files)
        if not committed:
            return True
        path = epoch_path(directory, committed[0]) / MANIFEST
        log = files.read(path)
    manifest = decode_manifest(path, log)
    ends = manifest.tables["ends"]
    if len(ends.runs) or len(ends.memtable) or len(manifest.retained) < manifest.batch_number:
        return False
    batches = (decode_admit_batch(path, log[at : at + length], at) for _, at, length in manifest.retained[:1])
    return all(batch.has_text for batch in batches)


def verify_newest(directory: Path, files: Files | None = None) -> list[CorruptionError]:
    files = files or DiskFiles()
    committed = list_committed(directory, files)
    if not committed:
        return []
    own = EpochDirectory(epoch_path(directory, committed[0]), committed[0], files)
    path = own.path / MANIFEST
    try:
        manifest = decode_manifest(path, files.read(path))
        return verify_files(own, manifest)
    except CorruptionError as error:
        return [error]
    except OSError as error:
        return [CorruptionError(error.filename or path, 0, "a readable file", error)]


def sound_manifest(directory: Path, files: Files) -> Manifest | None:
    """Return the manifest that `take_over` would fall back to, after reading all its files."""
    for epoch in list_committed(directory, files):
        own = EpochDirectory(epoch_path(directory, epoch), epoch, files)
        path = own.path / MANIFEST
        with suppress(CorruptionError, OSError):
            for manifest in decode_sound_manifests(path, files.read(path)):
                if _is_sound(own, manifest):
                    return manifest
    return None


def _is_sound(own: EpochDirectory, manifest: Manifest) -> bool:
    try:
        sizes = all(own.files.size(own.path / name) >= size for name, size in manifest.files_needed().items())
        return sizes and not verify_files(own, manifest)
    except (CorruptionError, OSError):
        return False


def verify_files(own: EpochDirectory, manifest: Manifest) -> list[CorruptionError]:
    logs = [SegmentLog(own, name, state.segments) for name, state in manifest.queues.items()]
    logs.append(SegmentLog(own, PARK_NAME, manifest.parked.segments))
    problems = Tables.restore(own, manifest.tables).verify()
    return problems + [problem for log in logs for problem in log.verify()]
