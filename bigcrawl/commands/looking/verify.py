"""`scrapy frontier verify`: read all files of a crawl and list damaged ones, and partitions that have none."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bigcrawl.commands.opened_crawl import opened
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.redisdb.embedded import running_url
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.scheduler.crawl.survey import survey
from bigcrawl.scheduler.partition.directory import verify_newest
from bigcrawl.scheduler.partition.fold.rejected import rejected_entries
from bigcrawl.warc.verification import verify as verify_warc

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bigcrawl.config import Config


def verify(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Read all files of the crawl and list damaged ones; the exit status is 1 if there are any.

    If Redis answers, partitions that nodes have set apart because their files are nowhere left are listed too, and
    whether each URL that was seen is in some place.

    Raises:
        as `damage_of`.
    """
    damaged = [*damage_of(config), *_missing(config)]
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
        yield from map(str, verify_newest(partition))
    for entry in rejected_entries(directory):
        yield f"{entry.path}: rejected: {entry.problem or 'it can be read by now'}; see scrapy frontier rejected"
    if config.crawl.warc_dir is not None:
        yield from _damaged_warcs(config.crawl.warc_dir)


def _missing(config: Config) -> list[str]:
    """Return a line for each partition that is marked as missing; none if Redis is away or does not know the crawl."""
    url = config.crawl.redis_url or running_url(config.crawl.crawl_dir / "redis")
    try:
        return asyncio.run(_read_missing(config, url)) if url else []
    except BigcrawlError:  # the files were verified; what Redis says goes beyond them
        return []


async def _read_missing(config: Config, url: str) -> list[str]:
    async with opened(config, url) as crawl:
        states = [partition_keys(config.crawl.name, partition).state for partition in range(crawl.partitions)]
        marks = await crawl.client.commands([("HGET", state, "missing") for state in states])
        seen = await survey(crawl.client, config.crawl.name, crawl.partitions)
    uncounted = f"{seen.urls_uncounted:,} URLs were seen and are in no place: please report this"
    return [
        f"{config.crawl.crawl_dir / f'p{partition:04d}'}: its files are nowhere left: bring them back, start the node "
        f"that has them, or see BIGCRAWL_LOST_PARTITIONS"
        for partition, mark in enumerate(marks)
        if int(mark or 0)
    ] + [uncounted] * (seen.urls_uncounted > 0)


def _damaged_warcs(directory: Path) -> Iterator[str]:
    for path in sorted(directory.glob("*.warc.gz")):
        try:
            records, problem = verify_warc(path)
        except FileNotFoundError:  # an uploader has moved it
            continue
        except OSError as error:
            yield f"{path}: cannot be read: {error.strerror or error}"
            continue
        if problem is not None:
            yield f"{path}: {problem}, after {records} good records"
