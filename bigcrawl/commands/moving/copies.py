"""`scrapy frontier copies FILE`: the pages that are copies of others, as the partitions' newest files list them.

A line of the file is {"page": ..., "original": ..., "kind": "exact" | "near", "content": ...}: keys of URLs, and of
the body, in hexadecimal digits. A page that is visited again has a line for each of its contents that was a copy.
"""

from __future__ import annotations

import asyncio
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.commands.moving.export import place_for_links
from bigcrawl.commands.moving.export_file import new_file
from bigcrawl.commands.moving.newest_files import newest_files
from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.content.copies import COPIES, EXACT
from bigcrawl.scheduler.partition.reader import read_copies_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from bigcrawl.commands.moving.export_file import Line, LineWriter
    from bigcrawl.commands.opened_crawl import OpenedCrawl
    from bigcrawl.config import Config


_REMEDY: Final = "call it on a machine that has them, or with the crawl's BIGCRAWL_STORE_URL"


def copies(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Write the pages that are copies of others, exact or near, into a new file.

    Raises:
        ConfigError: there is no such crawl, or the file exists or cannot be written.
        CorruptionError: a file of the crawl is damaged.
        TransientStoreError: Redis, the disk or the store failed. No file is left.
    """
    path = Path(words[0])
    with server_of(config) as server, new_file(path) as writer:
        found = asyncio.run(_copies(config, server, writer))
    text = f"{path}: {found['exact']:,} exact, {found['near']:,} near"
    if found["elsewhere"]:
        text += f"; {found['elsewhere']} partitions have no files here, and may list more copies: {_REMEDY}"
    return Result({"file": str(path), "crawl": config.crawl.name, **found}, text)


async def _copies(config: Config, server: str, writer: LineWriter) -> dict[str, Any]:
    """Write all lines. Memory: 28 bytes a copy of one partition."""
    found = {"exact": 0, "near": 0, "elsewhere": 0}
    async with opened(config, server) as crawl:
        with place_for_links(config.crawl.crawl_dir) if config.store.url else nullcontext() as place:
            for partition in range(crawl.partitions):
                rows = await asyncio.to_thread(_rows, crawl, partition, place)
                if rows is None:
                    committed = await crawl.client.command("HGET", crawl.keys(partition).state, "committed")
                    found["elsewhere"] += committed is not None
                    continue
                for line in lines_of(rows):
                    writer.write(line)
                    found[line["kind"]] += 1
    return found


def _rows(crawl: OpenedCrawl, partition: int, place: Path | None) -> npt.NDArray[Any] | None:
    """The copies that the newest files of a partition list; None without files.

    Without a store there is no place to fetch to, and nothing is written: whoever may read the files may call this.
    """
    if place is None:
        return read_copies_of(crawl.directory(partition))
    fetched = place / f"p{partition:04d}"
    try:
        return read_copies_of(newest_files(crawl, partition, fetched, _is_of_copies))
    finally:
        shutil.rmtree(fetched, ignore_errors=True)


def _is_of_copies(name: str) -> bool:
    return name.startswith(f"{COPIES.prefix}-")


def lines_of(rows: npt.NDArray[Any]) -> Iterator[Line]:
    """Yield the lines of copies, see `bigcrawl.content.copies.COPY`."""
    for page, content, original, kind in rows.tolist():
        yield {
            "page": f"{page:016x}",
            "original": f"{original:016x}",
            "kind": "exact" if kind == EXACT else "near",
            "content": f"{content:016x}",
        }
