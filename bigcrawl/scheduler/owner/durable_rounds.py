"""Forces the files of partitions to disk, a few per round, longest waiting first."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from bigcrawl.scheduler.owner.hot.due_heap import NEVER_MS, Timetable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.clock import Clock
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition
    from bigcrawl.scheduler.owner.owned_table import OwnedTable
    from bigcrawl.scheduler.partition.file_work import FileThread

DURABLE_AT_ONCE = 32
LOOK_MS = 100

_forced_ms = attrgetter("durability.forced_ms")


class DurableRounds:
    def __init__(
        self, client: RedisClient, table: OwnedTable, thread: FileThread, clock: Clock, durable_ms: int
    ) -> None:
        self._client = client
        self._table = table
        self._thread = thread
        self._clock = clock
        self._durable_ms = durable_ms
        self._look_ms = 0
        self._times = Timetable()
        self._checkpoint = 0

    async def run_due(self, checkpoint: int = 0) -> None:
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._look_ms:
            return
        due, owing = self._due_partitions(now_ms, checkpoint)
        if len(due) <= DURABLE_AT_ONCE:
            self._look_ms = now_ms + LOOK_MS
        # The first may be due again before the last have had their turn.
        due = sorted(due, key=_forced_ms)[:DURABLE_AT_ONCE]
        if due:
            await self.make_durable(due, checkpoint)
        if due or owing:
            await self._table.run([(owned, owned.publish()) for owned in (*due, *owing)])

    def _due_partitions(self, now_ms: int, checkpoint: int) -> tuple[list[OwnedPartition], list[OwnedPartition]]:
        pending = self._table.pending.to_keep
        pending.update(self._table.owned_among(self._times.take_due(now_ms)))
        if checkpoint != self._checkpoint:
            self._checkpoint = checkpoint
            pending.update(self._table.by_number.values())
        due: list[OwnedPartition] = []
        owing: list[OwnedPartition] = []
        for owned in pending:
            due_ms = NEVER_MS if owned.is_damaged else owned.durability.due_ms(self._durable_ms, checkpoint)
            if due_ms <= now_ms:
                due.append(owned)
            elif owned.publishing.is_owed:
                owing.append(owned)
            else:
                self._times.set_time(owned.keys.partition, due_ms)
        pending.intersection_update((*due, *owing))
        return due, owing

    @property
    def next_ms(self) -> int:
        return self._look_ms if self._table.pending.to_keep else self._times.next_ms

    async def make_durable(self, partitions: Sequence[OwnedPartition], checkpoint: int = 0) -> None:
        when = self._clock.monotonic_ms(), self._client.running_ms
        sound = [owned for owned in partitions if not owned.is_damaged]
        results = await self._thread.run_together(
            [partial(owned.durability.make_durable, *when, checkpoint) for owned in sound]
        )
        self._table.set_damaged_apart(sound, results)
