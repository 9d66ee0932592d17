"""One node of a crawl: the loops that carry URLs between Scrapy, Redis and the partitions (steps 3 to 14).

    pump   when a batch is worth it: flush the outbox; acknowledge what ended and take what is due, in one call
    fold   ten times a second: steps of the owned partitions that are due, their files in a worker thread
    beat   about once a second: heartbeat, the state of the owned partitions, their leases; waits for no file
    guard  when a lease may be over: gives up the fetches under way; waits for nothing
    watch  about once a second: which node should own what, snoozed hosts, budgets, samples, is the crawl finished?
    steer  a few times a second: orders to the running crawl, its speed, concurrent fetches
    tidy   once a minute: free memory goes back to the system

Only this table lists them; each is a module of `node.loops`. A batch is worth a round trip when half of the URLs
that the node may hold have ended, 400 ms have passed, or the engine has nothing to do (docs/decisions/0164).

Scrapy's engine uses `Node.offer` and `handout.pop`: memory only, no waiting, no exception. The loops survive a Redis
that is away: they try again, and `node.loops.recovery` repairs what Redis may have forgotten before anything else is
sent.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.redisdb.rights import check_rights
from bigcrawl.redisdb.server_needs import bytes_needed, look_at_needs
from bigcrawl.scheduler.crawl.crawls_spider import take_for_spider
from bigcrawl.scheduler.node.loops.beat import Beat
from bigcrawl.scheduler.node.loops.fold import Fold
from bigcrawl.scheduler.node.loops.guard import Guard
from bigcrawl.scheduler.node.loops.loop import LoopRunner
from bigcrawl.scheduler.node.loops.pump import Pump
from bigcrawl.scheduler.node.loops.recovery import Recovery
from bigcrawl.scheduler.node.loops.room import TakeRoom
from bigcrawl.scheduler.node.loops.steer import Steer
from bigcrawl.scheduler.node.loops.tidy import Tidy
from bigcrawl.scheduler.node.loops.watch import Watch

if TYPE_CHECKING:
    from bigcrawl.scheduler.crawl.survey import Survey
    from bigcrawl.scheduler.node.assembly import Parts
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.url.key import Keys

logger = logging.getLogger(__name__)

CLOSE_S = 4.0  # closing may take no longer, to stay within SIGTERM's ten seconds


class Node:
    """A live member of a crawl: its life, and what the engine's side uses.

    Attributes:
        parts: the parts it is made of, besides its loops.
        handout, outbox, workload, progress, starts: the parts that the engine's side uses.
        tallies: what it counts for the crawl's report.
        link_graph, votes, contents, same_content, wildcards: likewise; None if the crawl does not need them.
        pump, fold, beat, guard, watch, steer, tidy: its loops.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.config = parts.config
        self.node_id = parts.node_id
        self.handout = parts.handout
        self.outbox = parts.outbox
        self.workload = parts.workload
        self.progress = parts.progress
        self.starts = parts.starts
        self.link_graph = parts.link_graph
        self.votes = parts.votes
        self.contents = parts.contents
        self.same_content = parts.same_content
        self.wildcards = parts.wildcards
        self.tallies = parts.tallies
        self.ownership = parts.ownership
        self.membership = parts.membership
        self.beat = Beat(parts)
        self.recovery = Recovery(parts, self.beat)
        self.room = TakeRoom(parts)
        self.pump = Pump(parts, self.room, self.recovery)
        self.fold = Fold(parts, self.pump.wake)
        self.guard = Guard(parts)
        self.watch = Watch(parts)
        self.steer = Steer(parts, self.pump.wake)
        self.tidy = Tidy()
        loops = (self.pump, self.fold, self.beat, self.guard, self.watch, self.steer, self.tidy)
        self.runner = LoopRunner(loops, parts.troubles, self.ownership.set_apart_by, parts.engine.on_fatal)
        self._has_left = False

    def __repr__(self) -> str:
        return f"<Node {self.node_id} {self.ownership!r} {self.handout!r} {self.outbox!r}>"

    # --- life

    async def start(self) -> None:
        """Join the crawl: record, lock, heartbeat, first claims, loops.

        Raises:
            ConfigError, CorruptionError: says what is wrong, and the remedy.
            TransientStoreError: Redis is away.
        """
        await self.join()
        self.runner.start()
        self.workload.begin()

    async def join(self) -> None:
        """Do all of `start` but the loops; raises the same."""
        parts = self.parts
        await parts.client.ping()
        for fault in await look_at_needs(parts.client, self._bytes_in_redis()):
            logger.warning("%(fault)s", {"fault": fault})
        await check_rights(parts.client, self.config.crawl.name)
        await self.membership.wait_for_alike(parts.client)
        await parts.crawl.join()
        parts.reputation.begin()
        if self.config.dns.shared_answers:
            parts.dns.use_store(parts.answers)
        if self.config.crawl.spider:
            await take_for_spider(parts.client, self.config.crawl.name, self.config.crawl.spider)
        self.membership.lock()
        await parts.heartbeat.send()
        parts.leases.begin()
        if await parts.control.read_if_due():
            await self.watch.refresh_budgets()
        await self.beat.go_on_during(self.ownership.rebalance())
        seen = await self.progress.survey()
        self.membership.remove_locks(seen.named)
        await self.progress.begin(seen)
        await parts.samples.keep(seen, self.membership.reports)
        await self.membership.note_taking(parts.client)

    def _bytes_in_redis(self) -> int:
        frontier = self.config.frontier
        return bytes_needed(
            partitions=self.config.crawl.partitions,
            hot_urls=frontier.hot_urls,
            host_records=frontier.host_records,
            robots_bytes=frontier.robots_bytes,
            dns_answers=self.config.dns.shared_answers,
            inbox_urls=frontier.outbox_urls_max,
        )

    async def abandon(self) -> None:
        """Undo a start that failed halfway. Claimed partitions are taken over like those of a dead node."""
        await self._close_gates()
        await self.ownership.store.close()
        self.parts.worker.shutdown(wait=True)
        self.membership.unlock(left=self._has_left or not self.ownership.has_claimed)

    async def _close_gates(self) -> None:
        parts = self.parts
        await parts.gatekeeper.close()
        parts.dns.drop_store(parts.answers)
        await parts.answers.close()
        await parts.robots.close()
        await self.ownership.damaged.close()
        if self.wildcards is not None:
            await self.wildcards.close()

    def stop(self) -> None:
        """Take nothing more. However the node ends from now on, that makes no URL a suspect."""
        self.workload.stop()
        self.handout.in_process.forget()

    async def close(self) -> Survey | None:
        """Leave: return URLs that were not fetched, send what can be sent in a few seconds, release everything.

        Returns:
            A last survey of the whole crawl; None if Redis is away.
        """
        self.stop()
        last: Survey | None = None
        await self.runner.stop()
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
        await self.ownership.store.close()
        self.parts.worker.shutdown(wait=not self.ownership.file_work.stands_still)
        self.membership.unlock(left=self._has_left)
        return last

    async def _say_goodbye(self) -> Survey:
        parts = self.parts
        parts.engine.poll_ended()
        self.handout.return_all()
        if parts.troubles.is_restarted:
            await self.recovery.run()
        else:
            await self.ownership.settle_doubts()
        await self.pump.flush()
        await self.pump.end()
        await parts.failed.send()
        await parts.shared_tallies.send()
        await self.membership.note_taken_last(parts.client, len(self.handout.held))
        await self.starts.leave_undone()
        async with parts.folding:
            await self.ownership.release(list(self.ownership.owned.values()))
        await parts.shared_hosts.leave()
        await self.membership.leave(parts.client)
        self._has_left = not self.ownership.owned
        last = await self.progress.survey()
        others = {node: report for node, report in self.membership.reports.items() if node != self.node_id}
        await parts.samples.keep(last, others)
        return last

    # --- the engine's side

    def offer(self, url: QueuedUrl) -> None:
        """Take a discovered URL, which goes to its partition's inbox; no I/O here."""
        self.outbox.offer(url, self.parts.crawl.partition_of_host(url.host))
        if self.progress.is_finished:
            self.progress.go_on()

    def wake(self) -> None:
        """There is something to send, or room for more: let the pump run without waiting for a batch."""
        self.pump.wake()

    @property
    def keys(self) -> Keys:
        """Makes the crawl's keys."""
        return self.parts.crawl.keys

    def pld_of(self, host: str) -> str:
        """The pay-level domain of a host, by the crawl's own list of suffixes."""
        return self.parts.crawl.pld_of(host)

    def partition_of_host(self, host: str) -> int:
        """The partition of a host's pay-level domain."""
        return self.parts.crawl.partition_of_host(host)

    @property
    def finished(self) -> bool:
        """Whether nothing of the crawl is left to do, on any node."""
        return self.progress.is_finished

    @property
    def is_alone(self) -> bool:
        """Whether no other live node of the crawl is known."""
        return self.membership.reports.keys() <= {self.node_id}

    async def survey(self) -> Survey:
        """Survey the whole crawl."""
        return await self.progress.survey()

    async def claim_start(self, digest: str) -> int:
        """Claim or renew the start requests: 1 if they are this node's, 0 another node's, 2 done."""
        claim = await self.starts.claim(digest)
        self.progress.note_start(is_done=claim == 2)
        return claim
