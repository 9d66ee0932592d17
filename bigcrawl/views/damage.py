"""Finds the damaged files of a crawl, and its missing partitions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.redisdb.embedded import running_url
from bigcrawl.scheduler.crawl.survey import survey
from bigcrawl.scheduler.partition.directory import verify_newest
from bigcrawl.scheduler.partition.fold.rejected import rejected_entries
from bigcrawl.views.opened_crawl import open_crawl
from bigcrawl.warc.verification import verify_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl.config import Config


def damage_of(config: Config) -> Iterator[str]:
    """Yield a line for each damaged file (path, byte, expected value) and each rejected inbox entry."""
    directory = config.crawl.crawl_dir
    if not directory.is_dir():
        raise ConfigError(
            f"{directory} does not exist: there is no crawl {config.crawl.name!r}; see BIGCRAWL_STATE_DIR"
        )
    for partition in sorted(directory.glob("p[0-9]*")):
        yield from map(str, verify_newest(partition))
    for entry in rejected_entries(directory):
        yield f"{entry.path}: rejected: {entry.problem or 'it can be read by now'}; see scrapy frontier rejected"
    if config.crawl.warc_dir is not None:
        yield from _damaged_warcs(config.crawl.warc_dir)


def missing_files(config: Config) -> list[str]:
    """Return a line for each partition without files; no lines if Redis is away or does not know the crawl."""
    url = config.crawl.redis_url or running_url(config.crawl.crawl_dir / "redis")
    try:
        return asyncio.run(_missing_files(config, url)) if url else []
    except BigcrawlError:  # the files are verified all the same
        return []


async def _missing_files(config: Config, url: str) -> list[str]:
    async with open_crawl(config, url) as crawl:
        states = [crawl.keys(partition).state for partition in range(crawl.partitions)]
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
            records, _, problem = verify_file(path)
        except FileNotFoundError:  # an uploader has moved it
            continue
        except OSError as error:
            yield f"{path}: cannot be read: {error.strerror or error}"
            continue
        if problem:
            yield f"{path}: {problem}; {records} good records"
