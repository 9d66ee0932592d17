"""`scrapy frontier warc compact`, which drops bodies that are stored more than once in WARC files.

For each file that has such copies:

    1. it is rewritten in a directory beside it, with references in place of the copies;
    2. the new file is checked record by record, synced, and indexed;
    3. the indexes of the old file are removed, the new file takes its name, and then the new indexes theirs.

A crash leaves either the old file or the new one, complete, at worst without an index, which the next start makes. The
next call empties the directory beside it. Records that refer to a copy are changed in an earlier round, so that no
record ever refers to one without a body. Damaged files, other files in the directory, and the bodies to which they
refer stay unchanged.
"""

from __future__ import annotations

import os
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.commands.pages.files import files_of
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError, ContractError, TransientStoreError
from bigcrawl.page_index.copies import CopyFinder, by_file
from bigcrawl.page_index.index_files import SUFFIXES, index_file, index_path
from bigcrawl.private_files import make_private_directory
from bigcrawl.warc.files import OPEN_SUFFIX, WARC_SUFFIX, OsFiles, locked_directory, locked_file
from bigcrawl.warc.rewriting import rewrite_file
from bigcrawl.warc.verification import verify_file

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bigcrawl.config import Config
    from bigcrawl.page_index.sorted_lines import SortedLines
    from bigcrawl.warc.rewriting import NewReference

_ROOM: Final = ".compacting"


def compact_files(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Keep one of several equal bodies in the named files, and print the saved bytes."""
    paths = files_of(config, words)
    if not paths:
        return Result({"files": 0}, "no complete files")
    directory = paths[0].parent
    if any(path.parent != directory for path in paths):
        raise ConfigError("scrapy frontier warc compact got files of several directories: call it once for each")
    try:
        with _working_directory(directory) as room:
            done = _Compaction(room, paths, config.crawl.warc_indexes)
            done.run()
    except OSError as error:
        raise TransientStoreError(f"{directory} cannot be compacted: {error.strerror or error}") from error
    return done.result()


class _Compaction:
    def __init__(self, room: Path, paths: Sequence[Path], kinds: Sequence[str]) -> None:
        self._room = room
        self._paths = paths
        self._kinds = kinds
        self._damaged: dict[Path, str] = {}
        self._left: dict[Path, str] = {}
        self._written: set[Path] = set()
        self._copies = self._redirected = self._saved = 0

    def run(self) -> None:
        with closing(self._find_copies()) as found:
            self._redirected = self._change_all(found.redirected)
            if not self._redirected and not self._left:
                self._copies = self._change_all(found.referred)
        if self._redirected and not self._left:
            with closing(self._find_copies()) as found:
                self._copies = self._change_all(found.referred)

    def result(self) -> Result:
        problems = [*self._damaged.values(), *self._left.values()]
        data: dict[str, Any] = {
            "files": len(self._paths),
            "written": len(self._written),
            "copies": self._copies,
            "redirected": self._redirected,
            "saved_bytes": self._saved,
            "problems": problems,
        }
        told = (
            f"{len(self._paths):,} files, {len(self._written):,} of them rewritten: {self._copies:,} bodies became "
            f"references to equal ones, which saves {self._saved:,} bytes"
        )
        return Result(data, "\n".join([*problems, told]), 1 if problems else 0)

    def _find_copies(self) -> CopyFinder:
        copies = CopyFinder(self._room)
        for number, path in enumerate(self._paths):
            try:
                problem = verify_file(path).problem
                if not problem:
                    copies.add_file(number, path)
                else:
                    copies.keep_originals(path)
            except FileNotFoundError:  # an uploader has moved it
                continue
            if problem:
                self._damaged[path] = f"{path}: {problem}; it stays, and no further record will refer to it"
        for path in self._other_files():
            with suppress(FileNotFoundError):
                copies.keep_originals(path)
        copies.find_copies()
        return copies

    def _other_files(self) -> list[Path]:
        """Return the directory's other files, including unfinished ones. They must not change."""
        named = {path.name for path in self._paths}
        ends = (WARC_SUFFIX + OPEN_SUFFIX, WARC_SUFFIX)
        return [path for end in ends for path in self._paths[0].parent.glob(f"*{end}") if path.name not in named]

    def _change_all(self, lines: SortedLines) -> int:
        return sum(self._rewrite_file(self._paths[number], references) for number, references in by_file(lines))

    def _rewrite_file(self, path: Path, references: Iterator[NewReference]) -> int:
        """Rewrite a file, check the new one, and put it in the old one's place; return how many records changed."""
        with locked_file(path) as is_ours:
            if not is_ours:
                self._left[path] = f"{path}: another process is at work on it, or it is gone; call again"
                return 0
            before = path.stat()
            files = OsFiles(before.st_mode & 0o777)
            new = self._room / path.name
            fd = files.create(new)
            with os.fdopen(fd, "wb") as file:
                changed, missed = rewrite_file(path, file, references)
                file.flush()
                files.sync(fd)
            if missed:
                self._left[path] = f"{path}: {missed:,} records have heads of more than 1 MiB, and stay as they are"
            if (sound := verify_file(new)) != verify_file(path):
                raise ContractError(
                    f"{path} has {sound} after rewriting instead of {verify_file(path)}; it stays unchanged"
                )
            if changed:
                saved = before.st_size - new.stat().st_size
                self._put_in_place(new, path, files)
                self._written.add(path)
                self._saved += saved
            else:
                files.remove(new)
        return changed

    def _put_in_place(self, new: Path, path: Path, files: OsFiles) -> None:
        kinds = [kind for kind in SUFFIXES if kind in self._kinds or index_path(path, kind).exists()]
        index_file(new, kinds, path.stat().st_mode & 0o777)
        for kind in SUFFIXES:  # no index of the old file may be beside the new one
            files.remove(index_path(path, kind))
        files.sync_directory(path.parent)
        with locked_file(new):  # uploaders and indexers leave it alone until its indexes have their names
            files.rename(new, path)
            for kind in kinds:
                files.rename(index_path(new, kind), index_path(path, kind))


@contextmanager
def _working_directory(directory: Path) -> Iterator[Path]:
    """Create an empty working directory beside the files; raise ConfigError if another call is using it."""
    room = directory / _ROOM
    make_private_directory(room)
    with locked_directory(room) as is_ours:
        if not is_ours:
            raise ConfigError(f"another scrapy frontier warc compact is running in {directory}")
        _empty_directory(room)
        try:
            yield room
        finally:
            _empty_directory(room)


def _empty_directory(room: Path) -> None:
    for path in room.iterdir():
        path.unlink()
