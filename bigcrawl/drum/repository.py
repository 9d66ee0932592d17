"""A DRUM's directory: its files and their names.

MANIFEST               what is committed (`bigcrawl.drum.drum_manifest`)
offers-<n>             tuples that wait for a merge (`bigcrawl_drum.offers`)
b<hex>/<prefix>-<n>    runs of a bucket (`bigcrawl.drum.bucket`)
gathered-<hex>         scratch: tuples of a bucket (`bigcrawl_drum.gathered`)
answers                scratch: the answers of a merge (`bigcrawl_drum.merge`)
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from bigcrawl.drum.bucket import EMPTY_BUCKET, Bucket, BucketState, Kind
from bigcrawl.drum.drum_manifest import MANIFEST, DrumLog, DrumState, is_storable, read_log
from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from bigcrawl.drum.files import Files
    from bigcrawl.drum.run import RunInfo


class Repository:
    def __init__(self, directory: Path, files: Files, kind: Kind, buckets: int) -> None:
        self.directory = directory
        self.files = files
        self.kind = kind
        self.buckets = buckets

    def open(self, keep: Callable[[str], bool] = lambda _: False) -> tuple[DrumState, DrumLog]:
        """Open or create the directory, and return its committed state and log; remove files that a crash left."""
        if self.files.exists(self.directory / MANIFEST):
            state, log = read_log(self.directory, self.files)
            self._require_same_kind(state)
        else:
            state, log = self._create_state()
        self._remove_unnamed(state, keep)
        # Every time: a power cut may leave a manifest without the directories that are still empty.
        for number in range(self.buckets):
            self.files.make_directory(self.bucket_path(number))
        return state, log

    def bucket(self, number: int, state: BucketState) -> Bucket:
        return Bucket(self.bucket_path(number), self.kind, state, self.files)

    def bucket_path(self, number: int) -> Path:
        return self.directory / f"b{number:03x}"

    def sync_runs(self, written: Iterable[tuple[int, Iterable[RunInfo]]]) -> None:
        for number, runs in written:
            for run in runs:
                self.files.sync_file(self.bucket_path(number) / run.name)
            self.files.sync_directory(self.bucket_path(number))

    def remove_runs(self, obsolete: Iterable[tuple[int, Iterable[RunInfo]]]) -> None:
        for number, runs in obsolete:
            for run in runs:
                with contextlib.suppress(OSError):
                    self.files.unlink(self.bucket_path(number) / run.name)

    def remove(self, *paths: Path) -> None:
        for path in paths:
            with contextlib.suppress(OSError):
                self.files.unlink(path)

    def _require_same_kind(self, state: DrumState) -> None:
        found = (state.kind.prefix, state.kind.value, state.kind.increment, len(state.buckets))
        wanted = (self.kind.prefix, self.kind.value, self.kind.increment, self.buckets)
        if repr(found) != repr(wanted):
            raise ConfigError(
                f"{self.directory}: prefix, value, increment, buckets are {found}, not {wanted}; open it as it was made"
            )

    def _create_state(self) -> tuple[DrumState, DrumLog]:
        if not is_storable(self.kind.value):
            raise ConfigError(f"values of {self.kind.value} cannot be stored; use a packed dtype of numbers and bytes")
        self.files.make_directory(self.directory)
        self.files.sync_directory(self.directory.parent)
        state = DrumState(self.kind, (EMPTY_BUCKET,) * self.buckets)
        log = DrumLog(self.directory, self.files)
        log.begin(state)
        log.sync_name()
        return state, log

    def _remove_unnamed(self, state: DrumState, keep: Callable[[str], bool]) -> None:
        named = {MANIFEST, state.offered.name}
        buckets = {self.bucket_path(number).name for number in range(self.buckets)}
        for name in set(self.files.list_directory(self.directory)) - named - buckets:
            if not keep(name):
                self.files.unlink(self.directory / name)
        for number, bucket in enumerate(state.buckets):
            path = self.bucket_path(number)
            for name in set(self.files.list_directory(path)) - {run.name for run in bucket.runs}:
                self.files.unlink(path / name)
