"""How a node leaves its crawl, within the seconds that a SIGTERM gives it, or gives up a start."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from bigcrawl.exceptions import BigcrawlError

if TYPE_CHECKING:
    from bigcrawl.scheduler.crawl.survey import Survey
    from bigcrawl.scheduler.node.assembly import Parts
    from bigcrawl.scheduler.node.loops.loop import LoopRunner
    from bigcrawl.scheduler.node.loops.pump import Pump
    from bigcrawl.scheduler.node.loops.recovery import Recovery

logger = logging.getLogger(__name__)

CLOSE_S = 4.0  # closing may take no longer, to stay within SIGTERM's ten seconds


class Departure:
    """Ends a node: stops its loops, returns what it holds, releases what it owns."""

    def __init__(self, parts: Parts, runner: LoopRunner, pump: Pump, recovery: Recovery) -> None:
        """`runner` runs the loops, `pump` sends what is left, `recovery` brings a restarted Redis in line first."""
        self._parts = parts
        self._runner = runner
        self._pump = pump
        self._recovery = recovery
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

    async def close(self) -> Survey | None:
        """Leave: return URLs that were not fetched, send what can be sent in a few seconds, release everything.

        Returns:
            A last survey of the whole crawl; None if Redis is away.
        """
        parts = self._parts
        self.stop()
        last: Survey | None = None
        await self._runner.stop()
        await self._close_gates()
        try:
            async with asyncio.timeout(CLOSE_S):
                last = await self._say_goodbye()
        except (BigcrawlError, TimeoutError) as error:
            logger.warning(
                "Redis did not take this node's last words (%(error)s); what it held is fetched again when the "
                "crawl goes on",
                {"error": str(error) or "no answer in time"},
            )
        await parts.ownership.store.close()
        parts.worker.shutdown(wait=not parts.ownership.file_work.stands_still)
        parts.membership.unlock(left=self._has_left)
        return last

    async def _say_goodbye(self) -> Survey:
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
        async with parts.folding:
            await parts.ownership.releases.release(list(parts.ownership.owned.values()))
        await parts.shared_hosts.leave()
        await parts.membership.leave(parts.client)
        self._has_left = not parts.ownership.owned
        last = await parts.progress.survey()
        others = {node: report for node, report in parts.membership.reports.items() if node != parts.node_id}
        await parts.samples.keep(last, others)
        return last

    async def _close_gates(self) -> None:
        parts = self._parts
        await parts.gatekeeper.close()
        parts.dns.drop_store(parts.answers)
        await parts.answers.close()
        await parts.robots.close()
        await parts.ownership.damaged.close()
        if parts.wildcards is not None:
            await parts.wildcards.close()
