"""Reading everything a partition's newest manifest refers to, to find damage before the crawl does."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bigcrawl.drum.drum import Drum
from bigcrawl.exceptions import CorruptionError
from bigcrawl.scheduler.admission import decode_admit_batch
from bigcrawl.scheduler.epochs import EpochDirectory, epoch_path, list_committed
from bigcrawl.scheduler.manifest import MANIFEST, PARK_NAME, admit_name, decode_manifest, level_name
from bigcrawl.scheduler.segments import FIRST_BLOCK, SegmentLog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from bigcrawl.drum.files import Files
    from bigcrawl.scheduler.manifest import Manifest
    from bigcrawl.scheduler.segments import Segment


def verify_partition(directory: Path, files: Files) -> list[CorruptionError]:
    """Read every byte the newest manifest refers to and return what is damaged; empty when all is well.

    Changes nothing; an owner that steps meanwhile may delete a file before it is read.
    """
    committed = list_committed(directory, files)
    if not committed:
        return []
    own = EpochDirectory(epoch_path(directory, committed[0]), committed[0], files)
    path = own.path / MANIFEST
    problems: list[CorruptionError] = []
    manifests: list[Manifest] = []
    _try(problems, path, lambda: manifests.append(decode_manifest(path, files.read(path))))
    for manifest in manifests:
        problems += Drum(own.path, manifest.runs, files).verify()
        for level, state in enumerate(manifest.levels):
            _verify_log(problems, own, level_name(level), state.segments)
        _verify_log(problems, own, PARK_NAME, manifest.parked.segments)
        for number in manifest.retained:
            _verify_admit(problems, own, number)
    return problems


def _try(problems: list[CorruptionError], path: Path, read: Callable[[], object]) -> None:
    try:
        read()
    except CorruptionError as error:
        problems.append(error)
    except OSError as error:
        problems.append(CorruptionError(path, 0, "a readable file", error))


def _verify_log(problems: list[CorruptionError], own: EpochDirectory, prefix: str, segments: Sequence[Segment]) -> None:
    for segment in segments:
        path = own.path / f"{prefix}-{segment.number}"
        log = SegmentLog(own, prefix, (segment,), segment.number + 1)
        _try(problems, path, partial(_read_segment, log, segment, path))


def _read_segment(log: SegmentLog, segment: Segment, path: Path) -> None:
    offset, count = FIRST_BLOCK, 0
    while offset < segment.length:
        urls, offset = log.read(segment.number, offset)
        count += len(urls)
    if count != segment.urls:
        raise CorruptionError(path, segment.length, f"{segment.urls} URLs", count)


def _verify_admit(problems: list[CorruptionError], own: EpochDirectory, number: int) -> None:
    path = own.path / admit_name(number)
    _try(problems, path, lambda: decode_admit_batch(path, own.read(path.name)))
