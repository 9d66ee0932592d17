"""The watch: assignment of partitions, snoozed hosts, budgets, samples, and the end of the crawl."""

from __future__ import annotations

import asyncio
import logging
from operator import attrgetter
from typing import TYPE_CHECKING

from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.scheduler.node.loops.loop import RETRY_S, Haste, Loop, rest_until, together
from bigcrawl.scheduler.node.loops.steer import schedule_parking
from bigcrawl.scheduler.node.progress import STALE_MS, CloseRate
from bigcrawl.scheduler.owner.parking import park_snoozed

if TYPE_CHECKING:
    from bigcrawl.scheduler.node.assembly import Parts

logger = logging.getLogger(__name__)

WATCH_S = 1.0
WATCH_IDLE_S = 0.2  # while only another node or a continued start may keep a small crawl from its end
WATCH_FINISHED_MS = 10_000  # between surveys of a crawl that is finished, or waits without events
WATCH_FOREVER_MS = 60_000  # the same, if its end closes no node
STUCK_LOOKS = 50  # half a minute; another node may be checking a repaired partition
_number = attrgetter("keys.partition")


class Watch(Loop):
    name = "watch"

    def __init__(self, parts: Parts) -> None:
        self._client = parts.crawl.client
        self._clock = parts.crawl.clock
        self._troubles = parts.troubles
        self._folding = parts.ownership.lock
        self._ownership = parts.ownership
        self._reputation = parts.ownership.crawl_budgets
        self._aside = parts.gates.aside
        self._last_hosts = parts.heartbeat.last_hosts
        self._starts = parts.starts
        self._control = parts.control
        self._outbox = parts.outbox
        self._handout = parts.handout
        self._workload = parts.workload
        self._finish = parts.progress.finish
        self._progress = parts.progress
        self._failed = parts.exchange.failed
        self._observers = parts.observers
        self._samples = parts.progress.samples
        self._on_fatal = parts.engine.on_fatal
        self._speed = parts.handout.speed
        self._membership = parts.crawl.membership
        self._close_rate = CloseRate(parts.crawl.config.close_rate)
        self._activity = parts.progress.activity
        self._activity_then: dict[tuple[str, str], int] = {}
        self._looked_ms = -STALE_MS
        self._haste = Haste()
        self._looked_after = -1  # `workload.moves` at the last search for the end; -1 if not idle
        self._closes_when_empty = parts.crawl.config.crawl.close_when_empty

    async def turn(self) -> float:
        if self._troubles.is_restarted:
            return RETRY_S
        async with self._folding:
            await self._rebalance_partitions()
        await self._starts.renew()
        await self._progress.count_pages()
        await self._failed.send_if_due()
        await self._observers.send()
        await self._samples.take_if_due(self._progress.survey_lately)
        await self._check_rate()
        await self._check_for_end()
        self._end_held_up()
        return WATCH_IDLE_S if self._haste.record_round(is_idle=self._is_idle()) else WATCH_S

    async def rest(self, rest_s: float) -> None:
        now = asyncio.get_running_loop().time
        until = now() + together(now(), rest_s)
        while (left_s := until - now()) > 0:
            await rest_until(self._workload.emptied, 0, left_s)
            if self._reputation.is_told or (self._is_idle() and self._looked_after != self._workload.moves):
                return

    def _is_idle(self) -> bool:
        return self._workload.is_idle(self._ownership)

    def _begin_check(self) -> bool:
        """Return whether to check for the end now. Without events since the last check, that can wait."""
        now_ms, mark = self._clock.monotonic_ms(), self._activity.mark
        is_same = mark == self._activity_then
        if self._progress.is_finished:
            if now_ms < self._looked_ms + (STALE_MS if is_same else WATCH_FINISHED_MS):
                return False
        elif (
            is_same
            and self._finish.has_found_work
            and now_ms < self._looked_ms + (WATCH_FINISHED_MS if self._closes_when_empty else WATCH_FOREVER_MS)
        ):
            return False
        self._looked_ms, self._activity_then = now_ms, mark
        return True

    def _is_quiet(self) -> bool:
        return not self._outbox.waiting and not self._starts.are_under_way

    async def _rebalance_partitions(self) -> None:
        await self._ownership.rebalance()
        await self._park_snoozed()
        await self.refresh_budgets()
        await self._last_hosts.look(is_quiet=self._is_quiet())

    async def _park_snoozed(self) -> None:
        table = self._ownership.table
        told = sorted(filter(table.has, table.pending.to_park), key=_number)
        table.pending.to_park.clear()
        try:
            await park_snoozed(self._client, told, self._clock.monotonic_ms(), self._aside.blacklist)
        except BaseException:
            table.pending.to_park.update(told)
            raise
        table.pending.to_park.update(owned for owned in told if owned.away.hot_max)

    async def refresh_budgets(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if self._reputation.is_stale(now_ms):
            self._reputation.record_poll(now_ms)
            try:
                await self._ownership.budgets.refresh()
            except RedisRefusedError:
                self._reputation.mark_stale()  # budgets can wait; the rest of this loop cannot
            except BigcrawlError:
                self._reputation.mark_stale()
                raise

    async def _check_rate(self) -> None:
        if not self._close_rate.is_on or self._control.is_closed:
            return
        now_ms, speed, reports = self._clock.monotonic_ms(), self._speed.speed, self._membership.reports.values()
        rate = sum(float(report.get("rate", 0)) for report in reports)
        is_paused = speed.is_paused or any(report.get("is_paused") for report in reports)
        if not self._close_rate.record_rate(now_ms, rate, 0 if is_paused else speed.pages):
            return
        seen = await self._progress.survey()
        if seen.waiting + seen.urls_taken:
            logger.info(
                "the crawl is slower than BIGCRAWL_CLOSE_RATE although %(urls)d URLs wait, so it is closed",
                {"urls": seen.waiting},
            )
            await self._control.close_all()
        else:
            self._close_rate.begin(now_ms)

    async def _check_for_end(self) -> None:
        offered = self._outbox.offered
        self._looked_after = self._workload.moves if self._is_idle() else -1
        if not (self._is_idle() and self._begin_check()):
            return
        # Orders may free withheld URLs, so they are read before a crawl counts as finished.
        if await self._control.read() or self._reputation.is_told:
            self._looked_ms, self._activity_then = -STALE_MS, {}
            schedule_parking(self._ownership)
        elif self._is_idle() and await self._has_finished() and not self._observers.hold_end(self._finish.ended):
            self._progress.record_end(is_certain=offered == self._outbox.offered)
            self._handout.wake_engine()

    async def _has_finished(self) -> bool:
        """Return whether two passes agree on the end; they may follow each other at once."""
        return await self._finish.look() or (self._finish.is_near and await self._finish.look())

    def _end_held_up(self) -> None:
        is_stuck = self._finish.stuck_passes >= STUCK_LOOKS and not self._ownership.damaged.is_checking
        if is_stuck and self._is_idle() and self._closes_when_empty:
            self._on_fatal(ConfigError(self._finish.holdup))
