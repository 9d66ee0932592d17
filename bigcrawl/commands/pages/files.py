"""`scrapy frontier warc verify` and `index`: what is wrong with WARC files, and their indexes made anew."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.commands.result import Result
from bigcrawl.config import warc_indexes
from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.page_index.index_files import CDXJ, PARQUET, index_file, index_path
from bigcrawl.warc.files import WARC_SUFFIX
from bigcrawl.warc.verification import verify

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config

_REMEDY: Final = (
    f"bring back a copy of it; or rename it to end in {WARC_SUFFIX}.open, and the next start keeps what comes before, "
    "and indexes that"
)


def verify_files(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Read WARC files and check each record's length and digests.

    Raises:
        ConfigError: a file is not there.
        TransientStoreError: a file cannot be read.
    """
    damaged: list[dict[str, Any]] = []
    unindexed: list[str] = []
    records = 0
    paths = files_of(config, words)
    for path in paths:
        try:
            sound, problem = verify(path)
        except OSError as error:
            raise TransientStoreError(f"{path} cannot be read: {error.strerror}") from error
        records += sound
        if problem is not None:
            damaged.append({"file": str(path), "records": sound, "problem": problem})
        if not index_path(path).exists():
            unindexed.append(str(path))
    data = {"files": len(paths), "records": records, "damaged": damaged, "unindexed": unindexed}
    lines = [f"{one['file']}: {one['problem']}, after {one['records']:,} good records: {_REMEDY}" for one in damaged]
    if unindexed:
        lines.append(f"{len(unindexed):,} files have no index: scrapy frontier warc index makes them")
    lines.append(f"{len(paths):,} files, {len(damaged):,} of them damaged; {records:,} good records")
    return Result(data, "\n".join(lines), 1 if damaged else 0)


def index_again(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Make the indexes of WARC files, in the place of those that are there.

    Raises:
        ConfigError: a file is not there, or there is no pyarrow.
        TransientStoreError: the disk refuses; files before that are indexed.
    """
    kinds = config.crawl.warc_indexes or (CDXJ,)
    if opts.parquet:
        kinds = warc_indexes((*kinds, PARQUET))
    paths = files_of(config, words)
    pages, problems, busy = 0, [], []
    for path in paths:
        try:
            indexed = index_file(path, kinds, config.crawl.warc_mode)
        except OSError as error:
            raise TransientStoreError(f"{path} cannot be indexed: {error.strerror or error}") from error
        if indexed is None:
            busy.append(str(path))
            continue
        pages += indexed.pages
        if indexed.problem:
            problems.append(f"{indexed.problem}; the index has what comes before: {_REMEDY}")
    data = {"files": len(paths) - len(busy), "pages": pages, "damaged": problems, "busy": busy}
    lines = [*problems, *(f"{path}: somebody else is indexing it" for path in busy)]
    lines.append(f"{len(paths) - len(busy):,} files indexed ({', '.join(kinds)}), {pages:,} pages")
    return Result(data, "\n".join(lines), 1 if problems else 0)


def files_of(config: Config, words: Sequence[str]) -> list[Path]:
    """Return the WARC files that are named, or else those of the crawl's directory that are complete, by name.

    Raises:
        ConfigError: one is not there, or is no WARC file; or there is no directory.
    """
    for word in words:
        if not word.endswith(WARC_SUFFIX) or not Path(word).is_file():
            raise ConfigError(f"{word} is no file that ends in {WARC_SUFFIX}; without a name, all files are meant")
    return [Path(word) for word in words] or sorted(directory_of(config).glob(f"*{WARC_SUFFIX}"))


def directory_of(config: Config) -> Path:
    """Return the directory of the crawl's WARC files.

    Raises:
        ConfigError: there is none.
    """
    directory = config.crawl.warc_dir
    if directory is None or not directory.is_dir():
        raise ConfigError(
            f"there is no directory {directory or ''}: say where WARC files are with -s BIGCRAWL_WARC_DIR="
        )
    return directory
