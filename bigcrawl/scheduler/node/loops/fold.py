"""The fold: steps of the owned partitions that are due (steps 4 to 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.node.loops.loop import Loop, refusal_of, rest_until

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from bigcrawl.scheduler.node.assembly import Parts

FOLD_S = 0.1  # between two looks for due steps
FOLD_STARVED_S = 0.02  # if the node has too little to fetch, and has sent or taken something or stepped since


class Fold(Loop):
    """Runs the steps of partitions, and makes them durable.

    Args:
        wake_pump: called when there are URLs to take after a step.
        round_trips: is set when the pump may have sent something to this node's own partitions.
    """

    name = "fold"

    def __init__(self, parts: Parts, wake_pump: Callable[[], None], round_trips: asyncio.Event) -> None:
        self._client = parts.client
        self._troubles = parts.troubles
        self._folding = parts.folding
        self._ownership = parts.ownership
        self._outbox = parts.outbox
        self._workload = parts.workload
        self._control = parts.control
        self._wake_pump = wake_pump
        self._round_trips = round_trips
        self._has_stepped = False

    async def turn(self) -> float:
        """Do one round, unless the pump must first bring Redis and this node in line."""
        if self._troubles.is_restarted or self._client.in_doubt:
            return FOLD_S
        starved = self._workload.is_starved
        async with self._folding:
            self.note_inboxes()
            refused = await refusal_of(self._step(starved=starved, idle=self._workload.is_empty))
            await self._ownership.make_durable_due(self._control.checkpoint)
            if refused is not None:
                raise refused
        return FOLD_STARVED_S if starved else FOLD_S

    async def rest(self, rest_s: float) -> None:
        """Rest for `rest_s`; longer while the node is starved, but has neither stepped nor sent anything to itself.

        What other nodes have sent then waits for up to `FOLD_S`.
        """
        await rest_until(self._round_trips, rest_s, rest_s if self._has_stepped else FOLD_S)

    async def _step(self, *, starved: bool, idle: bool) -> None:
        done = await self._ownership.folding.step_due(starved=starved, idle=idle)
        self._has_stepped = done.stepped > 0
        if self._has_stepped:
            self._workload.note_moved()
        if done.admitted:
            self._wake_pump()

    def note_inboxes(self) -> None:
        """Note the batches that this node has just sent to its own partitions; no look at Redis is needed."""
        for partition in self._outbox.take_flushed_partitions():
            owned = self._ownership.owned.get(partition)
            if owned is not None:
                owned.inbox.note_urls()
        for partition in self._outbox.take_told_partitions():
            owned = self._ownership.owned.get(partition)
            if owned is not None:
                owned.inbox.note_others()
