"""The fold: runs the steps of owned partitions that are due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.node.loops.loop import Loop, refusal_of, rest_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.scheduler.node.assembly import Parts

FOLD_S = 0.1
FOLD_STARVED_S = 0.02  # if the node has too little to fetch, and has sent, taken or stepped since
FOLD_ASLEEP_S = 1.0  # while no event comes and no time is due


class Fold(Loop):
    name = "fold"

    def __init__(self, parts: Parts, wake_pump: Callable[[], None]) -> None:
        self._client = parts.crawl.client
        self._troubles = parts.troubles
        self._folding = parts.ownership.lock
        self._ownership = parts.ownership
        self._outbox = parts.outbox
        self._workload = parts.workload
        self._control = parts.control
        self._wake_pump = wake_pump
        self._clock = parts.crawl.clock
        self._wake_event = parts.ownership.table.pending.event
        self._has_stepped = False
        self._has_looked = False

    async def turn(self) -> float:
        """Do one round, unless the pump must first reconcile Redis and this node."""
        self._has_looked = False
        if self._troubles.is_restarted or self._client.in_doubt:
            self._wake_pump()
            return FOLD_S
        starved = self._workload.is_starved
        async with self._folding:
            self.record_inboxes()
            refused = await refusal_of(self._step(starved=starved, idle=self._workload.is_empty))
            await self._ownership.make_durable_due(self._control.checkpoint)
            if refused is not None:
                raise refused
        self._has_looked = True
        return FOLD_STARVED_S if starved else FOLD_S

    async def rest(self, rest_s: float) -> None:
        await rest_until(self._wake_event, rest_s, rest_s if self._has_stepped else max(rest_s, self._longest_s()))

    def _longest_s(self) -> float:
        if not self._has_looked:
            return FOLD_S
        left_ms = self._ownership.next_ms - self._clock.monotonic_ms()
        return min(FOLD_ASLEEP_S, max(FOLD_S, left_ms / 1000))

    async def _step(self, *, starved: bool, idle: bool) -> None:
        done = await self._ownership.folding.step_due(starved=starved, idle=idle)
        self._has_stepped = done.stepped > 0
        if self._has_stepped:
            self._workload.record_moved()
        if done.admitted:
            self._wake_pump()

    def record_inboxes(self) -> None:
        for partition in self._outbox.take_flushed_partitions():
            owned = self._ownership.owned.get(partition)
            if owned is not None:
                owned.inbox.record_urls()
        for partition in self._outbox.take_partitions_with_rows():
            owned = self._ownership.owned.get(partition)
            if owned is not None:
                owned.inbox.record_others()
