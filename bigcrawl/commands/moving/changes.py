"""`scrapy frontier changes FILE [--since TIME]`: the changes of pages in a crawl that visits them again.

A line of the file is {"url": ..., "change": "added" | "changed" | "gone", "time": ..., "digest": ..., "visits": ...}:
a page whose present state was first seen after TIME. States in between are omitted. A page whose URL moves during the
export may have two lines, the newer one later. Applied in order, the lines bring a collection of pages as of TIME up
to date.
"""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bigcrawl.clock import time_text
from bigcrawl.commands.moving.export_file import LineWriter, new_file
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.records.queued_url import QueuedUrl, decode_timed
from bigcrawl.views.feature import changes_of
from bigcrawl.views.newest_files import place_for_links
from bigcrawl.views.opened_crawl import OpenedCrawl, in_crawl
from bigcrawl.views.partition import read_partition

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Sequence

    from bigcrawl.config import Config


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--since", metavar="TIME", help="leave out changes seen before; ISO 8601, or seconds since 1970"
    )


def changes(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Write the added, changed and gone pages into a new file, and print the time for the next call."""
    since_s, path = _parse_time(opts.since), Path(words[0])
    with new_file(path) as writer:
        counts, next_s = in_crawl(config, _write_changes, writer, since_s)
    found = {change: counts[change] for change in ("added", "changed", "gone")}
    told = ", ".join(f"{count:,} {change}" for change, count in found.items())
    since = time_text(next_s * 1000, "T")
    text = f"{path}: {told}; ask for later changes with --since {since}"
    return Result({"file": str(path), "crawl": config.crawl.name, **found, "next_since": since}, text)


async def _write_changes(crawl: OpenedCrawl, writer: LineWriter, since_s: int) -> tuple[Counter[str], int]:
    counts: Counter[str] = Counter()
    next_ms = crawl.client.now_ms()
    with place_for_links(crawl.config.crawl.crawl_dir) as links:
        for partition in range(crawl.partitions):
            next_ms = min(next_ms, await _oldest_taken_ms(crawl, partition, next_ms))
            async for url in _possible_pages(crawl, partition, links):
                for line in changes_of(url, since_s):
                    writer.write(line)
                    counts[line["change"]] += 1
    return counts, next_ms // 1000


async def _possible_pages(crawl: OpenedCrawl, partition: int, links: Path) -> AsyncIterator[QueuedUrl]:
    """Yield URLs whose pages may be known: first those on disk, then in Redis, then in the inbox, the newest last."""
    place = links / f"p{partition:04d}"
    try:
        contents, found = await read_partition(crawl, partition, place)
        if contents is not None:
            for urls in (contents.kept_urls(), contents.waiting_urls(), contents.urls_of_batches(found.admitted)):
                for url in urls:
                    yield url
        for url in (*found.hot, *found.arrived):
            yield url
        for name, data in found.others:
            for again in decode_timed(data) if name == "revisits" else ():
                yield again.url
    finally:
        shutil.rmtree(place, ignore_errors=True)


async def _oldest_taken_ms(crawl: OpenedCrawl, partition: int, now_ms: int) -> int:
    """Return since when a URL has been taken whose outcome is not known yet; its change may be dated from then."""
    records = await crawl.client.command("HVALS", crawl.keys(partition).taken)
    return min([now_ms, *(int(record.split(b"\n", 2)[1]) for record in records)])


def _parse_time(text: str | None) -> int:
    if text is None:
        return 0
    try:
        if text.isdecimal():
            return int(text)
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"--since is {text!r}; must be a time such as 2026-11-25T06:00:00Z, or seconds since 1970"
        ) from None
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
