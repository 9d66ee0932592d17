"""Opens a partition in a new epoch. One without files starts in memory: most of a small crawl stay empty."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.drum.files import store_errors
from bigcrawl.scheduler.partition.fold.state import PartitionState
from bigcrawl.scheduler.partition.manifest import Manifest
from bigcrawl.scheduler.partition.manifest_log import ManifestLog
from bigcrawl.scheduler.partition.takeover import new_epoch, take_over
from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory, epoch_path, list_epochs
from bigcrawl.scheduler.queues.front_queues import Levels, Selector

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.drum.files import Files
    from bigcrawl.scheduler.partition.fold.admission import PartitionLimits


class OpenedPartition(NamedTuple):
    directory: Path
    own: EpochDirectory
    log: ManifestLog
    manifest: Manifest
    state: PartitionState
    set_aside: int


def open_epoch(
    directory: Path, epoch: int, files: Files, limits: PartitionLimits, *, fall_back: bool
) -> OpenedPartition:
    with store_errors(directory):
        if not list_epochs(directory, files):
            own, manifest = EpochDirectory(epoch_path(directory, epoch), epoch, files), Manifest(epoch, number=1)
            return _open_directory(directory, own, ManifestLog(own.path, files), manifest, limits)
        with new_epoch(directory, epoch, files) as own:
            inherited = take_over(directory, own, fall_back=fall_back)
            manifest, batches = inherited or (Manifest(epoch), [])
            manifest = replace(manifest, epoch=epoch, number=manifest.number + 1, durable=0)
            log = ManifestLog(own.path, own.files)
            manifest = log.begin(manifest, batches)
            return _open_directory(directory, own, log, manifest, limits)


def _open_directory(
    directory: Path, own: EpochDirectory, log: ManifestLog, manifest: Manifest, limits: PartitionLimits
) -> OpenedPartition:
    selector = Selector(manifest.credits, limits.priority_bias, Levels.of_number(limits.front_queues))
    state = PartitionState.restore(own, manifest, selector)
    return OpenedPartition(directory, own, log, manifest, state, own.count_set_aside())
