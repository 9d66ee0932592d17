"""`scrapy frontier copies FILE`: the pages that are copies of others, from the partitions' newest files.

A line of the file is {"page": ..., "original": ..., "kind": "exact" | "near", "content": ...}: the keys of both URLs
and of the body, in hexadecimal digits, and "page_url" and "original_url" where an index of WARC files has them. A page
that is visited again has a line for each of its contents that was a copy.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bigcrawl.commands.moving.export_file import new_file
from bigcrawl.commands.result import Result
from bigcrawl.content.copies import COPIES, EXACT
from bigcrawl.page_index.page_urls import urls_of
from bigcrawl.scheduler.partition.reader import read_copies_of
from bigcrawl.views.newest_files import REMEDY, files_to_read, read_view
from bigcrawl.views.opened_crawl import in_crawl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from bigcrawl.commands.moving.export_file import Line, LineWriter
    from bigcrawl.config import Config
    from bigcrawl.views.opened_crawl import OpenedCrawl


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
