"""Opens a partition in a new epoch (step 4).

    newest manifest of any epoch -> links in e<epoch>/ -> MANIFEST there

A failure leaves no directory behind, or one that a later owner removes.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.drum.files import store_errors
from bigcrawl.exceptions import BigcrawlError
from bigcrawl.scheduler.partition.fold.state import PartitionState
from bigcrawl.scheduler.partition.manifest import Manifest
from bigcrawl.scheduler.partition.manifest_log import ManifestLog
from bigcrawl.scheduler.partition.takeover import begin_epoch, take_over
from bigcrawl.scheduler.queues.epoch_directory import remove_epoch

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.drum.files import Files
    from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory


class Opened(NamedTuple):
    """What an owner begins its epoch with.

    Attributes:
        directory: the directory of the partition.
        own: the directory of the epoch.
        log: the manifest log of the epoch, with one record.
        manifest: the manifest in that record.
        state: the state that it describes.
        set_aside: how many inbox entries are below `rejected/`.
    """

    directory: Path
    own: EpochDirectory
    log: ManifestLog
    manifest: Manifest
    state: PartitionState
    set_aside: int


def open_epoch(directory: Path, epoch: int, files: Files, *, priority_bias: int, fall_back: bool) -> Opened:
    """Begin an epoch. Arguments and errors are those of `Partition.open`."""
    with store_errors(directory):
        own = begin_epoch(directory, epoch, files)
        try:
            inherited = take_over(directory, own, fall_back=fall_back)
            manifest, batches = inherited or (Manifest(epoch), [])
            manifest = replace(manifest, epoch=epoch, number=manifest.number + 1, durable=0)
            log = ManifestLog(own.path, own.files)
            manifest = log.begin(manifest, batches)
            return Opened(
                directory,
                own,
                log,
                manifest,
                PartitionState.restore(own, manifest, priority_bias),
                own.count_set_aside(),
            )
        except (OSError, BigcrawlError):
            with suppress(OSError):  # else a later owner removes it
                remove_epoch(own.path, files)
            raise
