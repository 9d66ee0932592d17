from __future__ import annotations

import base64
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from bigcrawl.commands.moving.export_file import FORMAT, data_line, new_export, rows_line, url_line
from bigcrawl.commands.result import Result
from bigcrawl.drum.format import Records
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.scheduler.node.control import SPEED
from bigcrawl.scheduler.partition.fold.imported_rows import rows_to_export
from bigcrawl.scheduler.records.observed import OWED, owed_by_partition, pack_observed
from bigcrawl.scheduler.records.outcomes import AGAIN, CODES
from bigcrawl.scheduler.records.queued_url import UNCHECKED
from bigcrawl.views.newest_files import place_for_links
from bigcrawl.views.opened_crawl import in_crawl
from bigcrawl.views.partition import read_partition

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Iterator, Sequence

    from bigcrawl.commands.moving.export_file import Line, LineWriter
    from bigcrawl.config import Config
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.views.contents import PartitionContents
    from bigcrawl.views.opened_crawl import OpenedCrawl
    from bigcrawl.views.partition import HeldInRedis

RECORD_FIELDS = ("partitions", "private_suffixes", "canonical_version", "hash_seed", "suffixes")
"""The fields of the crawl record that determine the keys and the partitions of URLs."""

RULES = {"budgets": "rules", "blacklist": "blacklist", "delays": "delays"}
"""The kinds of rules set by hand: the name in the file, and the hash in Redis."""


def export(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Write the crawl's waiting URLs, its tables and the rules set by hand into a new file."""
    path = Path(words[0])
    with new_export(path) as writer:
        counts = in_crawl(config, _write_export, writer)
    text = (
        f"{path}: {counts['urls']:,} waiting URLs, {counts['seen']:,} seen, of crawl {config.crawl.name}; it holds the "
        f"secret of the crawl's keys, so keep it to yourself"
    )
    return Result({"file": str(path), "crawl": config.crawl.name, **counts}, text)


async def _write_export(crawl: OpenedCrawl, writer: LineWriter) -> dict[str, int]:
    counts = {"urls": 0, "seen": 0}
    writer.write(await _header_line(crawl))
    for line in await _rule_lines(crawl):
        writer.write(line)
    with place_for_links(crawl.config.crawl.crawl_dir) as links:
        for partition in range(crawl.partitions):
            async for line in partition_lines(crawl, partition, links):
                writer.write(line)
                counts["urls"] += "url" in line
                if line.get("table") == "seen":
                    counts["seen"] += len(base64.b64decode(line["keys"])) // 8
    return counts


async def _header_line(crawl: OpenedCrawl) -> Line:
    values = await crawl.client.command("HMGET", crawl.crawl_keys.crawl, *RECORD_FIELDS)
    record = dict(zip(RECORD_FIELDS, values, strict=True))
    suffixes = record.pop("suffixes")
    fields = {name: value.decode() for name, value in record.items()}
    fields["suffixes"] = base64.b64encode(suffixes).decode()
    return {"bigcrawl": "export", "format": FORMAT, "crawl": crawl.config.crawl.name, "record": fields}


async def _rule_lines(crawl: OpenedCrawl) -> list[Line]:
    keys = crawl.crawl_keys
    lines: list[Line] = []
    for name, hash_name in RULES.items():
        fields = pairs_of(await crawl.client.command("HGETALL", getattr(keys, hash_name)))
        if fields:
            lines.append({"rules": name, "fields": {key.decode(): value.decode() for key, value in fields}})
    speed = await crawl.client.command("HGET", keys.control, SPEED)
    if speed is not None:
        lines.append({"rules": "speed", "fields": {SPEED: speed.decode()}})
    return lines


async def partition_lines(crawl: OpenedCrawl, partition: int, links: Path) -> AsyncIterator[Line]:
    """Yield the lines of a partition for an export; `links` is a directory beside its files for temporary links."""
    place = links / f"p{partition:04d}"
    try:
        contents, found = await read_partition(crawl, partition, place)
        for line in _partition_lines(contents, found, partition, crawl.partitions):
            yield line
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _partition_lines(
    contents: PartitionContents | None, found: HeldInRedis, partition: int, partitions: int
) -> Iterator[Line]:
    away = {url.key for url in found.hot}
    if found.ends is not None:
        keys, values = found.ends
        away |= set(keys[values["code"] != CODES[AGAIN]].tolist())

    def others(urls: Iterator[QueuedUrl]) -> Iterator[QueuedUrl]:
        return (url for url in urls if url.flags & UNCHECKED or url.key not in away)

    def all_urls() -> Iterator[QueuedUrl]:
        yield from found.hot
        if contents is not None:
            yield from others(contents.urls_of_batches(found.admitted))
            yield from others(contents.waiting_urls())
        yield from others(iter(found.arrived))

    for url in all_urls():
        yield url_line(url, partition)
    for rows in contents.table_rows() if contents is not None else ():
        yield rows_line(rows, partition)
    if found.ends is not None:
        for rows in rows_to_export("ends", Records(*found.ends)):
            yield rows_line(rows, partition)
    for name, data in found.others:
        yield data_line(name, data, partition)
    if contents is not None:
        for home, owed in owed_by_partition(contents.untold, partitions).items():
            yield data_line("contents", pack_observed({OWED: owed}), home)
