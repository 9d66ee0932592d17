"""What steps have found of near copies, until the partitions of these contents know it.

Only few steps find any. So a look asks the partitions that have something to tell, and all others only after a claim:
the owner before may have left something.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.scheduler.records.contents import found_by_partition, pack_contents
from bigcrawl.scheduler.records.held_urls import KEEP_ENDED_MS
from bigcrawl.scheduler.records.inbox_entry import CONTENTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.clock import Clock
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.owned_table import OwnedTable
    from bigcrawl.scheduler.partition.partition import Partition


class FoundCopies:
    """Rows about near copies that a partition's steps have found, for the partitions of their contents.

    The manifest keeps them until they were sent and a Redis that forgets its last seconds has them. If their owner dies
    before that, the next one sends them again, which changes nothing.
    """

    def __init__(self, disk: Partition) -> None:
        self._disk = disk
        self._sent: deque[tuple[int, bytes]] = deque()
        self._sent_bytes = 0

    def __repr__(self) -> str:
        return f"<FoundCopies unsent={len(self.unsent)}>"

    @property
    def has_any(self) -> bool:
        """Whether the manifest keeps rows, sent or not."""
        return bool(self._disk.untold)

    @property
    def unsent(self) -> bytes:
        """The rows that this owner has not sent yet, packed."""
        return self._disk.untold[self._sent_bytes :]

    def note_sent(self, rows: bytes, now_ms: int) -> None:
        """Redis has these rows, the first that were unsent."""
        self._sent.append((now_ms, rows))
        self._sent_bytes += len(rows)

    def forget_old(self, now_ms: int) -> None:
        """Have the manifest forget what was sent so long ago that Redis keeps it."""
        while self._sent and self._sent[0][0] < now_ms - KEEP_ENDED_MS:
            rows = self._sent.popleft()[1]
            self._sent_bytes -= len(rows)
            self._disk.note_told(rows)


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
