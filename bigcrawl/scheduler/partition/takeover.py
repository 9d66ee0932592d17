"""Opens a partition in a new epoch, with the files of the previous owner, if any.

The highest epoch with a manifest is in force. An epoch belongs to the node that creates its directory: a Redis that has
lost a claim may give the epoch to two nodes, and a node that was suspended after its claim may come too late. A
partition without files starts in memory: most of a small crawl stay empty.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.drum.files import Files, store_errors
from bigcrawl.exceptions import BigcrawlError, CorruptionError, OwnershipLostError
from bigcrawl.scheduler.partition.directory import verify_files
from bigcrawl.scheduler.partition.fold.state import PartitionState
from bigcrawl.scheduler.partition.manifest import Manifest
from bigcrawl.scheduler.partition.manifest_log import ManifestLog, decode_manifest, decode_sound_manifests
from bigcrawl.scheduler.queues.epoch_directory import (
    MANIFEST,
    EpochDirectory,
    epoch_path,
    list_committed,
    list_epochs,
    remove_epoch,
)
from bigcrawl.scheduler.queues.front_queues import Levels, Selector

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl.scheduler.partition.fold.admission import PartitionLimits

# A previous owner that still lives may delete files after we have read its manifest and before we link them.
_TAKE_OVER_TRIES = 4


class InheritedFiles(NamedTuple):
    manifest: Manifest
    batches: list[bytes]


@contextmanager
def new_epoch(directory: Path, epoch: int, files: Files) -> Iterator[EpochDirectory]:
    own = begin_epoch(directory, epoch, files)
    try:
        yield own
    except (OSError, BigcrawlError):
        with suppress(OSError):  # else a later owner removes it
            remove_epoch(own.path, files)
        raise


def begin_epoch(directory: Path, epoch: int, files: Files) -> EpochDirectory:
    """Create the directory of an epoch. If OwnershipLostError is raised, nothing has changed."""
    files.make_directory(directory)
    last = next(iter(list_epochs(directory, files)), 0)
    if last > epoch:
        raise _is_over(directory, epoch, last)
    own = EpochDirectory(epoch_path(directory, epoch), epoch, files)
    try:
        files.make_new_directory(own.path)
    except FileExistsError:
        raise OwnershipLostError(f"{directory}: epoch {epoch} was opened before") from None
    return own


def take_over(directory: Path, own: EpochDirectory, *, fall_back: bool = False) -> InheritedFiles | None:
    """Fill the directory of a new epoch with links to all files that the newest manifest refers to.

    With `fall_back`, a damaged state is replaced by the last sound one, and then by the last durable one.
    """
    files = own.files
    error: Exception | None = None
    for _ in range(_TAKE_OVER_TRIES):
        committed = list_committed(directory, files)
        if committed and committed[0] > own.epoch:
            raise _is_over(directory, own.epoch, committed[0])
        if not committed and error is None:
            return None
        for source in committed if fall_back else committed[:1]:
            try:
                return _link_inherited(epoch_path(directory, source), own, fall_back=fall_back)
            except FileNotFoundError as missing:
                error = _missing_file_error(missing)
            except CorruptionError as damaged:
                error = damaged
            _make_empty(own.path, files)
    assert error is not None
    raise error


def _is_over(directory: Path, epoch: int, last: int) -> OwnershipLostError:
    return OwnershipLostError(f"{directory}: epoch {epoch} is over; {last} was opened meanwhile")


def _make_empty(path: Path, files: Files) -> None:
    for name in files.list_directory(path):
        files.unlink(path / name)


def remove_older_epochs(own: EpochDirectory) -> None:
    """Delete the directories of all earlier epochs. A later one belongs to a successor."""
    directory = own.path.parent
    for epoch in list_epochs(directory, own.files):
        if epoch < own.epoch:
            remove_epoch(epoch_path(directory, epoch), own.files)


def _link_inherited(source: Path, own: EpochDirectory, *, fall_back: bool) -> InheritedFiles:
    path = source / MANIFEST
    log = own.files.read(path)
    manifests = list(decode_sound_manifests(path, log)) if fall_back else [decode_manifest(path, log)]
    while True:
        manifest = manifests.pop(0)
        try:
            _link_all(source, manifest, own)
            if fall_back and (problems := verify_files(own, manifest)):
                raise problems[0]
        except (FileNotFoundError, CorruptionError):
            if not manifests:
                raise
            _make_empty(own.path, own.files)
        else:
            return InheritedFiles(manifest, [log[at : at + length] for _, at, length in manifest.retained])


def _link_all(source: Path, manifest: Manifest, own: EpochDirectory) -> None:
    for name, length in manifest.files_needed().items():
        path = source / name
        own.link(path, name)
        size = own.files.size(path)
        if size < length:
            raise CorruptionError(path, size, f"{length} bytes", f"{size} bytes")


def _missing_file_error(missing: FileNotFoundError) -> CorruptionError:
    error = CorruptionError(missing.filename, 0, "a file the manifest names", "no file")
    error.__cause__ = missing
    return error


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
