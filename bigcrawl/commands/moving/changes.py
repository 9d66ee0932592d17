"""`scrapy frontier changes FILE [--since TIME]`: what has become of the pages of a crawl that visits them again.

A line of the file is {"url": ..., "change": "added" | "changed" | "gone", "time": ..., "digest": ..., "visits": ...}: a
page whose present state was first seen at or after a time. The file is no log: a page has the change that leads to its
present state, so what it was in between is left out. A page that moves while it is read may have two lines, the newer
one later. Applied in their order to a collection of that time, the lines make it that of now.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bigcrawl.commands.moving.export_file import new_file
from bigcrawl.commands.moving.partition_lines import read_partition
from bigcrawl.commands.newest_files import place_for_links
from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.revisiting.visit import Visit
from bigcrawl.scheduler.records.body import look_at_address, visit_in
from bigcrawl.scheduler.records.revisits import decode_revisits

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Sequence

    from bigcrawl.commands.moving.export_file import Line, LineWriter
    from bigcrawl.commands.opened_crawl import OpenedCrawl
    from bigcrawl.config import Config
    from bigcrawl.scheduler.records.queued_url import QueuedUrl


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `changes`."""
    parser.add_argument(
        "--since", metavar="TIME", help="leave out what was seen before; ISO 8601, or seconds since 1970"
    )


def changes(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Write the pages that were added, have changed or are gone into a new file, and say from when to ask next time.

    Raises:
        ConfigError: there is no such crawl, its files are on another machine, the time cannot be read, or the file
            exists or cannot be written.
        CorruptionError: a file of the crawl is damaged.
        TransientStoreError: Redis, the disk or the store failed. No file is left.
    """
    since_s, path = _seconds(opts.since), Path(words[0])
    with server_of(config) as server, new_file(path) as writer:
        counts, next_s = asyncio.run(_changes(config, server, writer, since_s))
    found = {change: counts[change] for change in ("added", "changed", "gone")}
    told = ", ".join(f"{count:,} {change}" for change, count in found.items())
    since = _time(next_s)
    text = f"{path}: {told}; ask for what comes next with --since {since}"
    return Result({"file": str(path), "crawl": config.crawl.name, **found, "next_since": since}, text)


async def _changes(config: Config, server: str, writer: LineWriter, since_s: int) -> tuple[Counter[str], int]:
    counts: Counter[str] = Counter()
    async with opened(config, server) as crawl:
        next_ms = crawl.client.now_ms()
        with place_for_links(config.crawl.crawl_dir) as links:
            for partition in range(crawl.partitions):
                next_ms = min(next_ms, await _oldest_taken_ms(crawl, partition, next_ms))
                async for url in _pages(crawl, partition, links):
                    line = line_of(url, since_s)
                    if line is not None:
                        writer.write(line)
                        counts[line["change"]] += 1
    return counts, next_ms // 1000


def line_of(url: QueuedUrl, since_s: int) -> Line | None:
    """Return the line of a URL; None if it was not visited yet, or its page is as it was at that time."""
    data = visit_in(url.body)
    if not data:
        return None
    visit = Visit.unpack(data)
    if visit.changed_s < since_s:
        return None
    is_new = visit.first_s >= since_s and not visit.is_gone
    change = "gone" if visit.is_gone else "added" if is_new else "changed"
    address, _ = look_at_address(url.body)
    digest = visit.digest.hex()
    return {"url": address, "change": change, "time": visit.changed_s, "digest": digest, "visits": visit.number}


async def _pages(crawl: OpenedCrawl, partition: int, links: Path) -> AsyncIterator[QueuedUrl]:
    """Yield the URLs of a partition: on disk, then in Redis, and last in the inbox, so that newer ones come later."""
    place = links / f"p{partition:04d}"
    try:
        contents, found = await read_partition(crawl, partition, place)
        if contents is not None:
            for urls in (contents.waiting(), contents.batches(found.admitted)):
                for url in urls:
                    yield url
        for url in (*found.hot, *found.arrived):
            yield url
        for name, data in found.others:
            for revisit in decode_revisits(data) if name == "revisits" else ():
                yield revisit.url
    finally:
        shutil.rmtree(place, ignore_errors=True)


async def _oldest_taken_ms(crawl: OpenedCrawl, partition: int, now_ms: int) -> int:
    """When the first URL was taken whose end is not known yet. What its visit finds is dated from then on."""
    records = await crawl.client.command("HVALS", crawl.keys(partition).taken)
    return min([now_ms, *(int(record.split(b"\n", 2)[1]) for record in records)])


def _seconds(text: str | None) -> int:
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


def _time(time_s: int) -> Any:
    return datetime.fromtimestamp(time_s, UTC).isoformat().replace("+00:00", "Z")
