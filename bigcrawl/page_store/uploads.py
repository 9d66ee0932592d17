"""Uploads WARC files. A local file is removed only once the store has it, complete and compared."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.store.whole_files import PART_BYTES
from bigcrawl.warc.directory_mark import MARK, DirectoryMark
from bigcrawl.warc.files import WARC_SUFFIX, OsFiles, companion_path, locked_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from bigcrawl.store.whole_files import StoredFiles

POLL_S: Final = 0.5
REFUSALS_MAX: Final = 2
"""After this many refused files in a row, the store is assumed to refuse all."""


class UploadResult(NamedTuple):
    """The result for one file, which stays here if there was a problem; `was_there` if the store had it already."""

    path: Path
    bytes: int
    was_there: bool
    problem: str = ""


class DirectoryUploads:
    """Uploads a directory's files, each after its `required` indexes; `refused` are the refused files."""

    def __init__(
        self, store: StoredFiles, known: Sequence[str], required: Sequence[str], refusals_max: int = REFUSALS_MAX
    ) -> None:
        self._store = store
        self._known = known
        self._required = required
        self._refusals_max = refusals_max
        self._has_problem: set[Path] = set()
        self.at = ""
        self.refused: list[str] = []

    def of_directory(self, directory: Path, wait_s: float = 0.0, after: str = "") -> Iterator[UploadResult]:
        """Upload files, starting after the file `after`; wait `wait_s` for locked ones.

        Raises TransientStoreError last.
        """
        until_s = time.monotonic() + wait_s
        refused: dict[Path, TransientStoreError] = {}
        while waiting := [path for path in waiting_files(directory) if path not in self._has_problem | refused.keys()]:
            has_done, in_a_row = False, 0
            for path in sorted(waiting, key=lambda path: path.name <= after):
                try:
                    done = self._try_upload(path)
                except TransientStoreError as error:
                    refused[path], in_a_row = error, in_a_row + 1
                    if in_a_row >= self._refusals_max:
                        raise
                    continue
                if done is not None:
                    has_done, in_a_row = True, 0
                    yield done
            if not has_done:
                if time.monotonic() >= until_s:
                    break
                self._store.record_progress()
                time.sleep(POLL_S)
        if refused:
            self.refused = [path.name for path in refused]
            raise next(iter(refused.values()))

    def _try_upload(self, path: Path) -> UploadResult | None:
        self.at = path.name
        try:
            done = self.upload(path)
        except OSError as error:
            done = UploadResult(path, 0, was_there=False, problem=f"{path} cannot be moved: {error.strerror or error}")
        if done is not None and done.problem:
            self._has_problem.add(path)
        return done

    def upload(self, path: Path) -> UploadResult | None:
        """Upload a WARC file with its indexes; return None if it is locked, gone, or not indexed yet."""
        if not self._is_indexed(path):  # without locking it, which would stop an indexer
            return None
        with locked_file(path) as is_ours:
            if not is_ours or not self._is_indexed(path):
                return None
            indexes = [index for suffix in self._known if (index := companion_path(path, suffix)).exists()]
            size = sum(each.stat().st_size for each in (path, *indexes))
            if any(self._store.is_same(each.name, each) for each in (path, *indexes)):
                problem = (
                    f"{path} stays here: {self._store.url} has this very file, by a link or mount, and no copy; "
                    "name another store"
                )
                return UploadResult(path, size, was_there=True, problem=problem)
            self._require_store(path.parent)
            held = self._store.holds(path.name, path)
            if held is False:
                problem = (
                    f"{path} stays here: {self._store.url} has another file of this name; if this one was compacted or "
                    "repaired after that was uploaded, remove the older one there, or else rename one of the two"
                )
                return UploadResult(path, size, was_there=True, problem=problem)
            for each in indexes:
                if not self._store.holds(each.name, each):
                    self._store_file(each)
            if not held:
                self._store_file(path)
            self._store.check_mark()
            files = OsFiles()
            for each in (*indexes, path):  # a crash between them only costs a new index
                files.remove(each)
            files.sync_directory(path.parent)
        return UploadResult(path, size, was_there=bool(held))

    def _require_store(self, directory: Path) -> None:
        directory_mark = DirectoryMark(directory)
        if not self._store.may_be_unmounted or not directory_mark.exists():
            return
        mark = f"{MARK}-{directory_mark.require_id()}"
        if not directory_mark.has_store(self._store.url):
            self._store.put_mark(mark)
            directory_mark.record_store(self._store.url)
        self._store.require_mark(mark)

    def _is_indexed(self, path: Path) -> bool:
        return all(companion_path(path, suffix).exists() for suffix in self._required)

    def _store_file(self, path: Path) -> None:
        store = self._store
        try:
            store.put(path.name, path)
            if store.holds(path.name, path):
                return
            store.remove(path.name)
        except TransientStoreError:
            _read_through(path, store.record_progress)  # raises if this disk fails
            raise
        _read_through(path, store.record_progress)
        raise TransientStoreError(f"the store {store.url} does not have the bytes of {path.name} that were sent")


def _read_through(path: Path, record_progress: Callable[[], object]) -> None:
    with path.open("rb") as file:
        while file.read(PART_BYTES):
            record_progress()


def waiting_files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.name.endswith(WARC_SUFFIX))
