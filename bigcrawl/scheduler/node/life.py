"""How a node joins and leaves its crawl. Partitions are made durable while it still has its lease."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.redisdb.server_needs import bytes_needed, check_server_needs
from bigcrawl.scheduler.crawl.alike import record_spider
from bigcrawl.scheduler.crawl.node_reports import record_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.scheduler.crawl.survey import Survey
    from bigcrawl.scheduler.node.assembly import Parts
    from bigcrawl.scheduler.node.loops.beat import Beat
    from bigcrawl.scheduler.node.loops.loop import LoopRunner
    from bigcrawl.scheduler.node.loops.pump import Pump
    from bigcrawl.scheduler.node.loops.recovery import Recovery
    from bigcrawl.scheduler.node.loops.watch import Watch

logger = logging.getLogger(__name__)

PATIENCE_S = 60.0
LEAST_S = 2.0
LOOK_S = 0.25


class Arrival:
    def __init__(self, parts: Parts, beat: Beat, watch: Watch) -> None:
        self._parts = parts
        self._beat = beat
        self._watch = watch

    def __repr__(self) -> str:
        return f"<Arrival of {self._parts.crawl.node_id}>"

    async def join(self) -> None:
        """Check that the crawl can be joined, join it, and claim the first partitions."""
        parts = self._parts
        config, membership, progress = parts.crawl.config, parts.crawl.membership, parts.progress
        client = parts.crawl.client
        await client.ping()
        for fault in await check_server_needs(client, self._bytes_in_redis()):
            logger.warning("%(fault)s", {"fault": fault})
        if config.crawl.redis_url:
            from bigcrawl.redisdb.rights import check_rights  # of the user of a server that is not ours

            await check_rights(client, config.crawl.name)
        await membership.wait_for_alike(client)
        await parts.crawl.join()
        parts.ownership.crawl_budgets.begin()
        parts.gates.open()
        if config.crawl.spider:
            await record_spider(client, config.crawl)
        membership.lock()
        await parts.heartbeat.send()
        await record_settings(client, config, parts.crawl.node_id)
        self._beat.leases.begin()
        await parts.control.read_if_due()
        await self._watch.refresh_budgets()
        parts.ownership.crawl_budgets.mark_stale()  # partitions are yet to be opened, and their counts to be published
        await self._beat.keep_leases_during(parts.ownership.rebalance())
        seen = await progress.survey()
        membership.remove_locks(seen.named)
        await progress.begin(seen, parts.observers.hold_end)
        await parts.progress.samples.keep(seen, membership.reports)
        await membership.record_taking(client)

    def _bytes_in_redis(self) -> int:
        config = self._parts.crawl.config
        frontier = config.frontier
        return bytes_needed(
            partitions=config.crawl.partitions,
            hot_urls=frontier.hot_urls,
            host_records=frontier.host_records,
            robots_bytes=frontier.robots_bytes,
            dns_answers=config.dns.shared_answers,
            inbox_urls=frontier.outbox_urls_max,
        )


class Departure:
    def __init__(self, parts: Parts, runner: LoopRunner, beat: Beat, pump: Pump, recovery: Recovery) -> None:
        self._parts = parts
        self._runner = runner
        self._beat = beat
        self._pump = pump
        self._recovery = recovery
        self._has_returned = False
        self._has_left = False

    def __repr__(self) -> str:
        return f"<Departure of {self._parts.crawl.node_id} has_left={self._has_left}>"

    async def abandon(self) -> None:
        """Undo a start that failed halfway. Other nodes take over its partitions as if it had died."""
        parts = self._parts
        await self._close_gates()
        await parts.ownership.close(wait=True)
        parts.crawl.membership.unlock(left=self._has_left or not parts.ownership.claims.has_claimed)

    def stop(self) -> None:
        self._parts.workload.stop()
        self._parts.handout.in_process.forget()

    async def close(self, has_time: Callable[[], bool] = lambda: True) -> Survey | None:
        """Leave: return unfetched URLs, send the rest while `has_time`, release all partitions.

        Return the last survey.
        """
        parts = self._parts
        self.stop()
        await self._runner.stop()
        await self._close_gates()
        try:
            async with asyncio.timeout(PATIENCE_S) as limit:
                heeding = asyncio.create_task(_watch_deadline(has_time, limit))
                try:
                    await self._announce_departure()
                finally:
                    heeding.cancel()
        except (BigcrawlError, TimeoutError) as error:
            logger.warning(
                "this node had no time to release its partitions (%(error)s); the next node of this machine takes them "
                "over at once, others when its lease is over"
                if self._has_returned
                else "Redis did not take this node's last words (%(error)s); its URLs in process are fetched again "
                "when the crawl continues, and the summary might lack the last pages",
                {"error": str(error) or "no answer in time"},
            )
        await parts.ownership.close(wait=not parts.ownership.file_work.stands_still)
        parts.crawl.membership.unlock(left=self._has_left)
        return parts.progress.last

    async def _announce_departure(self) -> None:
        parts = self._parts
        await self._return_urls()
        await parts.progress.survey()
        self._has_returned = True
        async with parts.ownership.lock:
            await self._beat.keep_leases_during(parts.ownership.releases.release(list(parts.ownership.owned.values())))
        await parts.gates.shared_hosts.leave()
        await parts.crawl.client.run(parts.exchange.recent.calls())
        await parts.crawl.membership.leave(parts.crawl.client, parts.exchange.recent.made())
        self._has_left = not parts.ownership.owned
        last = await parts.progress.survey()
        if last.urls_uncounted:
            logger.warning(
                "%(urls)d URLs were seen but are stored nowhere, which is a bug in bigcrawl: please report it",
                {"urls": last.urls_uncounted},
            )
        reports = parts.crawl.membership.reports.items()
        others = {node: report for node, report in reports if node != parts.crawl.node_id}
        await parts.progress.samples.keep(last, others)

    async def _return_urls(self) -> None:
        """Return unfetched URLs and send all results, so that nothing is fetched twice."""
        parts = self._parts
        parts.engine.poll_ended()
        parts.handout.return_all()
        if parts.troubles.is_restarted:
            await self._recovery.run()
        else:
            await parts.ownership.reconciliation.settle_doubts()
        await self._pump.flush()
        await self._pump.end()
        await parts.exchange.failed.send()
        await parts.observers.send(is_last=True)
        await parts.crawl.membership.record_taken_last(parts.crawl.client, len(parts.handout.held))
        await parts.starts.leave_undone()

    async def _close_gates(self) -> None:
        parts = self._parts
        parts.handout.lanes.close()
        await parts.gates.close()
        await parts.ownership.damaged.close()
        await parts.observers.close()


async def _watch_deadline(has_time: Callable[[], bool], limit: asyncio.Timeout) -> None:
    await asyncio.sleep(LEAST_S)
    while has_time():  # noqa: ASYNC110 - Scrapy announces no signal
        await asyncio.sleep(LOOK_S)
    limit.reschedule(asyncio.get_running_loop().time())
