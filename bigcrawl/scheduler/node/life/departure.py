"""How a node leaves its crawl, or gives up a start.

To leave takes what a slow disk takes: each partition is forced to it. Meanwhile the node keeps its lease. A signal
leaves it the seconds that `has_time` says.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from bigcrawl.exceptions import BigcrawlError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.scheduler.crawl.survey import Survey
    from bigcrawl.scheduler.node.assembly import Parts
    from bigcrawl.scheduler.node.loops.beat import Beat
    from bigcrawl.scheduler.node.loops.loop import LoopRunner
    from bigcrawl.scheduler.node.loops.pump import Pump
    from bigcrawl.scheduler.node.loops.recovery import Recovery

logger = logging.getLogger(__name__)

PATIENCE_S = 60.0  # for the last words of a node that nobody waits for
LEAST_S = 2.0  # for those of one that is stopped, whatever has taken its time before
LOOK_S = 0.25


class Departure:
    """Ends a node: stops its loops, returns what it holds, releases what it owns."""

    def __init__(self, parts: Parts, runner: LoopRunner, beat: Beat, pump: Pump, recovery: Recovery) -> None:
        """`runner` runs the loops, `beat` keeps the lease, `pump` sends what is left, `recovery` mends Redis first."""
        self._parts = parts
        self._runner = runner
        self._beat = beat
        self._pump = pump
        self._recovery = recovery
        self._has_returned = False
        self._has_left = False

    def __repr__(self) -> str:
        return f"<Departure of {self._parts.node_id} has_left={self._has_left}>"

    async def abandon(self) -> None:
        """Undo a start that failed halfway. Claimed partitions are taken over like those of a dead node."""
        parts = self._parts
        await self._close_gates()
        await parts.ownership.store.close()
        parts.worker.shutdown(wait=True)
        parts.membership.unlock(left=self._has_left or not parts.ownership.claims.has_claimed)

    def stop(self) -> None:
        """Take nothing more. However the node ends from now on, that makes no URL a suspect."""
        self._parts.workload.stop()
        self._parts.handout.in_process.forget()

    async def close(self, has_time: Callable[[], bool] = lambda: True) -> Survey | None:
        """Leave: return URLs that were not fetched, send what can be sent in time, release everything.

        Args:
            has_time: whether there is time for more words; asked a few times a second.

        Returns:
            A last survey of the whole crawl, or the last one that Redis has answered.
        """
        parts = self._parts
        self.stop()
        await self._runner.stop()
        await self._close_gates()
        try:
            async with asyncio.timeout(PATIENCE_S) as limit:
                heeding = asyncio.create_task(_heed(has_time, limit))
                try:
                    await self._say_goodbye()
                finally:
                    heeding.cancel()
        except (BigcrawlError, TimeoutError) as error:
            logger.warning(
                "this node had no time to release its partitions (%(error)s); the next node of this machine takes them "
                "over at once, others when its lease is over"
                if self._has_returned
                else "Redis did not take this node's last words (%(error)s); what it held is fetched again when the "
                "crawl goes on, and the summary may lack the last pages",
                {"error": str(error) or "no answer in time"},
            )
        await parts.ownership.store.close()
        parts.worker.shutdown(wait=not parts.ownership.file_work.stands_still)
        parts.membership.unlock(left=self._has_left)
        return parts.progress.last

    async def _say_goodbye(self) -> None:
        parts = self._parts
        await self._return()
        await parts.progress.survey()
        self._has_returned = True
        async with parts.folding:
            await self._beat.go_on_during(parts.ownership.releases.release(list(parts.ownership.owned.values())))
        await parts.shared_hosts.leave()
        await parts.membership.leave(parts.client)
        self._has_left = not parts.ownership.owned
        last = await parts.progress.survey()
        if last.urls_uncounted:
            logger.warning(
                "%(urls)d URLs were seen and are in no place, which is a mistake in bigcrawl: please report it",
                {"urls": last.urls_uncounted},
            )
        others = {node: report for node, report in parts.membership.reports.items() if node != parts.node_id}
        await parts.samples.keep(last, others)

    async def _return(self) -> None:
        """Give back URLs that were not fetched, and send what was found: after this, nothing is fetched twice."""
        parts = self._parts
        parts.engine.poll_ended()
        parts.handout.return_all()
        if parts.troubles.is_restarted:
            await self._recovery.run()
        else:
            await parts.ownership.reconciliation.settle_doubts()
        await self._pump.flush()
        await self._pump.end()
        await parts.failed.send()
        await parts.shared_tallies.send()
        await parts.membership.note_taken_last(parts.client, len(parts.handout.held))
        await parts.starts.leave_undone()

    async def _close_gates(self) -> None:
        parts = self._parts
        parts.handout.lanes.close()
        await parts.gatekeeper.close()
        parts.dns.drop_store(parts.answers)
        await parts.answers.close()
        await parts.robots.close()
        await parts.ownership.damaged.close()
        if parts.wildcards is not None:
            await parts.wildcards.close()


async def _heed(has_time: Callable[[], bool], limit: asyncio.Timeout) -> None:
    """Once there is no time for more words, end them."""
    await asyncio.sleep(LEAST_S)
    while has_time():  # noqa: ASYNC110 - Scrapy announces no signal
        await asyncio.sleep(LOOK_S)
    limit.reschedule(asyncio.get_running_loop().time())
