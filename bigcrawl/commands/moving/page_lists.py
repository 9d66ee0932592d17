"""`scrapy frontier changes` and `copies`: the pages that have changed, and those that are copies of others.

A line of the file of `copies` is {"page": ..., "original": ..., "kind": "exact" | "near", "content": ...}: the keys of
both URLs and of the body, in hexadecimal digits, and "page_url" and "original_url" where an index of WARC files has
them. A page that is visited again has a line for each of its contents that was a copy.

A line of the file of `changes` is {"url": ..., "change": "added" | "changed" | "gone", "time": ..., "digest": ...,
"visits": ...}: a page whose present state was first seen after TIME. States in between are omitted. A page whose URL
moves during the export may have two lines, the newer one later. Applied in order, the lines bring a collection of pages
as of TIME up to date.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bigcrawl.clock import time_text
from bigcrawl.commands.moving.export_file import new_file
from bigcrawl.commands.result import Result
from bigcrawl.content.copies import COPIES, EXACT
from bigcrawl.exceptions import ConfigError
from bigcrawl.page_index.lookup import urls_of
from bigcrawl.scheduler.partition.reader import read_copies_of
from bigcrawl.scheduler.records.queued_url import decode_timed
from bigcrawl.views.feature import changes_of
from bigcrawl.views.newest_files import REMEDY, files_to_read, place_for_links, read_view
from bigcrawl.views.opened_crawl import in_crawl
from bigcrawl.views.partition import read_partition

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from bigcrawl.commands.moving.export_file import Line, LineWriter
    from bigcrawl.config import Config
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.views.opened_crawl import OpenedCrawl


def changes_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--since", metavar="TIME", help="leave out changes seen before; ISO 8601, or seconds since 1970"
    )


def changes(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Write the added, changed and gone pages into a new file, and print the `--since` of the next call."""
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
    """Return the time of the oldest take without a known outcome: the page's change may be dated later than it."""
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


def copies(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Write the pages that are copies of others, exact or near, into a new file."""
    path = Path(words[0])
    with new_file(path) as writer:
        found = in_crawl(config, _write_copies, writer)
    text = f"{path}: {found['exact']:,} exact, {found['near']:,} near"
    if unnamed := found["exact"] + found["near"] - found["named"]:
        text += f"; {unnamed:,} without the URL of the page or its original, which no index here has"
    if found["elsewhere"]:
        text += f"; {found['elsewhere']} partitions have no files here, and may list more copies: {REMEDY}"
    return Result({"file": str(path), "crawl": config.crawl.name, **found}, text)


async def _write_copies(crawl: OpenedCrawl, writer: LineWriter) -> dict[str, Any]:
    found = {"exact": 0, "near": 0, "named": 0, "elsewhere": 0}
    tables: list[npt.NDArray[Any]] = []
    for partition in range(crawl.partitions):
        view = await read_view(crawl, partition)
        rows = await asyncio.to_thread(_read_copy_rows, crawl, partition)
        if rows is None:
            found["elsewhere"] += view.is_begun
            continue
        tables.append(rows)
    keys = (key for rows in tables for page, _, original, _ in rows.tolist() for key in (page, original))
    urls = await asyncio.to_thread(urls_of, crawl.config.crawl.warc_dir, keys, crawl.url_keys.of_url)
    for rows in tables:
        for line in lines_of(rows, urls):
            writer.write(line)
            found[line["kind"]] += 1
            found["named"] += "page_url" in line and "original_url" in line
    return found


def _read_copy_rows(crawl: OpenedCrawl, partition: int) -> npt.NDArray[Any] | None:
    with files_to_read(crawl, partition, _is_of_copies) as files:
        return read_copies_of(files.directory)


def _is_of_copies(name: str) -> bool:
    return name.startswith(f"{COPIES.prefix}-")


def lines_of(rows: npt.NDArray[Any], urls: Mapping[int, str]) -> Iterator[Line]:
    for page, content, original, kind in rows.tolist():
        named = {f"{name}_url": urls[key] for name, key in (("page", page), ("original", original)) if key in urls}
        yield {
            "page": f"{page:016x}",
            "original": f"{original:016x}",
            "kind": "exact" if kind == EXACT else "near",
            "content": f"{content:016x}",
            **named,
        }
