from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.scheduler.node.heartbeat import Leases
from bigcrawl.scheduler.node.loops.loop import RETRY_S, Haste, Loop, rest_until

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from bigcrawl.scheduler.node.assembly import Parts

BEAT_S = 1.0
BEAT_FED_S = 2.0
BEAT_IDLE_S = 0.2  # a small crawl should not wait long for its end


class Beat(Loop):
    """Sends heartbeats and renews leases; waits for no file."""

    name = "beat"

    def __init__(self, parts: Parts) -> None:
        self._client = parts.crawl.client
        self._troubles = parts.troubles
        self._heartbeat = parts.heartbeat
        self.leases = Leases(parts.crawl, parts.ownership, parts.handout, parts.workload)
        self._outbox = parts.outbox
        self._ownership = parts.ownership
        self._workload = parts.workload
        self._came = parts.crawl.arrivals.came
        self._clock = parts.crawl.clock
        self._last_hosts = parts.heartbeat.last_hosts
        self._shared_hosts = parts.gates.shared_hosts
        self._haste = Haste()
        self._is_hasty = True
        self._report_ms = 0
        self._reported: tuple[object, ...] = ()
        # Reading each partition costs as much as several pages, so a busy node reads less often.
        self._fed_s = max(BEAT_S, min(BEAT_FED_S, parts.crawl.config.frontier.lease_ms / 8000))

    async def turn(self) -> float:
        if self._troubles.is_restarted or self._ownership.file_work.check_for_hang():
            return RETRY_S
        await self._say_alive()
        if self._outbox.unfolded.wants_look:
            await self._outbox.unfolded.look(self._client)
        self._is_hasty = self._haste.note(is_idle=self._workload.is_idle(self._ownership))
        if self._is_hasty:
            return BEAT_IDLE_S
        return BEAT_S if self._workload.is_starved else self._fed_s

    async def rest(self, rest_s: float) -> None:
        """Rest, but look at once at what has arrived if there is nothing else to do."""
        await rest_until(self._came, 0 if self._workload.is_empty else rest_s, rest_s)

    async def go_on_during(self, work: Coroutine[Any, Any, None]) -> None:
        """Do long work, such as opening many partitions on a slow disk, and keep the leases meanwhile."""
        beating = asyncio.create_task(self._keep_saying_alive())
        try:
            await work
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def _keep_saying_alive(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            if not self._ownership.file_work.check_for_hang():
                with suppress(BigcrawlError):  # the work meets the same error and raises it
                    await self._say_alive()

    async def _say_alive(self) -> None:
        """Send a heartbeat if one is due, and renew the leases.

        A heartbeat is due at once after changes that other nodes act on: other partitions owned, only failing hosts
        left, or hosts held against other crawls.
        """
        table, now_ms = self._ownership.table, self._clock.monotonic_ms()
        report = table.claims, len(table.by_number), self._last_hosts.is_all, self._shared_hosts.company
        if self._is_hasty or report != self._reported or now_ms >= self._report_ms:
            await self._heartbeat.send()
            self._reported, self._report_ms = report, now_ms + round(1000 * self._fed_s)
        await self.leases.renew()
