"""The history of a crawl: its figures over time, in Redis.

The hash `history` maps the number of a sample, its time divided by `EVERY_MS`, to msgpack `[VERSION, ms since the
epoch, value of each column, ...]`. New columns are appended, so the values that an older row lacks are None.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgpack

from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.redisdb.scripts import NOTHING_MADE, NodesMade

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.survey import Survey

EVERY_MS: Final = 10_000
VERSION: Final = 1

TIME_S: Final = "time_s"


@dataclass(frozen=True, slots=True)
class Sample:
    seen: Survey
    reports: Mapping[str, Mapping[str, Any]]
    made: NodesMade = NOTHING_MADE

    def count(self, name: str) -> int:
        return self.seen.counts[name]

    def counts_below(self, prefix: str) -> int:
        return sum(count for name, count in self.seen.counts.items() if name.startswith(prefix))

    def reported(self, field: str) -> int:
        return sum(report.get(field, 0) for report in self.reports.values())

    @property
    def started(self) -> int:
        return sum(report.get("stages", {}).get("started", 0) for report in self.reports.values())


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of a sample. A `counter` only grows over the crawl; a `gauge` goes up and down."""

    kind: str
    name: str
    unit: str
    meaning: str
    take: Callable[[Sample], int]


_counter, _gauge = partial(Column, "counter"), partial(Column, "gauge")

# Add columns at the end: a row has their values in this order.
COLUMNS: Final[tuple[Column, ...]] = (
    _counter("pages", "URLs", "Ended with an answer.", lambda of: of.seen.pages),
    _counter("status_2xx", "URLs", "Ended with a status of 200 to 299.", lambda of: of.counts_below("status:2")),
    _counter("status_3xx", "URLs", "Ended with a status of 300 to 399.", lambda of: of.counts_below("status:3")),
    _counter("status_4xx", "URLs", "Ended with a status of 400 to 499.", lambda of: of.counts_below("status:4")),
    _counter("status_5xx", "URLs", "Ended with a status of 500 to 599.", lambda of: of.counts_below("status:5")),
    _counter("errors", "URLs", "Ended without an answer, after retries.", lambda of: of.counts_below("error:")),
    _counter("dropped", "URLs", "Ended without being fetched.", lambda of: of.counts_below("dropped:")),
    _counter(
        "robots_forbidden", "URLs", "Of those, URLs that robots.txt forbids.", lambda of: of.count("dropped:forbidden")
    ),
    _counter("retries", "tries", "Tries that were repeated.", lambda of: of.counts_below("retried:")),
    _counter("robots_fetches", "fetches", "Requests for robots.txt.", lambda of: of.count("robots")),
    _counter("bytes", "bytes", "Bodies as transferred, repeated tries included.", lambda of: of.count("bytes")),
    _counter("ended", "URLs", "Ended, with any outcome.", lambda of: of.count("ended")),
    _counter("sent", "URLs", "Sent to inboxes, before the seen check.", lambda of: of.count("appended_urls")),
    _counter("duplicates", "URLs", "Dropped because they were seen before.", lambda of: of.count("duplicates")),
    _counter("lost", "URLs", "Lost by a Redis that forgot them.", lambda of: of.count("lost")),
    _gauge("seen", "URLs", "Distinct URLs of the crawl: keys in URLSeen.", lambda of: of.count("seen")),
    _gauge("urls_inbox", "URLs", "In inboxes.", lambda of: of.seen.urls_inbox),
    _gauge("urls_disk", "URLs", "On disk.", lambda of: of.seen.urls_disk),
    _gauge("urls_queued", "URLs", "In back queues, in Redis.", lambda of: of.seen.urls_queued),
    _gauge("urls_taken", "URLs", "Taken by nodes.", lambda of: of.seen.urls_taken),
    _gauge("urls_withheld", "URLs", "On disk, and the crawl does not wait for them.", lambda of: of.count("withheld")),
    _gauge("urls_damaged", "URLs", "In partitions with a damaged file.", lambda of: of.seen.urls_damaged),
    _gauge("dead", "URLs", "Dead letters: they kill or hang their node.", lambda of: of.count("dead")),
    _gauge("rejected", "entries", "Inbox entries that could not be read.", lambda of: of.count("rejected")),
    _gauge("hosts_ready", "hosts", "Due now.", lambda of: of.seen.hosts_ready),
    _gauge("hosts_waiting", "hosts", "Not due yet.", lambda of: of.seen.hosts_waiting),
    _gauge("hosts_busy", "hosts", "With a URL taken.", lambda of: of.seen.hosts_busy),
    _gauge("hosts_snoozed", "hosts", "Resting for a minute or more.", lambda of: of.seen.hosts_snoozed),
    _gauge("hosts_retired", "hosts", "Failed too often.", lambda of: of.seen.hosts_retired),
    _gauge("nodes", "nodes", "Alive.", lambda of: len(of.reports)),
    _gauge("partitions_owned", "partitions", "With an owner.", lambda of: of.seen.owned),
    _gauge("partitions_damaged", "partitions", "With a damaged file.", lambda of: of.count("damaged")),
    _gauge("started", "requests", "In Scrapy's engine, of all nodes.", lambda of: of.started),
    _gauge("outbox", "URLs", "In outboxes: not in Redis yet.", lambda of: of.reported("outbox")),
    _counter("items", "items", "Scraped items that no pipeline dropped.", lambda of: of.made.items),
    _counter("log_warnings", "lines", "Warnings in the logs of all nodes.", lambda of: of.made.warnings),
    _counter("log_errors", "lines", "Errors in the logs of all nodes.", lambda of: of.made.errors),
    _gauge(
        "bytes_sent_s",
        "bytes/s",
        "Of requests, before encryption, over ten seconds.",
        lambda of: of.reported("sent_bytes_s"),
    ),
    _gauge("look_ups_s", "look-ups/s", "Of names, over ten seconds.", lambda of: round(of.reported("look_ups_s"))),
)


def packed(sample: Sample, time_ms: int) -> bytes:
    row: bytes = msgpack.packb([VERSION, time_ms, *(column.take(sample) for column in COLUMNS)])
    return row


async def read_history(client: RedisClient, crawl: str) -> dict[str, list[float | None]]:
    """Read the crawl's samples, column by column.

    Return `time_s` (Unix seconds, ascending) and a list of the same length for each name in `COLUMNS`, with None where
    a value was not sampled. Samples are `EVERY_MS` apart in the last hour and farther apart before; there are none for
    times in which no node ran.
    """
    fields = await client.command("HGETALL", CrawlKeys(crawl).history)
    return columns_of([row for _, row in pairs_of(fields)])


def columns_of(rows: list[bytes]) -> dict[str, list[float | None]]:
    """Return rows, in any order, as `read_history` does. Unreadable rows are left out."""
    decoded = sorted(filter(None, map(_decoded, rows)), key=lambda row: row[1])
    columns: dict[str, list[float | None]] = {TIME_S: [row[1] / 1000 for row in decoded]}
    for at, column in enumerate(COLUMNS, 2):
        columns[column.name] = [row[at] if at < len(row) else None for row in decoded]
    return columns


def _decoded(row: bytes) -> list[Any] | None:
    try:
        values = msgpack.unpackb(row)
    except ValueError:
        return None
    is_ours = isinstance(values, list) and len(values) > 1 and values[0] == VERSION
    return values if is_ours and all(isinstance(value, int | float) for value in values) else None
