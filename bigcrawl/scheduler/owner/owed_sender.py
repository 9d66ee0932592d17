"""Sends the rows that partitions owe to others; after a claim, all partitions are examined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.scheduler.records.inbox_entry import OBSERVED
from bigcrawl.scheduler.records.observed import (
    OWED,
    ObservedRows,
    owed_by_partition,
    owed_in,
    pack_observed,
    rows_by_partition,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bigcrawl.scheduler.crawl.joined_crawl import JoinedCrawl
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.owned_table import OwnedTable
    from bigcrawl.scheduler.partition.partition import Step


class OwedSender:
    def __init__(self, crawl: JoinedCrawl, table: OwnedTable, offer_hint: Callable[[ObservedRows], None]) -> None:
        self._arrivals = crawl.arrivals
        self._client = crawl.client
        self._crawl = crawl.config.crawl.name
        self._partitions = crawl.config.crawl.partitions
        self._table = table
        self._offer_hint = offer_hint
        self._keeping: set[OwnedPartition] = set()
        self._claims = 0

    @property
    def is_keeping(self) -> bool:
        return bool(self._keeping) or self._claims != self._table.claims

    def offer_hints(self, step: Step) -> None:
        for kind, rows in step.hints:
            for row in rows_by_partition(kind, rows, self._partitions):
                self._offer_hint(row)

    async def send(self, stepped: Iterable[OwnedPartition] = ()) -> RedisRefusedError | None:
        """Send the unsent rows of partitions that have `stepped`, or kept some. Return a refusal by Redis."""
        self._look_at(stepped)
        if not self._keeping:
            return None
        unsent = {owned: rows for owned in self._keeping if (rows := owned.owed.unsent_rows)}
        failed = await self._append_rows(b"".join(unsent.values())) if unsent else {}
        for owned, rows in unsent.items():
            owned.owed.record_sent(rows, self._client.running_ms, lambda some: owed_in(some, failed, self._partitions))
            self._table.record_owed(owned)
        for owned in self._keeping:
            owned.owed.forget_safe(self._client.running_ms)
        return _refusal_among(failed.values())

    def _look_at(self, stepped: Iterable[OwnedPartition]) -> None:
        looked_at = {*self._keeping, *stepped}
        if self._claims != self._table.claims:
            self._claims = self._table.claims
            looked_at.update(self._table.undamaged)
        self._keeping = {owned for owned in looked_at if owned.owed.has_any and self._table.has_sound(owned)}

    async def _append_rows(self, rows: bytes) -> dict[int, BigcrawlError]:
        by_home = owed_by_partition(rows, self._partitions)
        inboxes = {home: partition_keys(self._crawl, home).inbox for home in by_home}
        packed = {home: pack_observed({OWED: some}) for home, some in by_home.items()}
        replies = await self._client.commands_each([("XADD", inboxes[h], "*", OBSERVED, packed[h]) for h in by_home])
        failed = {home: reply for home, reply in zip(by_home, replies, strict=True) if isinstance(reply, BigcrawlError)}
        for home in by_home:
            owned = self._table.by_number.get(home)
            if owned is None:
                self._arrivals.add(home)
            elif home not in failed:
                owned.inbox.record_others()
        return failed


def _refusal_among(errors: Iterable[BigcrawlError]) -> RedisRefusedError | None:
    refused = None
    for error in errors:
        if not isinstance(error, RedisRefusedError):
            raise error
        refused = error
    return refused
