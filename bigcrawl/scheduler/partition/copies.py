"""Copies of a partition in a store, restored into `fetched/`, which becomes the epoch directory by one rename."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bigcrawl.drum.files import store_errors
from bigcrawl.exceptions import CorruptionError
from bigcrawl.scheduler.partition.manifest_log import decode_manifest
from bigcrawl.scheduler.queues.epoch_directory import (
    MANIFEST,
    REJECTED,
    epoch_path,
    list_committed,
    remove_epoch,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.drum.files import Files
    from bigcrawl.scheduler.partition.manifest import Manifest
    from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory

    Write = Callable[[str, int, bytes], None]

_FETCHED = "fetched"


class PartitionCopy:
    def __init__(self, own: EpochDirectory, manifest: Manifest, log: bytes, lengths: dict[str, int]) -> None:
        self._own = own
        self.epoch, self.number = manifest.epoch, manifest.number
        self.inbox_id, self.batch_number = manifest.inbox_id, manifest.batch_number
        self.log = log
        below = own.path.parent / REJECTED
        aside = {f"{REJECTED}/{name}": own.files.size(below / name) for name in own.files.list_directory(below)}
        self.lengths = lengths | aside

    def read(self, name: str, offset: int, size: int) -> bytes:
        directory = self._own.path.parent if name.startswith(f"{REJECTED}/") else self._own.path
        with store_errors(directory):
            data = self._own.files.read(directory / name, offset, size)
        if len(data) < size:
            raise CorruptionError(directory / name, offset, f"{size} bytes", f"{len(data)} bytes")
        return data


def newest_manifest(directory: Path, files: Files) -> Manifest | None:
    with store_errors(directory):
        for epoch in list_committed(directory, files):
            path = epoch_path(directory, epoch) / MANIFEST
            return decode_manifest(path, files.read(path))
        return None


def newest_of(directory: Path, files: Files) -> tuple[int, int] | None:
    newest = newest_manifest(directory, files)
    return (newest.epoch, newest.number) if newest is not None else None


def put_back(directory: Path, epoch: int, files: Files, fetch: Callable[[Write], bytes]) -> None:
    """Restore a copy; `fetch` writes all its files and returns the manifest's log."""
    target = directory / _FETCHED

    def write(name: str, offset: int, data: bytes) -> None:
        folder, _, plain = name.rpartition("/")
        if folder not in ("", REJECTED) or plain != Path(plain).name:
            raise CorruptionError(directory, 0, "the name of a file", repr(name))
        if folder:
            files.make_directory(directory / folder)
        files.write_at((directory if folder else target) / name, offset, data)

    with store_errors(directory):
        files.make_directory(directory)
        remove_epoch(target, files)
        files.make_directory(target)
        files.write_new(target / MANIFEST, (fetch(write),))
        remove_epoch(epoch_path(directory, epoch), files)
        files.replace(target, epoch_path(directory, epoch))
