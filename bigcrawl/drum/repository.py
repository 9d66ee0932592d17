"""A DRUM's directory: its files and their names.

MANIFEST                          what is committed (`bigcrawl.drum.drum_manifest`)
keys-<n>, aux-<n>, answers-<n>    spill n (`bigcrawl.drum.spills`)
b<hex>/<prefix>-<n>               runs of a bucket (`bigcrawl.drum.bucket`)
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from bigcrawl.drum.bucket import EMPTY_BUCKET, Bucket
from bigcrawl.drum.drum_manifest import MANIFEST, DrumLog, DrumState, is_storable, read_log
from bigcrawl.drum.spills.answers import answers_path, read_blocks
from bigcrawl.drum.spills.sections import ANSWERS_MAGIC, KEYS_MAGIC, SectionReader
from bigcrawl.drum.spills.spill import aux_path, keys_path
from bigcrawl.exceptions import ConfigError, CorruptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from bigcrawl.drum.bucket import BucketState, Kind
    from bigcrawl.drum.files import Files
    from bigcrawl.drum.run import RunInfo
    from bigcrawl.drum.spills.spill import Spill, TupleLayout


class Repository:
    def __init__(self, directory: Path, files: Files, layout: TupleLayout, kind: Kind) -> None:
        self.directory = directory
        self.files = files
        self.layout = layout
        self.kind = kind

    def __repr__(self) -> str:
        return f"<Repository {self.directory} buckets={self.layout.buckets}>"

    def open(self, keep: Callable[[str], bool] = lambda _: False) -> tuple[DrumState, DrumLog]:
        """Return the committed state and its log, from a new or existing directory; remove files that a crash left.

        `keep` returns whether a file that the manifest does not name may stay.
        """
        if self.files.exists(self.directory / MANIFEST):
            state, log = read_log(self.directory, self.files)
            self._require(state)
        else:
            state, log = self._create()
        self._remove_unnamed(state, keep)
        # Every time: a power cut may leave a manifest without the directories that are still empty.
        for number in range(self.layout.buckets):
            self.files.make_directory(self.bucket_path(number))
        return state, log

    def bucket(self, number: int, state: BucketState) -> Bucket:
        return Bucket(self.bucket_path(number), self.kind, state, self.files)

    def bucket_path(self, number: int) -> Path:
        return self.directory / f"b{number:03x}"

    def keys_reader(self, spill: Spill) -> SectionReader:
        path = keys_path(self.directory, spill.number)
        return SectionReader(self.files, path, KEYS_MAGIC, self.layout.buckets, spill.tuples)

    def answers_reader(self, spill: Spill) -> SectionReader:
        path = answers_path(self.directory, spill.number)
        return SectionReader(self.files, path, ANSWERS_MAGIC, self.layout.buckets, spill.tuples)

    def sync_spills(self, spills: Iterable[Spill]) -> None:
        for spill in spills:
            self.files.sync_file(keys_path(self.directory, spill.number))
            self.files.sync_file(aux_path(self.directory, spill.number))
        self.files.sync_directory(self.directory)

    def sync_runs(self, written: Iterable[tuple[int, Iterable[RunInfo]]]) -> None:
        for number, runs in written:
            for run in runs:
                self.files.sync_file(self.bucket_path(number) / run.name)
            self.files.sync_directory(self.bucket_path(number))

    def remove_spill(self, spill: Spill) -> None:
        """Delete a spill's files; opening the directory deletes those that cannot be deleted now."""
        for path_of in (keys_path, aux_path, answers_path):
            with contextlib.suppress(OSError):
                self.files.unlink(path_of(self.directory, spill.number))

    def remove_runs(self, obsolete: Iterable[tuple[int, Iterable[RunInfo]]]) -> None:
        for number, runs in obsolete:
            for run in runs:
                with contextlib.suppress(OSError):
                    self.files.unlink(self.bucket_path(number) / run.name)

    def verify_spill(self, spill: Spill, answered: int) -> list[CorruptionError]:
        problems: list[CorruptionError] = []
        steps: list[Callable[[], Iterable[object]]] = [
            lambda: self.keys_reader(spill).read_all(),
            lambda: read_blocks(self.files, self.directory, spill, self.layout),
        ]
        if spill.asks and spill.end <= answered:
            steps.append(lambda: self.answers_reader(spill).read_all())
        for step in steps:
            try:
                for _ in step():
                    pass
            except CorruptionError as error:
                problems.append(error)
            except OSError as error:
                problems.append(CorruptionError(error.filename or self.directory, 0, "a readable file", error))
        return problems

    def _require(self, state: DrumState) -> None:
        found = (state.kind.prefix, state.kind.value, state.kind.increment, len(state.buckets))
        wanted = (self.kind.prefix, self.kind.value, self.kind.increment, self.layout.buckets)
        if repr(found) != repr(wanted):
            raise ConfigError(
                f"{self.directory}: prefix, value, increment, buckets are {found}, not {wanted}; open it as it was made"
            )

    def _create(self) -> tuple[DrumState, DrumLog]:
        if not is_storable(self.kind.value):
            raise ConfigError(f"values of {self.kind.value} cannot be stored; use a packed dtype of numbers and bytes")
        self.files.make_directory(self.directory)
        self.files.sync_directory(self.directory.parent)
        state = DrumState(self.kind, (EMPTY_BUCKET,) * self.layout.buckets)
        log = DrumLog(self.directory, self.files)
        log.begin(state)
        log.sync_name()
        return state, log

    def _remove_unnamed(self, state: DrumState, keep: Callable[[str], bool]) -> None:
        named = {MANIFEST}
        for spill in state.spills:
            named.update(path_of(self.directory, spill.number).name for path_of in (keys_path, aux_path))
            if spill.end <= state.answered:
                named.add(answers_path(self.directory, spill.number).name)
        buckets = {self.bucket_path(number).name for number in range(self.layout.buckets)}
        for name in set(self.files.list_directory(self.directory)) - named - buckets:
            if not keep(name):
                self.files.unlink(self.directory / name)
        for number, bucket in enumerate(state.buckets):
            path = self.bucket_path(number)
            for name in set(self.files.list_directory(path)) - {run.name for run in bucket.runs}:
                self.files.unlink(path / name)
