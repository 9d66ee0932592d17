"""Uploads WARC files. Each is removed here only once the store has it, complete and compared."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.store.whole_files import PART_BYTES
from bigcrawl.warc.directory_mark import MARK, DirectoryMark
from bigcrawl.warc.files import WARC_SUFFIX, OsFiles, beside, locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from bigcrawl.store.whole_files import WholeFiles

POLL_S: Final = 0.5
REFUSALS_MAX: Final = 2
"""After so many files in a row that a store refuses it is taken to refuse all, and is left in peace for a while."""


class Uploaded(NamedTuple):
    """What became of one file.

    Attributes:
        path: of the WARC file, which is still there if there was a problem.
        bytes: of it and its indexes.
        was_there: whether the store had the WARC file already, from a process that was killed.
        problem: why it stays here; empty if it was moved.
    """

    path: Path
    bytes: int
    was_there: bool
    problem: str = ""


class Uploads:
    """The uploads of a directory's files.

    Args:
        store: where they go, each under its own name.
        known: how names of indexes end; those that are there go with their file.
        required: of these, the indexes without which a file is not uploaded: they are still to be made.
        refusals_max: after how many files in a row that the store refuses it is taken to refuse all.

    Attributes:
        at: the name of the file that was tried last; empty if none was.
        refused: names of the files that the store refused, once all were tried; empty if it refused too many in a row.
    """

    def __init__(
        self, store: WholeFiles, known: Sequence[str], required: Sequence[str], refusals_max: int = REFUSALS_MAX
    ) -> None:
        self._store = store
        self._known = known
        self._required = required
        self._refusals_max = refusals_max
        self._has_problem: set[Path] = set()
        self.at = ""
        self.refused: list[str] = []

    def __repr__(self) -> str:
        return f"<Uploads to {self._store.url}>"

    def of_directory(self, directory: Path, wait_s: float = 0.0, after: str = "") -> Iterator[Uploaded]:
        """Upload file after file, by name, until none is left but those that others have locked or are not indexed.

        A file that the store refuses, as it may one of a name, keeps no others, unless `refusals_max` are refused in a
        row. Whoever begins behind the last of these the next time gets to the others.

        Args:
            directory: others may upload its files at the same time.
            wait_s: how long to wait for those.
            after: the name of a file. Those behind it come first.

        Raises:
            TransientStoreError: the store refuses a file or fails; raised after others were tried. Files that are not
                in the store are still here.
            OSError: the directory cannot be read.
        """
        until_s = time.monotonic() + wait_s
        refused: dict[Path, TransientStoreError] = {}
        while waiting := [path for path in waiting_files(directory) if path not in self._has_problem | refused.keys()]:
            has_done, in_a_row = False, 0
            for path in sorted(waiting, key=lambda path: path.name <= after):
                try:
                    done = self._tried(path)
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
                self._store.note_progress()
                time.sleep(POLL_S)
        if refused:
            self.refused = [path.name for path in refused]
            raise next(iter(refused.values()))

    def _tried(self, path: Path) -> Uploaded | None:
        self.at = path.name
        try:
            done = self.upload(path)
        except OSError as error:
            done = Uploaded(path, 0, was_there=False, problem=f"{path} cannot be moved: {error.strerror or error}")
        if done is not None and done.problem:
            self._has_problem.add(path)
        return done

    def upload(self, path: Path) -> Uploaded | None:
        """Upload a WARC file with its indexes. None if it is locked elsewhere, is gone, or has no index yet.

        Raises:
            TransientStoreError: the store refuses or fails; nothing is removed.
            OSError: the disk fails.

        Cost: reads the file twice, once to send it and once for its checksum; 30 MB of memory.
        """
        if not self._is_indexed(path):  # nor is it locked: whoever makes its indexes may want to begin just now
            return None
        with locked(path) as is_ours:
            if not is_ours or not self._is_indexed(path):
                return None
            indexes = [index for suffix in self._known if (index := beside(path, suffix)).exists()]
            size = sum(each.stat().st_size for each in (path, *indexes))
            if any(self._store.is_same(each.name, each) for each in (path, *indexes)):
                problem = (
                    f"{path} stays here: {self._store.url} has this very file, by a link or mount, and no copy; "
                    "name another store"
                )
                return Uploaded(path, size, was_there=True, problem=problem)
            self._require_store(path.parent)
            held = self._store.holds(path.name, path)
            if held is False:
                problem = (
                    f"{path} stays here: {self._store.url} has another file of this name; if this one was compacted or "
                    "repaired after that was uploaded, remove the older one there, or else rename one of the two"
                )
                return Uploaded(path, size, was_there=True, problem=problem)
            for each in indexes:
                if not self._store.holds(each.name, each):
                    self._put(each)
            if not held:
                self._put(path)
            self._store.check_mark()
            files = OsFiles()
            for each in (*indexes, path):  # a WARC file without index is indexed again: costly, but harmless
                files.remove(each)
            files.sync_directory(path.parent)
        return Uploaded(path, size, was_there=bool(held))

    def _require_store(self, directory: Path) -> None:
        """Require that a store that is a directory is the one that files of this directory were moved to before."""
        directory_mark = DirectoryMark(directory)
        if not self._store.may_be_unmounted or not directory_mark.exists():
            return
        mark = f"{MARK}-{directory_mark.require()}"
        if not directory_mark.has_store(self._store.url):
            self._store.put_mark(mark)
            directory_mark.note_store(self._store.url)
        self._store.require(mark)

    def _is_indexed(self, path: Path) -> bool:
        return all(beside(path, suffix).exists() for suffix in self._required)

    def _put(self, path: Path) -> None:
        store = self._store
        try:
            store.put(path.name, path)
            if store.holds(path.name, path):
                return
            store.remove(path.name)  # it was not there before
        except TransientStoreError:
            _read_through(path, store.note_progress)  # if the disk fails here, other files must not wait for this one
            raise
        _read_through(path, store.note_progress)
        raise TransientStoreError(f"the store {store.url} does not have the bytes of {path.name} that were sent")


def _read_through(path: Path, note_progress: Callable[[], object]) -> None:
    with path.open("rb") as file:
        while file.read(PART_BYTES):
            note_progress()


def waiting_files(directory: Path) -> list[Path]:
    """Return the sealed WARC files of a directory, by name.

    Raises:
        OSError: it cannot be read.
    """
    return sorted(path for path in directory.iterdir() if path.name.endswith(WARC_SUFFIX))
