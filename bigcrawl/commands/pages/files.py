"""Verifies, indexes and repairs WARC files."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.commands.result import Result
from bigcrawl.config import warc_indexes
from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.page_index.index_files import CDXJ, PARQUET, index_file, index_path, is_current, remove_indexes
from bigcrawl.private_files import FULL
from bigcrawl.warc.files import OPEN_SUFFIX, READ_SUFFIXES, WARC_SUFFIX, OsFiles, locked_file
from bigcrawl.warc.recovery import PerhapsWrittenError, recover_file
from bigcrawl.warc.verification import verify_file

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from bigcrawl.config import Config

_REMEDY: Final = (
    "bring back a copy of it; or scrapy frontier warc repair takes the damage out, puts it aside, and indexes the rest"
)
_INDEX: Final = "scrapy frontier warc index"


def verify_files(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Read WARC files; check each record's length and digests, and whether each index matches its file."""
    damaged: list[dict[str, Any]] = []
    unreadable: list[str] = []
    unindexed: list[str] = []
    outdated: list[str] = []
    records = 0
    paths = files_of(config, words, READ_SUFFIXES)
    for path in paths:
        try:
            sound, places, problem = verify_file(path)
            records += sound
            if problem:
                damaged.append({"file": str(path), "records": sound, "places": places, "problem": problem})
            if not index_path(path).exists():
                unindexed.append(str(path))
            elif not is_current(path):
                outdated.append(str(path))
        except OSError as error:
            unreadable.append(f"{error.filename or path} cannot be read: {error.strerror or error}")
    data = {
        "files": len(paths),
        "records": records,
        "damaged": damaged,
        "unreadable": unreadable,
        "unindexed": unindexed,
        "outdated": outdated,
    }
    lines = [
        f"{one['file']}: {one['problem']}; {one['places']:,} such places, {one['records']:,} good records: {_REMEDY}"
        for one in damaged
    ]
    lines += unreadable
    lines += [f"{path}: its index does not match it, or is damaged: {_INDEX} makes it again" for path in outdated]
    if unindexed:
        lines.append(f"{len(unindexed):,} files have no index: {_INDEX} makes them")
    lines.append(f"{len(paths):,} files, {len(damaged):,} of them damaged; {records:,} good records")
    return Result(data, "\n".join(lines), 1 if damaged or unreadable or outdated else 0)


def reindex_files(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Make the indexes of WARC files, replacing existing ones. An unreadable file does not stop the others."""
    kinds = config.crawl.warc_indexes or (CDXJ,)
    if opts.parquet:
        kinds = warc_indexes((*kinds, PARQUET))
    paths = files_of(config, words, READ_SUFFIXES)
    pages, problems, unreadable, busy = 0, [], [], []
    for path in paths:
        try:
            indexed = index_file(path, kinds, config.crawl.warc_mode)
        except OSError as error:
            problem = f"{path} cannot be indexed: {error.strerror or error}"
            if error.errno in FULL:
                raise TransientStoreError(problem) from error
            unreadable.append(problem)
            continue
        if indexed is None:
            busy.append(str(path))
            continue
        pages += indexed.pages
        if indexed.problem:
            problems.append(f"{indexed.problem}; the index has all others: {_REMEDY}")
    made = len(paths) - len(busy) - len(unreadable)
    data = {"files": made, "pages": pages, "damaged": problems, "unreadable": unreadable, "busy": busy}
    lines = [*problems, *unreadable, *(f"{path}: somebody else is indexing it" for path in busy)]
    lines.append(f"{made:,} files indexed ({', '.join(kinds)}), {pages:,} pages")
    return Result(data, "\n".join(lines), 1 if problems or unreadable else 0)


def files_of(config: Config, words: Sequence[str], suffixes: tuple[str, ...] = (WARC_SUFFIX,)) -> list[Path]:
    """Return the WARC files named in `words`; without names, the complete ones in the crawl's directory."""
    for word in words:
        if Path(word).is_dir():
            raise ConfigError(f"{word} is a directory: name files in it, or none with -s BIGCRAWL_WARC_DIR={word}")
        if not Path(word).exists():
            raise ConfigError(f"there is no file {word}; name none to take all files of BIGCRAWL_WARC_DIR")
        if not word.endswith(suffixes) or not Path(word).is_file():
            ends = " or ".join(suffixes)
            raise ConfigError(f"{word} is not a file that ends in {ends}; name none to take all files")
    return [Path(word) for word in words] or sorted(directory_of(config).glob(f"*{WARC_SUFFIX}"))


def directory_of(config: Config) -> Path:
    directory = config.crawl.warc_dir
    if directory is None or not directory.is_dir():
        raise ConfigError(
            f"there is no directory {directory or ''}: say where WARC files are with -s BIGCRAWL_WARC_DIR="
        )
    return directory


def repair_files(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Remove the damage from complete WARC files, close the open ones of dead writers, and index them.

    Open files are closed only if no files are named. Left alone are files in use; open files of other machines until
    they are quiet, because their locks might not be visible here; and complete records with a wrong digest. If the disk
    is full, a file is unchanged, or lacks only damaged bytes.
    """
    repair = _FileRepair(config)
    were_open = [] if words else sorted(directory_of(config).glob(f"*{WARC_SUFFIX}{OPEN_SUFFIX}"))
    for path in files_of(config, words):
        repair.repair_sealed(path)
    for path in were_open:
        repair.repair_open(path)
    repaired, left = repair.repaired, repair.left
    lines = [f"{one['file']}: {one['records']:,} records kept, {one['cut_bytes']:,} bytes cut off" for one in repaired]
    lines += left
    aside = "; bytes cut off are beside them, as .damaged, unless all were zero" if repaired else ""
    lines.append(f"{len(repaired):,} files repaired{aside}")
    return Result({"repaired": repaired, "left": left}, "\n".join(lines), 1 if left else 0)


class _FileRepair:
    """Repairs files, and records the repaired ones and why others were not.

    Raises TransientStoreError if the disk is full.
    """

    def __init__(self, config: Config) -> None:
        self._files = OsFiles(config.crawl.warc_mode)
        self._kinds = config.crawl.warc_indexes or (CDXJ,)
        self._mode = config.crawl.warc_mode
        self.repaired: list[dict[str, Any]] = []
        self.left: list[str] = []

    def repair_sealed(self, path: Path) -> None:
        with self._recording_problems(path):
            if not verify_file(path).problem:
                return
            opened, problem = _rename_to_open(path, self._files)
            if problem:
                self.left.append(problem)
            else:
                self._recover_again(opened, path)

    def repair_open(self, path: Path) -> None:
        """Close a file whose writer has died, unless it is in use or was closed meanwhile."""
        with self._recording_problems(path):
            self._recover_file(path)

    def _recover_again(self, opened: Path, path: Path) -> None:
        """Recover a complete file; if that fails, restore its name."""
        try:
            if not self._recover_file(opened, was_complete=True):
                self.left.append(f"{opened}: somebody else has it open")
        except OSError:
            with suppress(OSError):
                if not path.exists():
                    self._files.rename(opened, path)
            raise

    def _recover_file(self, opened: Path, *, was_complete: bool = False) -> bool:
        """Recover a file as a node does when it starts, and index it. Return False if another process has it."""
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
