from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.scheduler.crawl.history import EVERY_MS
from bigcrawl.scheduler.node.heartbeat import Leases
from bigcrawl.scheduler.node.loops.loop import RETRY_S, Haste, Loop, rest_until, together

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from bigcrawl.scheduler.node.assembly import Parts

BEAT_S = 1.0
BEAT_FED_S = 2.0
# While nothing can be fetched or sent, and nobody watches: thrice in the time of a sample, so that Redis writes both in
# the same second. With a turn more, it is less than the five seconds for which `tell_time` relies on the answer to
# another node.
BEAT_ASLEEP_S = EVERY_MS / 3_000
BEAT_IDLE_S = 0.2  # a small crawl should not wait long for its end


class Beat(Loop):
    """Sends heartbeats and renews leases; waits for no file."""

    name = "beat"

    def __init__(self, parts: Parts) -> None:
        self._client = parts.crawl.client
        self._control = parts.control
        self._troubles = parts.troubles
        self._heartbeat = parts.heartbeat
        self.leases = Leases(parts.crawl, parts.ownership, parts.handout, parts.workload)
        self._handout = parts.handout
        self._outbox = parts.outbox
        self._ownership = parts.ownership
        self._workload = parts.workload
        self._came = parts.crawl.arrivals.came
        self._clock = parts.crawl.clock
        self._last_hosts = parts.heartbeat.last_hosts
        self._shared_hosts = parts.gates.shared_hosts
        self._haste = Haste()
        self._is_hasty = True
        self._reported: tuple[object, ...] = ()
        self._has_reported_rest = False
        self._reported_ms = self._reported_at_ms = 0  # on the monotonic clock, and that of the crawls
        # Reading each partition costs as much as several pages, so a busy node reads less often.
        longest_s = parts.crawl.config.frontier.lease_ms / 8000
        self._fed_s = max(BEAT_S, min(BEAT_FED_S, longest_s))
        self._reports_a_sample = math.ceil(EVERY_MS / 1000 / max(BEAT_S, min(BEAT_ASLEEP_S, longest_s)))

    async def turn(self) -> float:
        if self._troubles.is_restarted or self._is_hung():
            return RETRY_S
        await self._beat_if_due()
        if self._outbox.unfolded.should_poll:
            await self._outbox.unfolded.look(self._client)
        self._is_hasty = self._haste.record_round(is_idle=self._workload.is_idle(self._ownership))
        if self._is_hasty:
            return BEAT_IDLE_S
        return BEAT_S if self._workload.is_starved else self._fed_s

    async def rest(self, rest_s: float) -> None:
        """Rest; if the node is idle, wake up as soon as entries arrive."""
        rest_s = together(asyncio.get_running_loop().time(), rest_s)
        await rest_until(self._came, 0 if self._workload.is_empty else rest_s, rest_s)

    async def keep_leases_during(self, work: Coroutine[Any, Any, None]) -> None:
        """Renew the leases during long work, such as opening many partitions on a slow disk."""
        beating = asyncio.create_task(self._keep_beating())
        try:
            await work
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            if not self._is_hung():
                with suppress(BigcrawlError):  # the work meets the same error and raises it
                    await self._beat_if_due()

    def _is_hung(self) -> bool:
        is_hung = self._ownership.file_work.check_for_hang()
        if is_hung:
            self._heartbeat.record_hung_disk()
        return is_hung

    async def _beat_if_due(self) -> None:
        """Send a heartbeat if one is due, and renew the leases.

        A heartbeat is due at once after changes that other nodes act on: other partitions owned, only failing hosts
        left, or hosts held against other crawls; and if nodes came or left, or somebody begins to watch.
        """
        table, control = self._ownership.table, self._control
        here = table.claims, len(table.by_number), self._last_hosts.is_all, self._shared_hosts.company
        report = *here, control.nodes, control.is_watched
        now_ms, at_ms, rests = self._clock.monotonic_ms(), self._client.now_ms(), self._rests
        is_due = self._is_hasty or report != self._reported or self._is_report_due(now_ms, at_ms)
        if is_due:
            await self._heartbeat.send()
            self._reported, self._reported_ms, self._reported_at_ms = report, now_ms, at_ms
            self._has_reported_rest = rests
        await self.leases.renew(has_written=is_due)

    @property
    def _rests(self) -> bool:
        return self._handout.waits_for_speed and not self._outbox.waiting

    def _is_report_due(self, now_ms: int, at_ms: int) -> bool:
        """Return whether a report is due without any event; idle nodes report in the same seconds as others."""
        if now_ms < self._reported_ms + round(1000 * self._fed_s):
            return False
        is_awaited = self._last_hosts.is_all or self._control.is_watched  # the end, or what it does
        is_asleep = self._has_reported_rest and self._rests and not is_awaited
        return not is_asleep or self._slot_of(at_ms) != self._slot_of(self._reported_at_ms)

    def _slot_of(self, at_ms: int) -> int:
        return at_ms * self._reports_a_sample // EVERY_MS
