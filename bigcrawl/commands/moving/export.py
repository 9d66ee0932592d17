"""`scrapy frontier export FILE`: the waiting URLs, tables and rules of a crawl in one file, for `import`."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import TYPE_CHECKING

from bigcrawl.commands.moving.export_file import FORMAT, written
from bigcrawl.commands.moving.partition_lines import partition_lines
from bigcrawl.commands.newest_files import place_for_links
from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.scheduler.node.control import SPEED

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.commands.moving.export_file import Line, LineWriter
    from bigcrawl.commands.opened_crawl import OpenedCrawl
    from bigcrawl.config import Config

RECORD_FIELDS = ("partitions", "private_suffixes", "canonical_version", "hash_seed", "suffixes")
"""The fields of the crawl record on which keys and places of URLs depend."""

RULES = {"budgets": "rules", "blacklist": "blacklist", "delays": "delays"}
"""What an operator sets by hand: its name in the file, and the hash in Redis."""


def export(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Write the crawl's waiting URLs, its tables and the rules set by hand into a new file.

    Raises:
        ConfigError: there is no such crawl, its files are on another machine, or the file exists or cannot be written.
        CorruptionError: a file of the crawl is damaged.
        TransientStoreError: Redis, the disk or the store failed. No file is left.
    """
    path = Path(words[0])
    with server_of(config) as server, written(path) as writer:
        counts = asyncio.run(_export(config, server, writer))
    text = (
        f"{path}: {counts['urls']:,} waiting URLs, {counts['seen']:,} seen, of crawl {config.crawl.name}; it holds the "
        f"secret of the crawl's keys, so keep it to yourself"
    )
    return Result({"file": str(path), "crawl": config.crawl.name, **counts}, text)


async def _export(config: Config, server: str, writer: LineWriter) -> dict[str, int]:
    counts = {"urls": 0, "seen": 0}
    async with opened(config, server) as crawl:
        writer.write(await _header(crawl))
        for line in await _rules(crawl):
            writer.write(line)
        with place_for_links(config.crawl.crawl_dir) as links:
            for partition in range(crawl.partitions):
                async for line in partition_lines(crawl, partition, links):
                    writer.write(line)
                    counts["urls"] += "url" in line
                    if line.get("table") == "seen":
                        counts["seen"] += len(base64.b64decode(line["keys"])) // 8
    return counts


async def _header(crawl: OpenedCrawl) -> Line:
    values = await crawl.client.command("HMGET", CrawlKeys(crawl.config.crawl.name).crawl, *RECORD_FIELDS)
    record = dict(zip(RECORD_FIELDS, values, strict=True))
    suffixes = record.pop("suffixes")
    fields = {name: value.decode() for name, value in record.items()}
    fields["suffixes"] = base64.b64encode(suffixes).decode()
    return {"bigcrawl": "export", "format": FORMAT, "crawl": crawl.config.crawl.name, "record": fields}


async def _rules(crawl: OpenedCrawl) -> list[Line]:
    keys = CrawlKeys(crawl.config.crawl.name)
    lines: list[Line] = []
    for name, hash_name in RULES.items():
        fields = pairs_of(await crawl.client.command("HGETALL", getattr(keys, hash_name)))
        if fields:
            lines.append({"rules": name, "fields": {key.decode(): value.decode() for key, value in fields}})
    speed = await crawl.client.command("HGET", keys.control, SPEED)
    if speed is not None:
        lines.append({"rules": "speed", "fields": {SPEED: speed.decode()}})
    return lines
