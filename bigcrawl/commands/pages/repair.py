from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from bigcrawl.commands.pages.files import directory_of, files_of
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import TransientStoreError
from bigcrawl.page_index.index_files import CDXJ, index_file, remove_indexes
from bigcrawl.private_files import FULL
from bigcrawl.warc.files import OPEN_SUFFIX, WARC_SUFFIX, OsFiles, locked_file
from bigcrawl.warc.recovery import PerhapsWrittenError, recover_file
from bigcrawl.warc.verification import verify_file

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bigcrawl.config import Config


def repair_files(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Remove the damage from complete WARC files, close the open ones of dead writers, and index them.

    Open files are closed only if no files are named. Left alone are files in use; open files of other machines until
    they are quiet, because their locks might not be visible here; and complete records with a wrong digest. If the disk
    is full, a file is unchanged, or lacks only damaged bytes.
    """
    repair = _FileRepair(config)
    were_open = [] if words else sorted(directory_of(config).glob(f"*{WARC_SUFFIX}{OPEN_SUFFIX}"))
    for path in files_of(config, words):
        repair.of_sealed(path)
    for path in were_open:
        repair.of_open(path)
    repaired, left = repair.repaired, repair.left
    lines = [f"{one['file']}: {one['records']:,} records kept, {one['cut_bytes']:,} bytes cut off" for one in repaired]
    lines += left
    aside = "; bytes cut off are beside them, as .damaged, unless all were zero" if repaired else ""
    lines.append(f"{len(repaired):,} files repaired{aside}")
    return Result({"repaired": repaired, "left": left}, "\n".join(lines), 1 if left else 0)


class _FileRepair:
    """Repairs files; records which, and why others were left. Raises TransientStoreError if the disk is full."""

    def __init__(self, config: Config) -> None:
        self._files = OsFiles(config.crawl.warc_mode)
        self._kinds = config.crawl.warc_indexes or (CDXJ,)
        self._mode = config.crawl.warc_mode
        self.repaired: list[dict[str, Any]] = []
        self.left: list[str] = []

    def of_sealed(self, path: Path) -> None:
        with self._recording_problems(path):
            if not verify_file(path).problem:
                return
            opened, problem = _rename_to_open(path, self._files)
            if problem:
                self.left.append(problem)
            else:
                self._recover_again(opened, path)

    def of_open(self, path: Path) -> None:
        """Close a file whose writer has died, unless it is in use or was closed meanwhile."""
        with self._recording_problems(path):
            self._recover_file(path)

    def _recover_again(self, opened: Path, path: Path) -> None:
        """Recover a file that was complete; if that fails, give it back its name."""
        try:
            if not self._recover_file(opened, was_complete=True):
                self.left.append(f"{opened}: somebody else has it open")
        except OSError:
            with suppress(OSError):
                if not path.exists():
                    self._files.rename(opened, path)
            raise

    def _recover_file(self, opened: Path, *, was_complete: bool = False) -> bool:
        """Recover a file as a node's start does, and index it. Return False if another process has it."""
        found = recover_file(opened, remove_indexes=remove_indexes, files=self._files, was_complete=was_complete)
        if found is None:
            return False
        path = opened.with_name(opened.name.removesuffix(OPEN_SUFFIX))
        self.repaired.append({"file": str(path), "records": found.kept_records, "cut_bytes": found.cut_bytes})
        if found.kept_records:
            index_file(path, self._kinds, self._mode)
            if wrong := verify_file(path).problem:
                self.left.append(f"{path}: {wrong}; bring back a copy of it")
        return True

    @contextmanager
    def _recording_problems(self, path: Path) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:  # an uploader has moved it, or a node has closed it
            return
        except OSError as error:
            problem = f"{path} cannot be repaired: {error.strerror or error}"
            if error.errno in FULL:
                raise TransientStoreError(problem) from error
            is_as_it_was = path.exists() or isinstance(error, PerhapsWrittenError)
            self.left.append(
                problem if is_as_it_was else f"{problem}; it ends in {OPEN_SUFFIX} now, for the next start"
            )


def _rename_to_open(path: Path, files: OsFiles) -> tuple[Path, str]:
    """Give a complete file the suffix ``.open`` again. Return its new path, and the problem, if any."""
    opened = path.with_name(path.name + OPEN_SUFFIX)
    with locked_file(path) as is_ours:
        if not is_ours:
            return opened, f"{path}: another process is at work on it, or it is gone; call again"
        if opened.exists():
            return opened, f"{path}: {opened.name} exists too; rename or remove one of the two"
        files.rename(path, opened)
    return opened, ""
