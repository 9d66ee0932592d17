"""`scrapy frontier import FILE`: continue an exported crawl in another Redis, directory or store, or with another name.

All goes through the inboxes, as what nodes discover does. So an import works on a running and on a stopped crawl, and
may be repeated: URLs and rows that are there already change nothing. A crawl that does not exist yet is begun with the
record of the exported one. It fetches nothing until the file has been read to its end.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bigcrawl.commands.inbox_sender import InboxSender
from bigcrawl.commands.moving.begun_crawl import begun, server_for_import
from bigcrawl.commands.moving.export import RULES
from bigcrawl.commands.moving.export_file import WIRE, data_of, packed_rows_of, read_lines, url_of
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.node.control import BLACKLISTED, BUDGETED, DELAYED, SPEED
from bigcrawl.scheduler.partition.fold.rejected import problem_of
from bigcrawl.scheduler.records.inbox_entry import ROWS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from bigcrawl.commands.moving.export_file import Line
    from bigcrawl.commands.opened_crawl import OpenedCrawl
    from bigcrawl.config import Config


def import_crawl(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Read the file of an export into a crawl, which is begun if it does not exist.

    Raises:
        ConfigError: the file is no export, damaged or cut off; its keys are not those of the crawl; or the crawl
            cannot be begun here. What came before a damaged line is in; the import may be repeated.
        TransientStoreError: Redis or the store failed; some or all may be in, and the import may be repeated.
    """
    lines = read_lines(Path(words[0]))
    header = next(lines)
    with server_for_import(config) as server:
        counts = asyncio.run(_import(config, server, header["record"], lines))
    text = f"crawl {config.crawl.name}: {counts['urls']:,} URLs and {counts['rows']:,} rows of tables are in"
    return Result({"crawl": config.crawl.name, "from": header.get("crawl"), **counts}, text)


async def _import(config: Config, server: str, record: dict[str, Any], lines: Iterator[Line]) -> dict[str, int]:
    async with begun(config, server, record) as crawl:
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
    """Set rules by hand, unless there is one for the same name, and notify the nodes. Raises as `_LineSender.send`."""
    keys = CrawlKeys(crawl.config.crawl.name)
    if line["rules"] not in [*RULES, SPEED]:
        raise ConfigError(f"the file has rules of an unknown kind, {line['rules']!r}: import it with a later version")
    target = getattr(keys, RULES.get(line["rules"], "control"))
    fields = line["fields"]
    if not isinstance(fields, dict) or not all(isinstance(value, str) for value in fields.values()):
        raise ValueError("its fields are no table of texts")
    if line["rules"] == SPEED and fields.keys() != {SPEED}:
        raise ValueError("it sets another field than the speed")
    rows: list[tuple[str | bytes, ...]] = [("HSETNX", target, name, value) for name, value in fields.items()]
    notices = {"blacklist": BLACKLISTED, "budgets": BUDGETED, "delays": DELAYED}
    if line["rules"] in notices:
        rows.append(("HINCRBY", keys.control, notices[line["rules"]], "1"))
    await crawl.client.commands(rows)


class _LineSender:
    """Sends what the lines of a file say to the inboxes."""

    def __init__(self, crawl: OpenedCrawl) -> None:
        self._crawl = crawl
        self._inboxes = InboxSender(crawl, "import")
        self.counts = {"urls": 0, "rows": 0}

    def __repr__(self) -> str:
        return f"<_LineSender {self.counts}>"

    async def send(self, line: Line) -> None:
        """Send a line.

        Raises:
            ValueError, TypeError, LookupError: it is damaged.
        """
        partition = line["partition"]
        if type(partition) is not int or not 0 <= partition < self._crawl.partitions:
            raise ValueError(f"there is no partition {partition!r}")
        if "url" in line:
            url = url_of(line)
            if self._crawl.partition_of_host(url.host) != partition:
                raise ValueError(f"{url.host} is in another partition than {partition}")
            self.counts["urls"] += 1
            await self._inboxes.add(partition, url)
        elif "table" in line:
            rows = packed_rows_of(line)
            self.counts["rows"] += len(data_of(line, "keys")) // 8
            await self._inboxes.tell(partition, ROWS, rows)
        else:
            name = next((name for name in WIRE if name in line), "")
            data = data_of(line, name)
            if problem := problem_of(name, data):
                raise ValueError(problem)
            await self._inboxes.tell(partition, WIRE[name], data)

    async def flush(self) -> None:
        """Send all that is left."""
        await self._inboxes.flush()
