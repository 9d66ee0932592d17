"""Reads the whole content of a partition: files, inbox and Redis.

The crawl may run meanwhile. A URL moves from the inbox to the disk, to its host's back queue, and sometimes back to the
inbox. So the files are linked first, then the back queues are read, then the inbox entries that the files do not
include. If the owner has trimmed such entries, everything is read again. A URL that moves meanwhile may appear twice.
"""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from bigcrawl.drum.files import DiskFiles
from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID
from bigcrawl.scheduler.records.inbox_entry import (
    ALONE,
    BATCH,
    EDGES,
    FORGOTTEN,
    OBSERVED,
    OUTCOMES,
    ROWS,
    TIMED,
)
from bigcrawl.scheduler.records.member import unpack_member
from bigcrawl.scheduler.records.outcomes import MARKS_FROM, last_of_each, unpack_outcomes
from bigcrawl.scheduler.records.queued_url import QueuedUrl, decode_batch
from bigcrawl.views.contents import PartitionContents
from bigcrawl.views.newest_files import is_outdated, newest_files, read_view

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.views.opened_crawl import OpenedCrawl

WIRE: Final = {
    "edges": EDGES,
    "forgotten": FORGOTTEN,
    "rows": ROWS,
    "revisits": TIMED,
    "votes": ALONE,
    "contents": OBSERVED,
}
"""Fields of inbox entries other than URLs and outcomes: the name in an export, and the name in an inbox entry."""

TRIES_MAX = 5
_ENTRIES_AT_ONCE = 200
_HOSTS_AT_ONCE = 100


@dataclass
class HeldInRedis:
    """A partition's data in Redis that its files do not include.

    Attributes:
        admitted: the number of the last admit batch that Redis has.
        hot: taken URLs, then those in back queues, in order for each host.
        arrived: URLs in the inbox, in order.
        ends: keys and outcomes in the inbox, see `records.outcomes.VALUE`.
        others: other fields of inbox entries: (name in an export, data).
    """

    admitted: int
    hot: list[QueuedUrl]
    arrived: list[QueuedUrl] = field(default_factory=list)
    ends: tuple[KeyArray, npt.NDArray[Any]] | None = None
    others: list[tuple[str, bytes]] = field(default_factory=list)


async def read_partition(
    crawl: OpenedCrawl, partition: int, place: Path
) -> tuple[PartitionContents | None, HeldInRedis]:
    """Link the files into `place`, which the caller deletes, and read Redis; repeat both if the inbox was trimmed."""
    keys = crawl.keys(partition)
    for _ in range(TRIES_MAX):
        view = await read_view(crawl, partition)
        contents = await asyncio.to_thread(_open_contents, crawl, partition, place)
        admitted = await crawl.client.command("HGET", keys.state, "admitted")
        if contents is None and view.is_begun:
            raise ConfigError(
                f"the files of partition {partition} are not in {crawl.directory(partition)}: export on a machine that "
                f"has them, with the crawl's BIGCRAWL_STATE_DIR, or with its BIGCRAWL_STORE_URL"
            )
        found = HeldInRedis(int(admitted or 0), await _hot_urls(crawl, partition))
        folded = contents.inbox_id if contents is not None else NO_INBOX_ID
        await _read_inbox(crawl, partition, folded, found)
        if not await is_outdated(crawl, partition, folded):
            return contents, found
    raise BigcrawlError(f"partition {partition} changes faster than it can be read; stop the crawl, and export then")


def _open_contents(crawl: OpenedCrawl, partition: int, place: Path) -> PartitionContents | None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True, mode=0o700)
    directory = newest_files(crawl, partition, lambda: place)
    links = place / "links"
    links.mkdir(mode=0o700)
    return PartitionContents.of(directory, links, DiskFiles())


async def _hot_urls(crawl: OpenedCrawl, partition: int) -> list[QueuedUrl]:
    """Return a partition's URLs in Redis, whether queued or taken, each once, though they may move meanwhile."""
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


async def _read_inbox(crawl: OpenedCrawl, partition: int, folded: str, found: HeldInRedis) -> None:
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


def _real_ends(entries: list[tuple[str, bytes]]) -> tuple[KeyArray, npt.NDArray[Any]] | None:
    if not entries:
        return None
    keys, values = unpack_outcomes(entries)
    is_end = values["code"] < MARKS_FROM
    return last_of_each(keys[is_end], values[is_end])
