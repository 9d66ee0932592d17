"""The lines of one partition in an export: what is in its files, in its inbox, and in Redis.

The crawl may go on meanwhile. A URL moves from the inbox to the disk, to its host's back queue, and sometimes back to
the inbox. So the files are linked first, then the back queues are read, and the inbox last, from the entry on
that the files do not have yet. If the owner has trimmed any of that, all is read again. A URL that moves meanwhile may
be in two lines.
"""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bigcrawl.commands.moving.contents import Contents
from bigcrawl.commands.moving.export_file import WIRE, data_line, rows_line, url_line
from bigcrawl.commands.newest_files import newest_files
from bigcrawl.drum.files import DiskFiles
from bigcrawl.drum.format import Records
from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.scheduler.partition.fold.imported_rows import rows_to_export
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID
from bigcrawl.scheduler.records.contents import found_by_partition, pack_contents
from bigcrawl.scheduler.records.inbox_entry import BATCH, OUTCOMES, id_order
from bigcrawl.scheduler.records.member import unpack_member
from bigcrawl.scheduler.records.outcomes import AGAIN, CODES, FETCHED, last_of_each, unpack_outcomes
from bigcrawl.scheduler.records.queued_url import UNCHECKED, QueuedUrl, decode_batch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path
    from typing import Any

    import numpy.typing as npt

    from bigcrawl.commands.moving.export_file import Line
    from bigcrawl.commands.opened_crawl import OpenedCrawl
    from bigcrawl.drum.format import KeyArray

TRIES_MAX = 5
_ENTRIES_AT_ONCE = 200
_HOSTS_AT_ONCE = 100
_MARKS_FROM = FETCHED  # codes from here on are no ends


@dataclass
class HeldInRedis:
    """What Redis holds of a partition beyond its files.

    Attributes:
        admitted: the last admit batch that Redis has.
        hot: URLs in back queues, in order for each host, after those that are taken.
        arrived: URLs in the inbox, in order.
        ends: keys and values, see `records.outcomes.VALUE`, of URLs that have ended.
        others: names and bytes of further fields of inbox entries.
    """

    admitted: int
    hot: list[QueuedUrl]
    arrived: list[QueuedUrl] = field(default_factory=list)
    ends: tuple[KeyArray, npt.NDArray[Any]] | None = None
    others: list[tuple[str, bytes]] = field(default_factory=list)


async def partition_lines(crawl: OpenedCrawl, partition: int, links: Path) -> AsyncIterator[Line]:
    """Yield the lines of a partition: its URLs, the rows of its tables, and what its inbox holds besides.

    Args:
        crawl: the crawl.
        partition: the number of the partition.
        links: a directory on the file system of the crawl's files; something is made in it, and deleted again.

    Memory: the URLs of the partition that are in Redis, and some blocks of files.

    Raises:
        ConfigError: its files are on another machine.
        CorruptionError: a file is damaged.
        TransientStoreError: Redis, the disk or the store failed.
    """
    place = links / f"p{partition:04d}"
    try:
        contents, found = await read_partition(crawl, partition, place)
        for line in _lines(contents, found, partition, crawl.partitions):
            yield line
    finally:
        shutil.rmtree(place, ignore_errors=True)


async def read_partition(crawl: OpenedCrawl, partition: int, place: Path) -> tuple[Contents | None, HeldInRedis]:
    """Link the files below a place, which the caller deletes, and read Redis; again if the inbox was trimmed meanwhile.

    Args, raises, and memory: as `partition_lines`.
    """
    keys = crawl.keys(partition)
    for _ in range(TRIES_MAX):
        contents = await asyncio.to_thread(_contents, crawl, partition, place)
        admitted, committed = await crawl.client.command("HMGET", keys.state, "admitted", "committed")
        if contents is None and committed:
            raise ConfigError(
                f"the files of partition {partition} are not in {crawl.directory(partition)}: export on a machine that "
                f"has them, with the crawl's BIGCRAWL_STATE_DIR, or with its BIGCRAWL_STORE_URL"
            )
        found = HeldInRedis(int(admitted or 0), await _hot(crawl, partition))
        folded = contents.inbox_id if contents is not None else NO_INBOX_ID
        if await _read_inbox(crawl, partition, folded, found):
            return contents, found
    raise BigcrawlError(f"partition {partition} changes faster than it can be read; export when the crawl is stopped")


def _contents(crawl: OpenedCrawl, partition: int, place: Path) -> Contents | None:
    """The newest files: those in the state directory, or those in the store."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True, mode=0o700)
    directory = newest_files(crawl, partition, lambda: place)
    links = place / "links"
    links.mkdir(mode=0o700)
    return Contents.of(directory, links, DiskFiles())


async def _hot(crawl: OpenedCrawl, partition: int) -> list[QueuedUrl]:
    """Return a partition's URLs in Redis, queued or taken.

    URLs move between the two meanwhile, so busy hosts and taken URLs are read twice, and each URL is returned once.
    """
    keys, client = crawl.keys(partition), crawl.client
    taken = await client.command("HGETALL", keys.taken)
    hosts: set[str] = set()
    for _ in range(2):
        hosts |= {host.decode() for host in await client.command("HKEYS", keys.busy)}
        for heap in (keys.ready, keys.snoozed):
            hosts |= {host.decode() for host in await client.command("ZRANGE", heap, 0, -1)}
    queued: list[QueuedUrl] = []
    names = sorted(hosts)
    for at in range(0, len(names), _HOSTS_AT_ONCE):
        part = names[at : at + _HOSTS_AT_ONCE]
        rows = await client.commands([("ZRANGE", keys.back + host, 0, -1) for host in part])
        queued += [_url_of(host, member) for host, row in zip(part, rows, strict=True) for member in row]
    again = await client.command("HGETALL", keys.taken)
    parts = [record.split(b"\n", 3) for _, record in pairs_of([*taken, *again])]
    found = [*(_url_of(host.decode(), member) for host, _, _, member in parts), *queued]
    return list({(url.key, url.body): url for url in found}.values())


def _url_of(host: str, member: bytes) -> QueuedUrl:
    fields = unpack_member(member)
    return QueuedUrl(fields.key, host, fields.priority, fields.flags, fields.body)


async def _read_inbox(crawl: OpenedCrawl, partition: int, folded: str, found: HeldInRedis) -> bool:
    """Add what the inbox has after the entry `folded`. Return whether all of it was still there."""
    inbox, last = crawl.keys(partition).inbox, folded
    ends: list[tuple[str, bytes]] = []
    while True:
        entries = await crawl.client.command("XRANGE", inbox, "(" + last, "+", "COUNT", _ENTRIES_AT_ONCE)
        for raw_id, raw in entries:
            fields = dict(pairs_of(raw))
            found.arrived += decode_batch(batch) if (batch := fields.get(BATCH)) else ()
            ends += [(raw_id.decode(), outcomes)] if (outcomes := fields.get(OUTCOMES)) else []
            for name, wire in WIRE.items():
                found.others += [(name, data)] if (data := fields.get(wire)) else []  # a field may be empty
        if len(entries) < _ENTRIES_AT_ONCE:
            break
        last = entries[-1][0].decode()
    found.ends = _real_ends(ends)
    info = dict(pairs_of(await crawl.client.command("XINFO", "STREAM", inbox))) if await _exists(crawl, inbox) else {}
    trimmed = info.get(b"max-deleted-entry-id", b"0-0").decode()
    return id_order(trimmed) <= id_order(folded)


async def _exists(crawl: OpenedCrawl, key: str) -> bool:
    return bool(await crawl.client.command("EXISTS", key))


def _real_ends(entries: list[tuple[str, bytes]]) -> tuple[KeyArray, npt.NDArray[Any]] | None:
    if not entries:
        return None
    keys, values = unpack_outcomes(entries)
    is_end = values["code"] < _MARKS_FROM
    return last_of_each(keys[is_end], values[is_end])


def _lines(contents: Contents | None, found: HeldInRedis, partition: int, partitions: int) -> Iterator[Line]:
    away = {url.key for url in found.hot}
    if found.ends is not None:
        keys, values = found.ends
        away |= set(keys[values["code"] != CODES[AGAIN]].tolist())

    def others(urls: Iterator[QueuedUrl]) -> Iterator[QueuedUrl]:
        return (url for url in urls if url.flags & UNCHECKED or url.key not in away)

    def all_urls() -> Iterator[QueuedUrl]:
        yield from found.hot
        if contents is not None:
            yield from others(contents.batches(found.admitted))
            yield from others(contents.waiting())
        yield from others(iter(found.arrived))

    for url in all_urls():
        yield url_line(url, partition)
    for rows in contents.rows() if contents is not None else ():
        yield rows_line(rows, partition)
    if found.ends is not None:
        for rows in rows_to_export("ends", Records(*found.ends)):
            yield rows_line(rows, partition)
    for name, data in found.others:
        yield data_line(name, data, partition)
    if contents is not None:
        for home, verdicts in found_by_partition(contents.untold, partitions).items():
            yield data_line("contents", pack_contents(found=verdicts), home)
