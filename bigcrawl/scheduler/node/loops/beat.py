"""The beat: shows that the node is alive, so that it keeps what it owns."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.scheduler.node.loops.loop import RETRY_S, Haste, Loop

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from bigcrawl.scheduler.node.assembly import Parts

BEAT_S = 1.0
BEAT_FED_S = 2.0
BEAT_IDLE_S = 0.2  # a small crawl should not wait long for its own end


class Beat(Loop):
    """Sends heartbeats and renews leases; waits for no file."""

    name = "beat"

    def __init__(self, parts: Parts) -> None:
        self._client = parts.client
        self._troubles = parts.troubles
        self._heartbeat = parts.heartbeat
        self._leases = parts.leases
        self._outbox = parts.outbox
        self._ownership = parts.ownership
        self._workload = parts.workload
        self._haste = Haste()
        # A look at each partition costs as much as several pages, and a node with enough to fetch need not hurry.
        self._fed_s = max(BEAT_S, min(BEAT_FED_S, parts.config.frontier.lease_ms / 8000))

    async def turn(self) -> float:
        """One round."""
        if self._troubles.is_restarted or self._ownership.file_work.look():
            return RETRY_S
        await self._say_alive()
        if self._outbox.unfolded.wants_look:
            await self._outbox.unfolded.look(self._client)
        if self._haste.note(is_idle=self._workload.is_idle(self._ownership)):
            return BEAT_IDLE_S
        return BEAT_S if self._workload.is_starved else self._fed_s

    async def go_on_during(self, work: Coroutine[Any, Any, None]) -> None:
        """Keep the leases during work that may take longer than one, such as opening many partitions on a slow disk."""
        beating = asyncio.create_task(self._keep_saying_alive())
        try:
            await work
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def _keep_saying_alive(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            if not self._ownership.file_work.look():
                with suppress(BigcrawlError):  # the work meets the same error, and raises it
                    await self._say_alive()

    async def _say_alive(self) -> None:
        await self._heartbeat.send()
        await self._leases.renew()
