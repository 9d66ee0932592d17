"""Sends what steps have found of near copies to the partitions of these contents.

Only few steps find any. So a look asks the partitions that have something to tell, and all others only after a claim:
the owner before may have left something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.scheduler.records.contents import found_by_partition, pack_contents
from bigcrawl.scheduler.records.inbox_entry import CONTENTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.clock import Clock
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.owned_table import OwnedTable


class FoundSender:
    """Sends what the partitions of one node have found to the inboxes of other partitions.

    Args:
        client: of the crawl's Redis.
        crawl: its name.
        partitions: how many it has.
        clock: of the node.
        table: the partitions that this node owns.
    """

    def __init__(self, client: RedisClient, crawl: str, partitions: int, clock: Clock, table: OwnedTable) -> None:
        self._client = client
        self._crawl = crawl
        self._partitions = partitions
        self._clock = clock
        self._table = table
        self._keeping: set[OwnedPartition] = set()  # those whose manifests keep rows
        self._claims = 0  # how many there had been at the last look at all partitions

    def __repr__(self) -> str:
        return f"<FoundSender for {len(self._keeping)} of {self._table!r}>"

    async def send(self, stepped: Iterable[OwnedPartition] = ()) -> RedisRefusedError | None:
        """Send what was not sent yet, of partitions that have just `stepped` and of earlier ones.

        Returns:
            The error if Redis refuses it, for instance because it is out of memory; all is sent again.

        Raises:
            TransientStoreError: Redis is unreachable; all is sent again.

        Cost: a look at each partition that stepped, or keeps rows.
        """
        self._look_at(stepped)
        if not self._keeping:
            return None
        now_ms = self._clock.monotonic_ms()
        unsent = {owned: rows for owned in self._keeping if (rows := owned.found.unsent)}
        if unsent:
            try:
                await self._append(found_by_partition(b"".join(unsent.values()), self._partitions))
            except RedisRefusedError as error:
                return error
        for owned, rows in unsent.items():
            owned.found.note_sent(rows, now_ms)
        for owned in self._keeping:
            owned.found.forget_old(now_ms)
        return None

    def _look_at(self, stepped: Iterable[OwnedPartition]) -> None:
        """Find out which partitions keep rows."""
        looked_at = {*self._keeping, *stepped}
        if self._claims != self._table.claims:
            self._claims = self._table.claims
            looked_at.update(self._table.sound)
        self._keeping = {owned for owned in looked_at if owned.found.has_any and self._table.has_sound(owned)}

    async def _append(self, by_home: dict[int, bytes]) -> None:
        """Append rows to the inboxes of the partitions of their contents."""
        inboxes = {home: partition_keys(self._crawl, home).inbox for home in by_home}
        packed = {home: pack_contents(found=rows) for home, rows in by_home.items()}
        await self._client.commands([("XADD", inboxes[home], "*", CONTENTS, packed[home]) for home in by_home])
        for home in by_home:
            if (owned := self._table.by_number.get(home)) is not None:
                owned.note_outcomes()
