"""Sends what steps have found of near copies to the partitions of these contents.

Only few steps find any. So a look asks the partitions that have something to tell, and all others only after a claim:
the owner before may have left something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.scheduler.records.contents import found_by_partition, found_in, pack_contents
from bigcrawl.scheduler.records.inbox_entry import CONTENTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.arrivals import Arrivals
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.owned_table import OwnedTable


class FoundSender:
    """Sends what the partitions of one node have found to the inboxes of other partitions.

    Args:
        client: of the crawl's Redis.
        crawl: its name.
        partitions: how many it has.
        table: the partitions that this node owns.
        arrivals: tell the owners of the others.
    """

    def __init__(self, client: RedisClient, crawl: str, partitions: int, table: OwnedTable, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._client = client
        self._crawl = crawl
        self._partitions = partitions
        self._table = table
        self._keeping: set[OwnedPartition] = set()  # those whose manifests keep rows
        self._claims = 0  # how many there had been at the last look at all partitions

    def __repr__(self) -> str:
        return f"<FoundSender for {len(self._keeping)} of {self._table!r}>"

    @property
    def is_keeping(self) -> bool:
        """Whether rows are to be sent, or forgotten later."""
        return bool(self._keeping) or self._claims != self._table.claims

    async def send(self, stepped: Iterable[OwnedPartition] = ()) -> RedisRefusedError | None:
        """Send what was not sent yet, of partitions that have just `stepped` and of earlier ones.

        Returns:
            The error if Redis refuses some, for instance because it is out of memory; these are sent again.

        Raises:
            TransientStoreError: Redis is unreachable; what it may not have is sent again.

        Cost: a look at each partition that stepped, or keeps rows.
        """
        self._look_at(stepped)
        if not self._keeping:
            return None
        unsent = {owned: rows for owned in self._keeping if (rows := owned.found.unsent)}
        failed = await self._append(b"".join(unsent.values())) if unsent else {}
        for owned, rows in unsent.items():
            owned.found.note_sent(rows, self._client.running_ms, lambda some: found_in(some, failed, self._partitions))
            self._table.note_owed(owned)
        for owned in self._keeping:
            owned.found.forget_safe(self._client.running_ms)
        return _refusal_among(failed.values())

    def _look_at(self, stepped: Iterable[OwnedPartition]) -> None:
        """Find out which partitions keep rows."""
        looked_at = {*self._keeping, *stepped}
        if self._claims != self._table.claims:
            self._claims = self._table.claims
            looked_at.update(self._table.sound)
        self._keeping = {owned for owned in looked_at if owned.found.has_any and self._table.has_sound(owned)}

    async def _append(self, rows: bytes) -> dict[int, BigcrawlError]:
        """Append rows to the inboxes of the partitions of their contents. Return the errors of those that failed."""
        by_home = found_by_partition(rows, self._partitions)
        inboxes = {home: partition_keys(self._crawl, home).inbox for home in by_home}
        packed = {home: pack_contents(found=some) for home, some in by_home.items()}
        replies = await self._client.commands_each([("XADD", inboxes[h], "*", CONTENTS, packed[h]) for h in by_home])
        failed = {home: reply for home, reply in zip(by_home, replies, strict=True) if isinstance(reply, BigcrawlError)}
        for home in by_home:
            owned = self._table.by_number.get(home)
            if owned is None:
                self._arrivals.note(home)
            elif home not in failed:
                owned.inbox.note_others()
        return failed


def _refusal_among(errors: Iterable[BigcrawlError]) -> RedisRefusedError | None:
    """Raise the first error that is no refusal, or else return the last one that is."""
    refused = None
    for error in errors:
        if not isinstance(error, RedisRefusedError):
            raise error
        refused = error
    return refused
