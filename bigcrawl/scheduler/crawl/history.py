"""The history of a crawl: its figures over time, in Redis.

The hash `history` maps the number of a sample, its time divided by `EVERY_MS`, to msgpack `[VERSION, ms since the
epoch, value of each column, ...]`. New columns are appended, so the values that an older row lacks are None.
"""

from __future__ import annotations

from dataclasses import dataclass
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

    name: str
    kind: str
    unit: str
    meaning: str
    take: Callable[[Sample], int]


# Add columns at the end: a row has their values in this order.
COLUMNS: Final[tuple[Column, ...]] = (
    Column("pages", "counter", "URLs", "Ended with an answer.", lambda of: of.seen.pages),
    Column(
        "status_2xx", "counter", "URLs", "Ended with a status of 200 to 299.", lambda of: of.counts_below("status:2")
    ),
    Column(
        "status_3xx", "counter", "URLs", "Ended with a status of 300 to 399.", lambda of: of.counts_below("status:3")
    ),
    Column(
        "status_4xx", "counter", "URLs", "Ended with a status of 400 to 499.", lambda of: of.counts_below("status:4")
    ),
    Column(
        "status_5xx", "counter", "URLs", "Ended with a status of 500 to 599.", lambda of: of.counts_below("status:5")
    ),
    Column(
        "errors", "counter", "URLs", "Ended without an answer, after retries.", lambda of: of.counts_below("error:")
    ),
    Column("dropped", "counter", "URLs", "Ended without being fetched.", lambda of: of.counts_below("dropped:")),
    Column(
        "robots_forbidden",
        "counter",
        "URLs",
        "Of those, URLs that robots.txt forbids.",
        lambda of: of.count("dropped:forbidden"),
    ),
    Column("retries", "counter", "tries", "Tries that were repeated.", lambda of: of.counts_below("retried:")),
    Column("robots_fetches", "counter", "fetches", "Requests for robots.txt.", lambda of: of.count("robots")),
    Column(
        "bytes", "counter", "bytes", "Bodies as transferred, repeated tries included.", lambda of: of.count("bytes")
    ),
    Column("ended", "counter", "URLs", "Ended, with any outcome.", lambda of: of.count("ended")),
    Column("sent", "counter", "URLs", "Sent to inboxes, before the seen check.", lambda of: of.count("appended_urls")),
    Column(
        "duplicates", "counter", "URLs", "Dropped because they were seen before.", lambda of: of.count("duplicates")
    ),
    Column("lost", "counter", "URLs", "Lost by a Redis that forgot them.", lambda of: of.count("lost")),
    Column("seen", "gauge", "URLs", "Distinct URLs of the crawl: keys in URLSeen.", lambda of: of.count("seen")),
    Column("urls_inbox", "gauge", "URLs", "In inboxes.", lambda of: of.seen.urls_inbox),
    Column("urls_disk", "gauge", "URLs", "On disk.", lambda of: of.seen.urls_disk),
    Column("urls_queued", "gauge", "URLs", "In back queues, in Redis.", lambda of: of.seen.urls_queued),
    Column("urls_taken", "gauge", "URLs", "Taken by nodes.", lambda of: of.seen.urls_taken),
    Column(
        "urls_withheld",
        "gauge",
        "URLs",
        "On disk, and the crawl does not wait for them.",
        lambda of: of.count("withheld"),
    ),
    Column("urls_damaged", "gauge", "URLs", "In partitions with a damaged file.", lambda of: of.seen.urls_damaged),
    Column("dead", "gauge", "URLs", "Dead letters: they kill or hang their node.", lambda of: of.count("dead")),
    Column("rejected", "gauge", "entries", "Inbox entries that could not be read.", lambda of: of.count("rejected")),
    Column("hosts_ready", "gauge", "hosts", "Due now.", lambda of: of.seen.hosts_ready),
    Column("hosts_waiting", "gauge", "hosts", "Not due yet.", lambda of: of.seen.hosts_waiting),
    Column("hosts_busy", "gauge", "hosts", "With a URL taken.", lambda of: of.seen.hosts_busy),
    Column("hosts_snoozed", "gauge", "hosts", "Resting for a minute or more.", lambda of: of.seen.hosts_snoozed),
    Column("hosts_retired", "gauge", "hosts", "Failed too often.", lambda of: of.seen.hosts_retired),
    Column("nodes", "gauge", "nodes", "Alive.", lambda of: len(of.reports)),
    Column("partitions_owned", "gauge", "partitions", "With an owner.", lambda of: of.seen.owned),
    Column("partitions_damaged", "gauge", "partitions", "With a damaged file.", lambda of: of.count("damaged")),
    Column("started", "gauge", "requests", "In Scrapy's engine, of all nodes.", lambda of: of.started),
    Column("outbox", "gauge", "URLs", "In outboxes: not in Redis yet.", lambda of: of.reported("outbox")),
    Column("items", "counter", "items", "Scraped items that no pipeline dropped.", lambda of: of.made.items),
    Column("log_warnings", "counter", "lines", "Warnings in the logs of all nodes.", lambda of: of.made.warnings),
    Column("log_errors", "counter", "lines", "Errors in the logs of all nodes.", lambda of: of.made.errors),
    Column(
        "bytes_sent_s",
        "gauge",
        "bytes/s",
        "Of requests, before encryption, over ten seconds.",
        lambda of: of.reported("sent_bytes_s"),
    ),
    Column(
        "look_ups_s", "gauge", "look-ups/s", "Of names, over ten seconds.", lambda of: round(of.reported("look_ups_s"))
    ),
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
