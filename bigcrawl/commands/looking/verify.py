"""`scrapy frontier verify`: read all files of a crawl and list damaged ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.partition.partition import Partition
from bigcrawl.scheduler.partition.rejected import rejected_entries
from bigcrawl.warc import recovery

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bigcrawl.config import Config


def verify(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Read all files of the crawl and list damaged ones; the exit status is 1 if there are any.

    Raises:
        as `damage_of`.
    """
    damaged = list(damage_of(config))
    text = "\n".join(damaged) if damaged else f"crawl {config.crawl.name}: every file is sound"
    return Result({"damaged": damaged}, text, 1 if damaged else 0)


def damage_of(config: Config) -> Iterator[str]:
    """Yield a line for each damaged file (path, byte, expected value) and each rejected entry. Changes nothing.

    Reads every partition's committed files and every closed WARC file; one that is still being written
    (`.open`) belongs to its writer, or to the next start, which cuts its tail.

    Raises:
        ConfigError: there is no such crawl here.
    """
    directory = config.crawl.crawl_dir
    if not directory.is_dir():
        raise ConfigError(f"{directory} is not there: no crawl {config.crawl.name!r}; see BIGCRAWL_STATE_DIR")
    for partition in sorted(directory.glob("p[0-9]*")):
        yield from map(str, Partition.verify(partition))
    for entry in rejected_entries(directory):
        yield f"{entry.path}: rejected: {entry.problem or 'it can be read by now'}; see scrapy frontier rejected"
    if config.crawl.warc_dir is not None:
        yield from _damaged_warcs(config.crawl.warc_dir)


def _damaged_warcs(directory: Path) -> Iterator[str]:
    for path in sorted(directory.glob("*.warc.gz")):
        records, problem = recovery.verify(path)
        if problem is not None:
            yield f"{path}: {problem}, after {records} good records"
