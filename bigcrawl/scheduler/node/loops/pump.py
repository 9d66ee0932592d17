"""The pump: sends and takes URLs in few round trips."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.scheduler.node.loops.loop import Loop, refusal_of, rest_until

if TYPE_CHECKING:
    from bigcrawl.scheduler.node.assembly import Parts
    from bigcrawl.scheduler.node.loops.recovery import Recovery
    from bigcrawl.scheduler.node.loops.room import TakeRoom

logger = logging.getLogger(__name__)

PUMP_BUSY_S = 0.01
PUMP_SHARE = 2  # a round trip pays when 1/PUMP_SHARE of the URLs that the node may hold have ended
# The longest wait for a batch while the engine is busy, below `exchange.HORIZON_MS`.
PUMP_PATIENCE_MS = 400
PUMP_WAITING_S = 0.05  # while the engine has URLs that it has not begun to fetch
PUMP_ASLEEP_MS = 1_000  # while nothing is fetched or to be sent, and no host is due
TAKES_MAX = 64


class Pump(Loop):
    name = "pump"

    def __init__(self, parts: Parts, room: TakeRoom, recovery: Recovery) -> None:
        self._client = parts.crawl.client
        self._clock = parts.crawl.clock
        self._engine = parts.engine
        self._troubles = parts.troubles
        self._ownership = parts.ownership
        self._handout = parts.handout
        self._held = parts.handout.held
        self._speed = parts.handout.speed
        self._outbox = parts.outbox
        self._workload = parts.workload
        self._observers = parts.observers
        self._arrivals = parts.crawl.arrivals
        self._exchange = parts.exchange
        self._trials = parts.trials
        self._aside = parts.gates.aside
        self._shared_hosts = parts.gates.shared_hosts
        self._progress = parts.progress
        self._recovery = recovery
        self._room = room
        self._wake_event = parts.ownership.table.pending.event
        self._batch_urls = max(1, parts.crawl.config.frontier.in_process_max // PUMP_SHARE)
        self._wake = asyncio.Event()
        self._is_hungry = True
        self._pumped_ms = 0

    def __repr__(self) -> str:
        return f"<Pump hungry={self._is_hungry}>"

    def wake(self) -> None:
        self._is_hungry = True
        self._wake.set()

    async def turn(self) -> float:
        self._engine.poll_ended()
        if self._troubles.is_restarted:
            await self._recovery.run()
        if self._client.in_doubt:
            await self._ownership.reconciliation.settle_doubts()
        if self._trials.have_changes:
            await self._trials.flush()
        if self._handout.is_idle and self._held.unacknowledged and self._engine.storage is not None:
            self._engine.storage.hurry()  # hosts, or the crawl's end, may wait for this alone
        if self._handout.lanes.are_open:
            self._held.hurry_pages(max(1, self._batch_urls // 2))
        if not self._is_worthwhile():
            return self._rest_s()
        self._is_hungry = False
        self._pumped_ms = self._clock.monotonic_ms()
        if self._troubles.are_any:
            await self._client.ping()  # this loop restarts the embedded server, and may have nothing else to send
        refused = await refusal_of(self.flush())
        # Ends free memory, which Redis may lack.
        moved = await self.end_and_take() if refused is None else await self.end()
        if moved or self._outbox.has_flushed:
            self._workload.record_moved()
            self._wake_event.set()
        if refused is not None:
            raise refused
        return PUMP_BUSY_S if moved else self._rest_s(is_done=True)

    def _rest_s(self, *, is_done: bool = False) -> float:
        """Return how long to rest until a round trip may be worthwhile. `is_done`: nothing is left to send."""
        if len(self._handout.in_process) or self._held.unacknowledged:
            return PUMP_BUSY_S
        if len(self._held) > self._handout.buffer.waiting + self._speed.waiting_long:
            return PUMP_WAITING_S
        now_ms = self._clock.monotonic_ms()
        left_ms = self._pumped_ms + PUMP_PATIENCE_MS - now_ms
        if is_done and not self._outbox.waiting:
            # What is due while the crawl's speed is used up has to wait.
            due_ms = max(self._exchange.next_ms - now_ms, round(1000 * self._speed.refused_s))
            left_ms = max(left_ms, min(PUMP_ASLEEP_MS, due_ms))
        return max(PUMP_BUSY_S, left_ms / 1000)

    async def rest(self, rest_s: float) -> None:
        await rest_until(self._wake, PUMP_BUSY_S, rest_s)  # an engine that asks often is answered in batches

    async def after_failure(self) -> None:
        """Restart the embedded server if it died. Any other server is for its operator to restart."""
        try:
            await asyncio.to_thread(self._engine.revive_server)
        except (BigcrawlError, OSError) as error:
            logger.warning("the embedded server does not start: %(error)s", {"error": error})

    def _is_worthwhile(self) -> bool:
        """Return whether to make a round trip now, or to wait for a larger batch, which costs less CPU per page."""
        if self._is_hungry or self._held.has_safe(self._batch_urls):
            return True
        if self._handout.is_idle and self._held.has_safe(1):
            return True
        return self._clock.monotonic_ms() - self._pumped_ms >= PUMP_PATIENCE_MS

    async def flush(self) -> None:
        """Send the outbox. First retract a premature end, or a restart would take the crawl for finished."""
        await self._progress.revoke_end()
        self._observers.send_safe()
        try:
            await self._outbox.flush(self._client)
        finally:
            await self._arrivals.tell()
        if await self._aside.flush():
            self.wake()  # the next URLs of these hosts are set aside as well
        await self._shared_hosts.report_released()

    async def end(self) -> bool:
        return await self._exchange.run(acknowledge=self._engine.may_acknowledge(), urls_max=0)

    async def end_and_take(self) -> bool:
        """Acknowledge safe pages, and take URLs for the free room. Return whether there was any work."""
        exchange, room = self._exchange, self._room
        urls_max = room.urls()
        moved = await exchange.run(
            acknowledge=self._engine.may_acknowledge(),
            urls_max=urls_max,
            places_max=room.urls(ending=self._held.unacknowledged) - urls_max,
        )
        for _ in range(TAKES_MAX):
            if self._handout.buffer.waiting or not exchange.has_more_due or not (urls := room.urls()):
                break
            moved = await exchange.run(acknowledge=False, urls_max=urls) or moved
        return moved
