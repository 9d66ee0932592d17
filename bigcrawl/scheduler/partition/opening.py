"""How a partition is opened in a new epoch (step 4).

    newest manifest of any epoch -> links in e<epoch>/ -> MANIFEST there

What fails leaves no directory behind, or one that a later owner removes.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.drum.files import store_errors
from bigcrawl.exceptions import BigcrawlError
from bigcrawl.scheduler.partition.manifest import Manifest
from bigcrawl.scheduler.partition.manifest_log import ManifestLog
from bigcrawl.scheduler.partition.step import State
from bigcrawl.scheduler.partition.takeover import begin_epoch, take_over
from bigcrawl.scheduler.queues.epoch_directory import remove_epoch

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.drum.files import Files
    from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory


class Opened(NamedTuple):
    """What an owner begins its epoch with.

    Attributes:
        directory: the partition's.
        own: that of the epoch.
        log: the epoch's manifest log, of one record.
        manifest: that record.
        state: what it describes.
        set_aside: inbox entries below `rejected/`.
    """

    directory: Path
    own: EpochDirectory
    log: ManifestLog
    manifest: Manifest
    state: State
    set_aside: int


def open_epoch(directory: Path, epoch: int, files: Files, *, priority_bias: int, fall_back: bool) -> Opened:
    """Begin an epoch; arguments and errors are those of `Partition.open`."""
    with store_errors(directory):
        own = begin_epoch(directory, epoch, files)
        try:
            inherited = take_over(directory, own, fall_back=fall_back)
            manifest, batches = inherited or (Manifest(epoch), [])
            manifest = replace(manifest, epoch=epoch, number=manifest.number + 1, durable=0)
            log = ManifestLog(own.path, own.files)
            manifest = log.begin(manifest, batches)
            return Opened(
                directory, own, log, manifest, State.restore(own, manifest, priority_bias), own.count_set_aside()
            )
        except (OSError, BigcrawlError):
            with suppress(OSError):  # else a later owner removes it
                remove_epoch(own.path, files)
            raise
