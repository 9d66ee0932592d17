"""`scrapy frontier import FILE`: continue an exported crawl in another Redis, directory or store, or with another name.

All data goes through the inboxes, like a node's discoveries. So an import works whether the crawl runs or not, and may
be repeated: existing URLs and rules stay as they are. A new crawl is begun with the exported crawl record, and fetches
nothing until the whole file has been read.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bigcrawl.commands.inbox_sender import InboxSender
from bigcrawl.commands.moving.export import RECORD_FIELDS, RULES
from bigcrawl.commands.moving.export_file import data_of, packed_rows_of, read_lines, url_of
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.crawl_record import open_record
from bigcrawl.scheduler.node.control import BLACKLISTED, BUDGETED, DELAYED, PAUSED, SPEED
from bigcrawl.scheduler.partition.fold.rejected import problem_of
from bigcrawl.scheduler.records.inbox_entry import ROWS
from bigcrawl.store.objects import ObjectStore
from bigcrawl.views.opened_crawl import OpenedCrawl, server_of
from bigcrawl.views.partition import WIRE
from bigcrawl.views.status import IMPORTING

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Iterator, Sequence

    from bigcrawl.commands.moving.export_file import Line
    from bigcrawl.config import Config


def import_crawl(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Import an export into a crawl, which is created if missing."""
    lines = read_lines(Path(words[0]))
    header = next(lines)
    with server_of(config, may_begin=True) as server:
        counts = asyncio.run(_send_lines(config, server, header["record"], lines))
    text = f"crawl {config.crawl.name}: {counts['urls']:,} URLs and {counts['rows']:,} rows of tables are in"
    return Result({"crawl": config.crawl.name, "from": header.get("crawl"), **counts}, text)


async def _send_lines(config: Config, server: str, record: dict[str, Any], lines: Iterator[Line]) -> dict[str, int]:
    async with crawl_for_import(config, server, record) as crawl:
        sender = _LineSender(crawl)
        for number, line in enumerate(lines, 2):
            try:
                if "rules" in line:
                    await _set_rules(crawl, line)
                else:
                    await sender.send(line)
            except (ValueError, TypeError, LookupError) as error:
                raise ConfigError(f"line {number} of the file is damaged ({error}): {str(line)[:80]}") from None
        await sender.flush()
    return sender.counts


async def _set_rules(crawl: OpenedCrawl, line: Line) -> None:
    """Set rules as if by hand, except for names that have one, and notify nodes. Raises as `_LineSender.send`."""
    keys = crawl.crawl_keys
    if line["rules"] not in [*RULES, SPEED]:
        raise ConfigError(f"the file has rules of an unknown kind, {line['rules']!r}: import it with a later version")
    target = getattr(keys, RULES.get(line["rules"], "control"))
    fields = line["fields"]
    if not isinstance(fields, dict) or not all(isinstance(value, str) for value in fields.values()):
        raise ValueError("its fields must be an object of strings")
    if line["rules"] == SPEED and fields.keys() != {SPEED}:
        raise ValueError("its only field must be the speed")
    rows: list[tuple[str | bytes, ...]] = [("HSETNX", target, name, value) for name, value in fields.items()]
    notices = {"blacklist": BLACKLISTED, "budgets": BUDGETED, "delays": DELAYED}
    if line["rules"] in notices:
        rows.append(("HINCRBY", keys.control, notices[line["rules"]], "1"))
    await crawl.client.commands(rows)


class _LineSender:
    def __init__(self, crawl: OpenedCrawl) -> None:
        self._crawl = crawl
        self._inboxes = InboxSender(crawl, "import")
        self.counts = {"urls": 0, "rows": 0}

    async def send(self, line: Line) -> None:
        """Send a line; raise ValueError, TypeError or LookupError if it is damaged."""
        partition = line["partition"]
        if type(partition) is not int or not 0 <= partition < self._crawl.partitions:
            raise ValueError(f"there is no partition {partition!r}")
        if "url" in line:
            url = url_of(line)
            if self._crawl.partition_of_host(url.host) != partition:
                raise ValueError(f"{url.host} is in another partition than {partition}")
            self.counts["urls"] += 1
            await self._inboxes.add_url(partition, url)
        elif "table" in line:
            rows = packed_rows_of(line)
            self.counts["rows"] += len(data_of(line, "keys")) // 8
            await self._inboxes.send_later(partition, ROWS, rows)
        else:
            name = next((name for name in WIRE if name in line), "")
            data = data_of(line, name)
            if problem := problem_of(name, data):
                raise ValueError(problem)
            await self._inboxes.send_later(partition, WIRE[name], data)

    async def flush(self) -> None:
        await self._inboxes.flush()


@contextlib.asynccontextmanager
async def crawl_for_import(
    config: Config, server: str, record: dict[str, Any] | None = None, *, pauses: bool = False
) -> AsyncIterator[OpenedCrawl]:
    """Open the crawl, or create it. After an error it stays paused, so that the import can be repeated.

    The crawl must hash URLs to the same keys as the exported `record`, if any. `pauses` pauses the crawl even if it
    exists already.
    """
    client = RedisClient(server)
    try:
        await _create_crawl(config, client, record)
        if pauses and await client.command("HGET", CrawlKeys(config.crawl.name).control, PAUSED) is None:
            await _pause_for_import(client, CrawlKeys(config.crawl.name))
        crawl = await OpenedCrawl.of(config, client)
        yield crawl
        await crawl.unmark_finished()
        await _end_import_pause(crawl)
    finally:
        await client.close()


async def _create_crawl(config: Config, client: RedisClient, record: dict[str, Any] | None) -> None:
    """Create the crawl unless it exists. If there is a `record`, check that both crawls hash URLs to the same keys."""
    name = config.crawl.name
    keys = CrawlKeys(name)
    wanted: dict[str, bytes] = {}
    if record is not None:
        wanted = {field: str(record.get(field, "")).encode() for field in RECORD_FIELDS}
        try:
            wanted["suffixes"] = base64.b64decode(wanted["suffixes"], validate=True)
        except ValueError as error:
            raise ConfigError(f"the file's first line has no list of public suffixes ({error}): export again") from None
        _compare_settings(config, wanted)
    if await client.command("HGET", keys.crawl, "id") is None:
        await _pause_for_import(client, keys)
        made = [("HSETNX", keys.crawl, field, wanted[field]) for field in ("hash_seed", "suffixes") if wanted]
        await client.commands(made)
    objects = ObjectStore(config.store.url) if config.store.url else None
    await open_record(client, config.crawl, objects)
    found = dict(zip(RECORD_FIELDS, await client.command("HMGET", keys.crawl, *RECORD_FIELDS), strict=True))
    if wanted and found != wanted:
        other = next(name for name in RECORD_FIELDS if found[name] != wanted[name])
        raise ConfigError(
            f"crawl {name!r} exists already and makes its keys in another way than the exported one ({other}): import "
            f"into a new crawl, with another BIGCRAWL_CRAWL, or add the URLs of the file with `scrapy frontier add`"
        )


async def _pause_for_import(client: RedisClient, keys: CrawlKeys) -> None:
    """Pause the crawl until `_end_import_pause`. Must not be called for a crawl that the operator has paused."""
    await client.commands([("HSET", keys.control, PAUSED, "1"), ("HSET", keys.crawl, IMPORTING, "1")])


def _compare_settings(config: Config, wanted: dict[str, bytes]) -> None:
    settings = {"partitions": "BIGCRAWL_PARTITIONS", "private_suffixes": "BIGCRAWL_PRIVATE_SUFFIXES"}
    for name, setting in settings.items():
        value, was = str(getattr(config.crawl, name)), wanted[name].decode()
        if was != value:
            raise ConfigError(f"{setting} is {value}, but was {was} in the exported crawl: set it to that")


async def _end_import_pause(crawl: OpenedCrawl) -> None:
    keys = crawl.crawl_keys
    if await crawl.client.command("HGET", keys.crawl, IMPORTING) is not None:
        await crawl.client.commands([("HDEL", keys.control, PAUSED), ("HDEL", keys.crawl, IMPORTING)])
