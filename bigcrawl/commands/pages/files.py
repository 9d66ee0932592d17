from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.commands.result import Result
from bigcrawl.config import warc_indexes
from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.page_index.index_files import CDXJ, PARQUET, index_file, index_path, is_current
from bigcrawl.private_files import FULL
from bigcrawl.warc.files import READ_SUFFIXES, WARC_SUFFIX
from bigcrawl.warc.verification import verify_file

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

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


def index_again(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
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
    """Return the WARC files named in `words`, or if there are none, the complete ones in the crawl's directory."""
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
