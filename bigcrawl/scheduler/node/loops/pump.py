"""The pump: sends and takes URLs in as few round trips as possible (steps 3, 9 and 12 to 14)."""

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

PUMP_BUSY_S = 0.01  # between two looks at the engine while it has work
PUMP_WAITING_S = 0.05  # while all URLs here wait for their hosts
PUMP_SHARE = 2  # a round trip pays when one in so many of the URLs that the node may hold has ended
# The longest wait of fewer; they do not wait if the engine has nothing to do. It is less than `exchange.HORIZON_MS`, so
# that URLs are here before they are due.
PUMP_PATIENCE_MS = 400
TAKES_MAX = 64  # in one round, while there is room and more may be due


class Pump(Loop):
    """Flushes the outbox, acknowledges what has ended, and takes what is due.

    Args:
        news: is set when something was sent to this node's own partitions.
    """

    name = "pump"

    def __init__(self, parts: Parts, room: TakeRoom, recovery: Recovery, news: asyncio.Event) -> None:
        self._client = parts.client
        self._clock = parts.clock
        self._engine = parts.engine
        self._troubles = parts.troubles
        self._ownership = parts.ownership
        self._handout = parts.handout
        self._held = parts.handout.held
        self._outbox = parts.outbox
        self._workload = parts.workload
        self._contents = parts.contents
        self._arrivals = parts.arrivals
        self._exchange = parts.exchange
        self._trials = parts.trials
        self._aside = parts.aside
        self._shared_hosts = parts.shared_hosts
        self._progress = parts.progress
        self._recovery = recovery
        self._room = room
        self._news = news
        self._batch_urls = max(1, parts.config.frontier.in_process_max // PUMP_SHARE)
        self._wake = asyncio.Event()
        self._is_hungry = True
        self._pumped_ms = 0

    def __repr__(self) -> str:
        return f"<Pump hungry={self._is_hungry}>"

    def wake(self) -> None:
        """There is something to send, or room for more: run without waiting for a batch."""
        self._is_hungry = True
        self._wake.set()

    async def turn(self) -> float:
        """Do one round, with a round trip if that is worth it."""
        self._engine.poll_ended()
        if self._troubles.is_restarted:
            await self._recovery.run()
        if self._client.in_doubt:
            await self._ownership.reconciliation.settle_doubts()
        if self._trials.have_news:
            await self._trials.flush()
        if self._handout.is_idle and self._held.unacknowledged and self._engine.storage is not None:
            self._engine.storage.hurry()  # hosts may be waiting for this alone, or the crawl's end
        if self._handout.lanes.are_open:
            self._held.hurry_pages(max(1, self._batch_urls // 2))
        if not self._pays():
            return self._until_it_may_pay_s()
        self._is_hungry = False
        self._pumped_ms = self._clock.monotonic_ms()
        if self._troubles.are_any:
            await self._client.ping()  # this loop starts the embedded server again, and may have nothing else to send
        refused = await refusal_of(self.flush())
        # Ends free memory, which may be what Redis lacks.
        moved = await self.end_and_take() if refused is None else await self.end()
        if moved:
            self._workload.note_moved()
        if moved or self._outbox.has_flushed:
            self._news.set()
        if refused is not None:
            raise refused
        return PUMP_BUSY_S if moved else self._until_it_may_pay_s()

    def _until_it_may_pay_s(self) -> float:
        if len(self._handout.in_process) or self._held.unacknowledged:
            return PUMP_BUSY_S
        if len(self._held):
            return PUMP_WAITING_S
        left_ms = self._pumped_ms + PUMP_PATIENCE_MS - self._clock.monotonic_ms()
        return max(PUMP_BUSY_S, left_ms / 1000)

    async def rest(self, rest_s: float) -> None:
        """Rest for `rest_s`, or until somebody wakes the pump."""
        await rest_until(self._wake, PUMP_BUSY_S, rest_s)  # an engine that asks often is answered in batches

    async def after_failure(self) -> None:
        """Start the embedded server again if it died. Any other server is its operator's."""
        revive = self._engine.revive_server
        if revive is None:
            return
        try:
            await asyncio.to_thread(revive)
        except (BigcrawlError, OSError) as error:
            logger.warning("the embedded server does not start: %(error)s", {"error": error})

    def _pays(self) -> bool:
        """Whether a round trip is worth its CPU now. The larger the batch, the less it costs a page."""
        if self._is_hungry or self._held.has_safe(self._batch_urls):
            return True
        if self._handout.is_idle and self._held.has_safe(1):
            return True
        return self._clock.monotonic_ms() - self._pumped_ms >= PUMP_PATIENCE_MS

    async def flush(self) -> None:
        """Send the outbox. If the crawl goes on after all, say so first, or a restart would find it finished."""
        await self._progress.take_back_end()
        if self._contents is not None:
            self._contents.send_safe()
        try:
            await self._outbox.flush(self._client)
        finally:
            await self._arrivals.tell()
        if await self._aside.flush():
            self.wake()  # the next URLs of these hosts are set aside as well
        await self._shared_hosts.tell()

    async def end(self) -> bool:
        """Acknowledge what is safe, and take nothing. True if there was anything to do."""
        return await self._exchange.run(acknowledge=self._engine.may_acknowledge(), urls_max=0)

    async def end_and_take(self) -> bool:
        """Acknowledge what is safe, and take what there is room for. True if there was anything to do.

        If partitions had fewer URLs than there was room for, the next ones are asked at once, while the engine has
        nothing to do.
        """
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
