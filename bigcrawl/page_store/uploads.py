"""Uploads WARC files: each is in the store, whole and compared, before it is removed here."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.store.whole_files import PART_BYTES
from bigcrawl.warc.files import WARC_SUFFIX, OsFiles, beside, locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from bigcrawl.store.whole_files import WholeFiles

POLL_S: Final = 0.5


class Uploaded(NamedTuple):
    """What became of one file.

    Attributes:
        path: where the WARC file was, or is if there was a problem.
        bytes: of it and its indexes.
        was_there: whether the store had the WARC file already, from a process that was killed.
        problem: why it stays here; empty if it does not.
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
    """

    def __init__(self, store: WholeFiles, known: Sequence[str], required: Sequence[str]) -> None:
        self._store = store
        self._known = known
        self._required = required
        self._has_problem: set[Path] = set()

    def __repr__(self) -> str:
        return f"<Uploads to {self._store.url}>"

    def of_directory(self, directory: Path, wait_s: float = 0.0) -> Iterator[Uploaded]:
        """Upload file after file, by name, until none is left but those that others have locked or are not indexed.

        A file that the store refuses, as it may one of a name, keeps no others; two in a row say that it takes none.

        Args:
            directory: others may upload its files at the same time.
            wait_s: how long to wait for those.

        Raises:
            TransientStoreError: the store refuses a file or fails, told once others were tried; all files that are not
                in it are here.
            OSError: the directory cannot be read.
        """
        until_s = time.monotonic() + wait_s
        refused: dict[Path, TransientStoreError] = {}
        while waiting := [path for path in waiting_files(directory) if path not in self._has_problem | refused.keys()]:
            has_done, was_refused = False, False
            for path in waiting:
                try:
                    done = self._tried(path)
                except TransientStoreError as error:
                    if was_refused:
                        raise
                    refused[path], was_refused = error, True
                    continue
                if done is not None:
                    has_done, was_refused = True, False
                    yield done
            if not has_done:
                if time.monotonic() >= until_s:
                    break
                self._store.note_progress()
                time.sleep(POLL_S)
        if refused:
            raise next(iter(refused.values()))

    def _tried(self, path: Path) -> Uploaded | None:
        try:
            done = self.upload(path)
        except OSError as error:
            done = Uploaded(path, 0, was_there=False, problem=f"{path} cannot be read: {error.strerror or error}")
        if done is not None and done.problem:
            self._has_problem.add(path)
        return done

    def upload(self, path: Path) -> Uploaded | None:
        """Upload a WARC file with its indexes; None if others have it locked, it is gone, or has no index yet.

        Raises:
            TransientStoreError: the store refuses or fails; nothing is removed.
            OSError: the disk fails.

        Cost: reads the file twice, once to send it and once for its checksum; 30 MB of memory.
        """
        with locked(path) as is_ours:
            if not is_ours or not all(beside(path, suffix).exists() for suffix in self._required):
                return None
            indexes = [index for suffix in self._known if (index := beside(path, suffix)).exists()]
            size = sum(each.stat().st_size for each in (path, *indexes))
            if any(self._store.is_same(each.name, each) for each in (path, *indexes)):
                problem = (
                    f"{path} stays here: {self._store.url} has no copy of it, but the very file; name another store"
                )
                return Uploaded(path, size, was_there=True, problem=problem)
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
            files = OsFiles()
            for each in (*indexes, path):  # a WARC file without index is indexed again: costly, and no harm
                files.remove(each)
            files.sync_directory(path.parent)
        return Uploaded(path, size, was_there=bool(held))

    def _put(self, path: Path) -> None:
        store = self._store
        try:
            store.put(path.name, path)
            if store.holds(path.name, path):
                return
            store.remove(path.name)  # it was not there before
        except TransientStoreError:
            _read_through(path, store.note_progress)  # or it is the disk, which must not keep other files
            raise
        _read_through(path, store.note_progress)
        raise TransientStoreError(f"the store {store.url} has not the bytes of {path.name} that were sent")


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
