"""One node of a crawl: the loops that carry URLs between Scrapy, Redis and the partitions (steps 3 to 14).

    pump   when a batch is worth it: flush the outbox; acknowledge what ended and take what is due, in one call
    fold   ten times a second: steps of the owned partitions that are due, their files in a worker thread
    beat   about once a second: heartbeat, how the owned partitions stand, their leases; waits for no file
    watch  about once a second: who should own what, hosts that are snoozed, budgets, is the crawl finished?
    steer  a few times a second: what was said to the running crawl, the speed it may have, fetches at a time
    tidy   once a minute: memory that is free goes back to the system

This table is the one place that lists them. A batch is worth a round trip when 32 URLs have ended, 100 ms have passed,
or the engine has nothing to do (docs/decisions/0015).

`offer` and `handout.pop` are what Scrapy's engine touches: memory only, no waiting, no exception. The loops
survive a Redis that is away: they try again, and what Redis may have forgotten is brought back in line in
`_recover` before anything else is sent.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import ceil
from typing import TYPE_CHECKING, Any

from bigcrawl.exceptions import (
    BigcrawlError,
    ConfigError,
    CorruptionError,
    OwnershipLostError,
    RewoundError,
    TransientStoreError,
)
from bigcrawl.redisdb.client import RedisRefusedError, RedisRestartedError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.server_needs import look_at_needs
from bigcrawl.scheduler.budgets.policies import NO_POLICY
from bigcrawl.scheduler.budgets.same_content import SameContent
from bigcrawl.scheduler.budgets.wildcard_dns import WildcardDns
from bigcrawl.scheduler.crawl.crawl_record import open_record
from bigcrawl.scheduler.crawl.membership import Membership
from bigcrawl.scheduler.crawl.start_requests import StartRequests
from bigcrawl.scheduler.crawl.survey import FinishCheck, Survey, survey
from bigcrawl.scheduler.gates.address_check import AddressCheck
from bigcrawl.scheduler.gates.delays import Paces
from bigcrawl.scheduler.gates.dns_answers import SharedAnswers
from bigcrawl.scheduler.gates.gatekeeper import Gatekeeper
from bigcrawl.scheduler.gates.lookups import Lookups
from bigcrawl.scheduler.gates.passages import Passages
from bigcrawl.scheduler.gates.proxies import local_names
from bigcrawl.scheduler.gates.robots import Robots
from bigcrawl.scheduler.gates.robots_redirects import RobotsRedirects
from bigcrawl.scheduler.gates.robots_starts import RobotsStarts
from bigcrawl.scheduler.gates.shared_hosts import SharedHosts
from bigcrawl.scheduler.gates.spaces import Spaces
from bigcrawl.scheduler.gates.speed import SpeedControl
from bigcrawl.scheduler.handout.handout import Handout
from bigcrawl.scheduler.node.control import Control
from bigcrawl.scheduler.node.exchange import Exchange
from bigcrawl.scheduler.node.forbidden_sweep import Sweeper
from bigcrawl.scheduler.node.last_hosts import LastHosts
from bigcrawl.scheduler.node.link_graph import LinkGraph
from bigcrawl.scheduler.node.memory import give_memory_back
from bigcrawl.scheduler.node.outbox import Outbox
from bigcrawl.scheduler.node.set_aside import Aside
from bigcrawl.scheduler.node.trials import Trials
from bigcrawl.scheduler.owner.crawl_budgets import REFRESH_MS, Reputation
from bigcrawl.scheduler.owner.file_work import FileWork
from bigcrawl.scheduler.owner.ownership import Ownership
from bigcrawl.scheduler.owner.parking import tend_snoozed
from bigcrawl.scheduler.partition.yielding_files import UnhurriedFiles

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.politeness.dns_cache import DnsCache
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.crawl_record import CrawlRecord
    from bigcrawl.scheduler.gates.fetched import Fetch
    from bigcrawl.scheduler.records.held import HeldUrl
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.url.key import Keys, PldKey

logger = logging.getLogger(__name__)

PUMP_BUSY_S = 0.01  # between two looks at the engine while it has work
PUMP_URLS = 32  # ended URLs that are worth a round trip
PUMP_PATIENCE_MS = 100  # fewer wait that long at most; not at all when the engine has nothing to do
PUMP_IDLE_S = 0.25
TAKES_MAX = 64  # a pump, while what is taken leaves room and more may be due
WATCH_S = 1.0
BEAT_S = 1.0
BEAT_FED_S = 2.0
WATCH_IDLE_S = 0.2  # a small crawl should not wait long for its own end
FOLD_S = 0.1  # between two looks for partitions whose step is due
FOLD_STARVED_S = 0.02
RETRY_S = 0.5  # after Redis did not answer
STEER_S = 0.2  # between two looks for what may have to be asked
STEER_SLOWED_S = 0.04
TIDY_S = 60.0
RATE_MS = 10_000  # pages a second are told over this long
LEASE_MARGIN_MS = 1_000  # a lease ends for us before it ends for the others
STUCK_LOOKS = 50  # in ten seconds: another node may be reading a damaged partition that was mended
CLOSE_S = 4.0  # what closing may take before SIGTERM's ten seconds are in danger


class Node:
    """A live member of a crawl."""

    def __init__(
        self,
        config: Config,
        client: RedisClient,
        dns: DnsCache,
        clock: Clock,
        fetch: Fetch,
        *,
        poll_ended: Callable[[], None],
        may_take: Callable[[], bool],
        may_acknowledge: Callable[[], bool],
        on_fatal: Callable[[BigcrawlError], None],
        revive: Callable[[], object] | None = None,
        node_id: str = "",
    ) -> None:
        self.config = config
        self.node_id = node_id or f"{config.crawl.node}-{uuid.uuid4().hex[:8]}"
        self._client = client
        self._clock = clock
        self._poll_ended = poll_ended
        self._may_take = may_take
        self._may_acknowledge = may_acknowledge
        self._on_fatal = on_fatal
        self._revive = revive
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="bigcrawl-fold")
        self.link_graph = LinkGraph(self.pld_of, self.pld_key, config.crawl.partitions) if self._has_budgets else None
        self.same_content, self.wildcards = self._make_trap_signs(dns)
        self.outbox = self._make_outbox()
        self._paces = Paces(config, self.pld_of)
        self.speed = SpeedControl(config, client, clock, self._wake_engine)
        self.handout = Handout(config, clock, self.outbox, self._paces, self.speed, self._ask_again)
        self.membership = Membership(config, self.node_id, self.handout.in_process)
        self.starts = StartRequests(config, client, self.membership, self.node_id, self._heartbeat)
        self._reputation = Reputation(config, client, self.pld_of, self.pld_key)
        self.ownership = self._make_ownership()
        self._dns = dns
        self._answers = SharedAnswers(client, CrawlKeys(config.crawl.name), config.dns.shared_answers)
        self._aside = self._make_aside()
        self._shared_hosts = SharedHosts(config, self.node_id, client, clock, self._paces, self.handout.held)
        self._addresses, self._passages = self._make_address_check(), self._make_passages()
        self._control = self._make_control()
        self.robots = self._make_robots(fetch)
        self.sweeper = Sweeper(client, self.ownership, self.robots, clock)
        self._gatekeeper = Gatekeeper(
            self.robots,
            self._addresses,
            self._passages,
            clock,
            self.handout,
            self.sweeper,
            self.speed.turn,
            self._aside,
            self._shared_hosts,
        )
        self._exchange = self._make_exchange()
        self._trials = Trials(client, self.ownership, self.handout)
        self._last_hosts = LastHosts(config, client, clock, self.handout, self.ownership, self.membership)
        self._finish = self._make_finish()
        self._record: CrawlRecord | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._wake = asyncio.Event()
        self._is_hungry = True
        self._pumped_ms = 0
        self._folding = asyncio.Lock()
        self._restarted = False
        self._troubled: set[str] = set()  # loops whose last round failed
        self._left = False
        self.stopping = self.finished = False
        self._said_too_soon = False
        self.pages_before = 0  # pages of the whole crawl when it was last surveyed
        self._pages_surveyed = 0  # never more than Redis holds, whatever is under way
        self._pages_counted = 0  # of this node's own, what `pages_before` holds already
        self._unfolded = 0  # URLs in the inboxes of owned partitions
        self._rate_samples: deque[tuple[int, int]] = deque()

    @property
    def _has_budgets(self) -> bool:
        """Else nobody asks for in-degrees, nor for traps."""
        return self.config.budget.policy != NO_POLICY

    def _make_trap_signs(self, dns: DnsCache) -> tuple[SameContent | None, WildcardDns | None]:
        traps = self.config.traps
        if not (self._has_budgets and traps.share):
            return None, None
        same_content = SameContent(traps.same_share, self.pld_of, self.pld_key)
        return same_content, WildcardDns(traps.wildcard_hosts, dns.lookup, self.pld_key)

    def _make_outbox(self) -> Outbox:
        crawl, urls_max = self.config.crawl, self.config.frontier.outbox_urls_max
        return Outbox(self.node_id, crawl.name, urls_max, self._clock, self.link_graph, crawl.partitions)

    def _make_ownership(self) -> Ownership:
        file_work = FileWork(self._clock, self.config.frontier.lease_ms)
        return Ownership(
            self.config,
            self._client,
            self.membership,
            self.handout.held,
            lambda: self.handout.late_ms,
            self._clock,
            self._worker,
            UnhurriedFiles(self._may_rest, file_work.note_sign),
            file_work,
            self._reputation,
            self._paces,
        )

    def _make_address_check(self) -> AddressCheck:
        config = self.config
        lookups = Lookups(config, self._clock, self.pld_of, self._budget_of, self.wildcards)
        return AddressCheck(config.politeness, self._dns, lookups, self._aside, local_names(config.dns), self._on_fatal)

    def _make_passages(self) -> Passages:
        config = self.config
        spaces = Spaces(config.pace, self._paces, self.pld_of)
        return Passages(self.node_id, self._client, self._clock, self._paces, spaces, config.crawl.name)

    def _make_robots(self, fetch: Fetch) -> Robots:
        starts = RobotsStarts(self._addresses, self._passages, self._clock, self.handout.start_gaps.try_start_until)
        redirects = RobotsRedirects(
            self.config,
            self._client,
            self._clock,
            starts,
            self.speed.paced(fetch),
            self.partition_of_host,
            self._shared_hosts,
        )
        return Robots(self.config, self._client, self._clock, starts, redirects, self.handout.health.fails)

    def _make_aside(self) -> Aside:
        connections = self.config.politeness.host_connections
        return Aside(self._client, self.handout.held, self.ownership, connections, self._clock)

    def _make_finish(self) -> FinishCheck:
        crawl = self.config.crawl
        return FinishCheck(self._client, crawl.name, crawl.partitions, lambda: self._aside.blacklist.digest)

    def _make_control(self) -> Control:
        return Control(
            self.config,
            self._client,
            self._clock,
            self.speed,
            self._aside,
            self.pld_of,
            self._reputation.note_blacklist,
            self._paces,
        )

    def _make_exchange(self) -> Exchange:
        exchange = Exchange(
            self.config, self._client, self._clock, self.ownership, self.handout, self.outbox, self._gatekeeper
        )
        exchange.bytes_account = self._reputation.bytes_account
        self.ownership.reconciliation.note_ended = exchange.note_ended
        return exchange

    def __repr__(self) -> str:
        return f"<Node {self.node_id} {self.ownership!r} {self.handout!r} {self.outbox!r}>"

    # --- life

    async def start(self) -> None:
        """Join the crawl: record, lock, heartbeat, first claims, loops.

        Raises:
            ConfigError, CorruptionError: with what and the remedy.
            TransientStoreError: Redis is away.
        """
        await self.join()
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._loop(work), name=f"bigcrawl-{work.__name__}")
            for work in (self._pump, self._fold, self._beat, self._watch, self._steer, self._tidy)
        ]

    async def join(self) -> None:
        """Everything of `start` but the loops; raises the same."""
        await self._client.ping()
        for fault in await look_at_needs(self._client):
            logger.warning("%(fault)s", {"fault": fault})
        self._record = await open_record(self._client, self.config.crawl)
        self._reputation.begin()
        if self.config.dns.shared_answers:
            self._dns.store = self._answers
        await self.membership.wait_for_alike(self._client)
        self.membership.lock()
        await self._heartbeat()
        self.handout.lease_ends_ms = self._lease_end_ms(self._clock.monotonic_ms())
        if await self._control.hear_due():
            await self._refresh_budgets()
        await self._alive_during(self.ownership.rebalance())
        seen = await self.survey()
        self.membership.remove_locks(seen.named)
        self.pages_before = self._pages_surveyed = seen.pages
        self.finished = seen.is_empty and not seen.holdup and await self._finish.is_said(seen)
        await self.membership.note_taking(self._client)

    async def abandon(self) -> None:
        """Undo a start that failed half-way; what was claimed is taken over like a dead node's."""
        await self._gatekeeper.close()
        await self._stop_sharing()
        self._worker.shutdown(wait=True)
        self.membership.unlock(left=self._left or not self.ownership.has_claimed)

    async def _stop_sharing(self) -> None:
        if self._dns.store is self._answers:
            self._dns.store = None
        await self._answers.close()
        await self.robots.close()
        await self.ownership.damaged.close()
        if self.wildcards is not None:
            await self.wildcards.close()

    def stop(self) -> None:
        """Take nothing more; from now on the node's end, however it comes, speaks against no URL."""
        self.stopping = True
        self.handout.in_process.forget()

    async def close(self) -> Survey | None:
        """Leave: return what was not fetched, send what can be sent in a few seconds, release everything.

        Returns:
            A last look at the whole crawl; None when Redis is away.
        """
        self.stop()
        last: Survey | None = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._gatekeeper.close()
        await self._stop_sharing()
        try:
            async with asyncio.timeout(CLOSE_S):
                last = await self._say_goodbye()
        except (BigcrawlError, TimeoutError) as error:
            logger.warning(
                "Redis did not take this node's last words (%(error)s); what it held is fetched again when the "
                "crawl goes on",
                {"error": str(error) or "no answer in time"},
            )
        self._worker.shutdown(wait=not self.ownership.file_work.stands_still)
        self.membership.unlock(left=self._left)
        return last

    async def _say_goodbye(self) -> Survey:
        self._poll_ended()
        self.handout.return_all()
        if self._restarted:
            await self._recover()
        else:
            await self.ownership.settle_doubts()
        await self._flush()
        await self._end_and_take(take=False)
        await self.membership.note_taken_last(self._client, len(self.handout.held))
        await self.starts.leave_undone()
        async with self._folding:
            await self.ownership.release(list(self.ownership.owned.values()))
        await self._shared_hosts.leave()
        await self.membership.leave(self._client)
        self._left = not self.ownership.owned
        return await self.survey()

    # --- the engine's side

    def offer(self, url: QueuedUrl) -> None:
        """Take a discovered URL: on its way to its partition's inbox; no I/O."""
        self.outbox.offer(url, self.partition_of_host(url.host))
        if self.finished:  # an idle spider was given more to do
            self.finished = False
            self._said_too_soon = True

    def pld_of(self, host: str) -> str:
        """The pay-level domain of a host, by the crawl's own list of suffixes."""
        assert self._record is not None, "the node has not started"
        return self._record.suffixes.pld(host)

    @property
    def keys(self) -> Keys:
        """What makes the crawl's keys."""
        assert self._record is not None, "the node has not started"
        return self._record.keys

    @property
    def has_begun_crawl(self) -> bool:
        """Whether the crawl was not there before this node."""
        return self._record is not None and self._record.is_new

    @property
    def is_alone(self) -> bool:
        """Whether no other node of the crawl is known to live."""
        return self.membership.reports.keys() <= {self.node_id}

    def pld_key(self, pld: str) -> PldKey:
        """The key of a pay-level domain."""
        return self.keys.of_pld(pld)

    def partition_of_host(self, host: str) -> int:
        """The partition of a host's pay-level domain."""
        return self.keys.partition_of(self.pld_of(host), self.config.crawl.partitions)

    async def _budget_of(self, host: str) -> int:
        return await self.ownership.budget_of(self.partition_of_host(host), host)

    @property
    def is_crowded(self) -> bool:
        """Whether spiders must wait and nothing is taken: outbox or inboxes hold as much as they may."""
        inboxes_full = self._unfolded >= self.config.frontier.outbox_urls_max or self.outbox.unfolded.is_full
        return self.outbox.is_full or inboxes_full

    def wake(self) -> None:
        """There is something to send or room for more: let the pump go without waiting for a batch."""
        self._is_hungry = True
        self._wake.set()

    @property
    def pages(self) -> int:
        """Pages of the whole crawl, as far as this node knows."""
        return self.pages_before + self._exchange.pages - self._pages_counted

    @property
    def has_reached_max(self) -> bool:
        """Whether BIGCRAWL_MAX_PAGES pages are fetched, by the last survey.

        `pages` may count a page twice that is acknowledged while a survey is under way: good enough to take
        no more, not to stop.
        """
        return 0 < self.config.crawl.pages_max <= self._pages_surveyed

    async def survey(self) -> Survey:
        """The whole crawl at a glance."""
        return await survey(self._client, self.config.crawl.name, self.config.crawl.partitions)

    # --- start requests

    async def claim_start(self, digest: str) -> int:
        """Claim or renew the start requests: 1 ours, 0 another node's, 2 done."""
        answer = await self.starts.claim(digest)
        self.finished = self.finished and answer == 2
        return answer

    # --- loops

    async def _loop(self, work: Callable[[], Awaitable[float]]) -> None:
        """Run `work` for ever; it returns how long to rest."""
        while True:
            try:
                rest_s = await work()
                self._note_success(work.__name__)
            except RewoundError:
                self._restarted = True
                rest_s = 0.05
            except RedisRefusedError as error:  # nothing was done: there is nothing to bring in line
                rest_s = RETRY_S
                self._note_trouble(work.__name__, error)
            except (TransientStoreError, OwnershipLostError) as error:
                rest_s = RETRY_S
                self._note_trouble(work.__name__, error)
                if work == self._pump:
                    await self._revive_server()
            except BigcrawlError as error:
                if not (isinstance(error, CorruptionError) and self.ownership.set_apart_by(error)):
                    self._on_fatal(error)
                    return
                rest_s = RETRY_S
            except Exception as error:
                logger.exception("a loop of bigcrawl failed")
                self._on_fatal(BigcrawlError(f"{work.__name__} failed: {error!r}"))
                return
            await self._rest(rest_s, work)

    def _note_trouble(self, loop: str, error: BigcrawlError) -> None:
        """Say once that the node waits, whatever else fails until all loops are well again."""
        if not self._troubled:
            logger.warning("waiting: %(error)s", {"error": error})
        self._troubled.add(loop)

    def _note_success(self, loop: str) -> None:
        if loop in self._troubled and not (self._restarted or self._client.in_doubt):
            self._troubled.discard(loop)
            if not self._troubled:
                logger.info("the crawl goes on")

    async def _revive_server(self) -> None:
        """Start the embedded server again if it died; an outside one is its operator's."""
        if self._revive is None:
            return
        try:
            await asyncio.to_thread(self._revive)
        except (BigcrawlError, OSError) as error:
            logger.warning("the embedded server does not start: %(error)s", {"error": error})

    async def _rest(self, rest_s: float, work: Callable[[], Awaitable[float]]) -> None:
        if work == self._watch:
            await self._rest_until_idle(rest_s)
            return
        if work != self._pump:
            await asyncio.sleep(rest_s)
            return
        await asyncio.sleep(PUMP_BUSY_S)  # an engine that asks again and again is answered in batches
        if rest_s > PUMP_BUSY_S:
            alarm = asyncio.get_running_loop().call_later(rest_s - PUMP_BUSY_S, self._wake.set)
            await self._wake.wait()
            alarm.cancel()
        self._wake.clear()

    async def _rest_until_idle(self, rest_s: float) -> None:
        while rest_s > 0:
            await asyncio.sleep(min(rest_s, WATCH_IDLE_S))
            rest_s = 0 if self._is_idle() else rest_s - WATCH_IDLE_S

    async def _pump(self) -> float:
        self._poll_ended()
        if self._restarted:
            await self._recover()
        if self._client.in_doubt:
            await self.ownership.settle_doubts()
        if self._trials.have_news:
            await self._trials.flush()
        if not self._pays():
            return PUMP_BUSY_S
        self._is_hungry = False
        self._pumped_ms = self._clock.monotonic_ms()
        refused = await self._refusal_of(self._flush())
        # What ends frees room, which may be what Redis lacks.
        moved = await self._end_and_take(take=refused is None)
        if refused is not None:
            raise refused
        busy = moved or len(self.handout.held) > 0
        return PUMP_BUSY_S if busy else PUMP_IDLE_S

    def _pays(self) -> bool:
        """Whether a round trip is worth its CPU now: a page's share of it shrinks with the batch."""
        if self._is_hungry or self.handout.held.has_safe(PUMP_URLS):
            return True
        if self.handout.is_idle and self.handout.held.has_safe(1):
            return True
        return self._clock.monotonic_ms() - self._pumped_ms >= PUMP_PATIENCE_MS

    async def _flush(self) -> None:
        """Send the outbox; the word that the crawl is finished goes first, or a restart would believe it."""
        if self._said_too_soon:
            await self._finish.take_back()
            self._said_too_soon = False
        await self.outbox.flush(self._client)
        if await self._aside.flush():
            self.wake()  # the hosts' next URLs go the same way
        await self._shared_hosts.tell()

    async def _fold(self) -> float:
        if self._restarted or self._client.in_doubt:
            return FOLD_S  # the pump settles it first
        starved = self._is_starved()
        async with self._folding:
            self._note_inboxes()
            idle = not len(self.handout.held) and not self.outbox.waiting
            refused = await self._refusal_of(self._step(starved=starved, idle=idle))
            await self.ownership.make_durable_due()
            if refused is not None:
                raise refused
        return FOLD_STARVED_S if starved else FOLD_S

    async def _step(self, *, starved: bool, idle: bool) -> None:
        if await self.ownership.step_due(starved=starved, idle=idle):
            self.wake()

    @staticmethod
    async def _refusal_of(work: Awaitable[None]) -> RedisRefusedError | None:
        """Do the work; the error if Redis refuses a part of it, so that other work can be done before it is raised."""
        try:
            await work
        except RedisRefusedError as error:
            return error
        return None

    def _is_starved(self) -> bool:
        """Whether the node has too little to fetch."""
        return len(self.handout.held) < max(1, self.config.frontier.in_process_max // 2)

    def _may_rest(self) -> bool:
        """Whether merges may take their time; asked from the worker thread."""
        return not (self.stopping or self._is_starved())

    async def _beat(self) -> float:
        if not self.handout.has_lease:
            self.handout.break_off()  # the lease is renewed only when nothing of the time before it can go on
        if self._restarted or self.ownership.file_work.look():
            return RETRY_S
        await self._say_alive()
        if self.outbox.unfolded.wants_look:
            await self.outbox.unfolded.look(self._client)
        if self._is_idle():
            return WATCH_IDLE_S
        # A look at each partition costs as much as several pages: with enough to fetch there is no haste.
        return BEAT_S if self._is_starved() else max(BEAT_S, min(BEAT_FED_S, self.config.frontier.lease_ms / 8000))

    async def _say_alive(self) -> None:
        await self._heartbeat()
        await self._renew()

    async def _alive_during(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what may take longer than a lease while no loop runs: opening many partitions on a slow disk."""
        beating = asyncio.create_task(self._keep_saying_alive())
        try:
            await work
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def _keep_saying_alive(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            if not self.ownership.file_work.look():
                with suppress(BigcrawlError):  # the work meets the same error, and says so
                    await self._say_alive()

    async def _watch(self) -> float:
        if self._restarted:
            return RETRY_S
        async with self._folding:
            await self.ownership.rebalance()
            owned = list(self.ownership.owned.values())
            await tend_snoozed(self._client, owned, self._clock.monotonic_ms(), self._aside.blacklist)
            await self._refresh_budgets()
            await self._last_hosts.look(is_quiet=self._is_quiet())
        await self.starts.renew()
        if self.config.crawl.pages_max:
            counted = self._exchange.pages
            self.pages_before = self._pages_surveyed = (await self.survey()).pages
            self._pages_counted = counted
        offered = self.outbox.offered
        # What was blacklisted may be wanted again by now: a crawl is not finished before it was asked.
        if self._is_idle() and await self._control.hear():
            self._look_at_snoozed()
        elif self._is_idle() and await self._finish.look():
            self.finished = offered == self.outbox.offered
            self._said_too_soon = not self.finished
            self.handout.wake_engine()
        self._end_held_up()
        return WATCH_IDLE_S if self._is_idle() else WATCH_S

    def _end_held_up(self) -> None:
        """End a crawl that would go on for ever: all that is left is what nobody can read."""
        is_stuck = self._finish.stuck_looks >= STUCK_LOOKS and not self.ownership.damaged.is_looking
        if is_stuck and self._is_idle() and self.config.crawl.close_when_empty:
            self._on_fatal(ConfigError(self._finish.holdup))

    async def _steer(self) -> float:
        if self.handout.crowd.look(self.handout.held):
            self._wake_engine()
        if self._restarted:
            return RETRY_S
        if await self._control.hear_due():
            self._look_at_snoozed()
            self.wake()
        if self.speed.wants(self.handout.buffered):
            await self.speed.ask(self.handout.buffered, len(self.membership.reports))
        return STEER_SLOWED_S if self.speed.limits else STEER_S

    async def _tidy(self) -> float:
        await asyncio.to_thread(give_memory_back)
        return TIDY_S

    def _look_at_snoozed(self) -> None:
        """The blacklist is another one: so may be what is waited for."""
        for mine in self.ownership.owned.values():
            mine.away.look_again()

    def _ask_again(self, held: HeldUrl) -> None:
        self._gatekeeper.offer(held)

    def _wake_engine(self) -> None:
        if self._tasks:  # while the node joins, the engine is not open yet
            self.handout.wake_engine()

    async def _refresh_budgets(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._reputation.stale_ms:
            self._reputation.stale_ms = now_ms + REFRESH_MS  # unless somebody says otherwise meanwhile
            try:
                await self.ownership.refresh_budgets()
            except RedisRefusedError:
                self._reputation.stale_ms = now_ms  # it has no haste, and what comes after it has
            except BigcrawlError:
                self._reputation.stale_ms = now_ms
                raise

    def _is_quiet(self) -> bool:
        """Whether nothing is on its way from this node to an inbox, and no start requests are under way here."""
        return not self.outbox.waiting and not self.starts.are_under_way

    def _is_idle(self) -> bool:
        quiet = not len(self.handout.held) and not self.outbox.waiting
        return quiet and all(not mine.inbox_moved and not mine.waiting for mine in self.ownership.owned.values())

    async def _heartbeat(self) -> None:
        report = {
            "token": self.membership.token,
            "capacity": 1.0,
            "held": len(self.handout.held),
            "fetches_max": self.handout.crowd.limit,
            "outbox": self.outbox.waiting,
            "pages": self._exchange.pages,
            "rate": round(self._rate(), 1),
            "partitions": len(self.ownership.owned),
            "only_failing": self._last_hosts.is_all,
        }
        await self.membership.beat(self._client, report)
        await self._shared_hosts.meet()

    def _rate(self) -> float:
        """Pages a second that this node has acknowledged of late."""
        now_ms = self._clock.monotonic_ms()
        self._rate_samples.append((now_ms, self._exchange.pages))
        while self._rate_samples[0][0] < now_ms - RATE_MS:
            self._rate_samples.popleft()
        since_ms, before = self._rate_samples[0]
        return 1000 * (self._exchange.pages - before) / (now_ms - since_ms) if now_ms > since_ms else 0.0

    async def _renew(self) -> None:
        """See how the owned partitions stand, and renew their leases by it."""
        sent_ms = self._clock.monotonic_ms()
        owned, calls = self.ownership.leases()
        views = await self._client.run(calls)
        unfolded = 0
        for mine, view in zip(owned, views, strict=False):
            if not view.owned:
                self.ownership.lose(mine)
                continue
            mine.note_inbox(view)
            unfolded += mine.unfolded_urls
            if view.next_due_ms >= 0:
                mine.note_due_by(sent_ms + view.next_due_ms - view.now_ms)
        self._unfolded = unfolded
        if not self.ownership.is_reclaiming:
            self.handout.lease_ends_ms = self._lease_end_ms(sent_ms)

    def _lease_end_ms(self, sent_ms: int) -> int:
        lease_ms = self.config.frontier.lease_ms
        return sent_ms + lease_ms - min(LEASE_MARGIN_MS, lease_ms // 4)

    def _note_inboxes(self) -> None:
        """Batches this node just sent to its own partitions need no look to be known."""
        for partition in self.outbox.take_flushed_partitions():
            mine = self.ownership.owned.get(partition)
            if mine is not None:
                mine.note_inbox_moved()

    async def _recover(self) -> None:
        """Redis was restarted and may have forgotten its last second: bring both sides in line."""
        async with self._folding:
            await self._client.accept_restart()
            try:
                record = await open_record(self._client, self.config.crawl)
                if self._record is None or record.crawl_id != self._record.crawl_id:
                    raise ConfigError(
                        "Redis came back without this crawl; restore its data, or start anew (BIGCRAWL_FRESH=1)"
                    )
                await self._alive_during(self.ownership.reclaim_all())
                self.outbox.tell_again()
                self._exchange.tell_again()
                self._trials.tell_again()
                self._reputation.publish_again()
                self._shared_hosts.note_restart()
                await self.starts.end_again()
            except RedisRestartedError:
                raise
            except TransientStoreError:
                self._client.run_id = "unknown"  # half done: the next try begins anew
                raise
            self._restarted = False
        logger.info("Redis was restarted; partitions were claimed again and brought in line")

    # --- taking and ending

    async def _end_and_take(self, *, take: bool) -> bool:
        """Acknowledge what is safe and take what there is room for; True when anything moved.

        Room that was kept for partitions which then had less to give goes to the next ones at once, while the engine
        has nothing to do.
        """
        exchange = self._exchange
        moved = await exchange.run(acknowledge=self._may_acknowledge(), urls_max=self._room() if take else 0)
        for _ in range(TAKES_MAX):
            if not take or self.handout.buffered or not exchange.has_more_due or not (room := self._room()):
                break
            moved = await exchange.run(acknowledge=False, urls_max=room) or moved
        return moved

    def _room(self) -> int:
        """URLs that may be taken now; none when the node stops, or cannot keep what their pages would bring."""
        if self.stopping or not self._shared_hosts.may_take:
            return 0
        if not self._may_take() or self._clock.monotonic_ms() >= self.handout.lease_ends_ms:
            return 0
        if self.is_crowded or self._fold.__name__ in self._troubled:
            return 0  # what cannot be folded, on a full disk for instance, must not pile up in Redis
        if self.ownership.file_work.stands_still:
            return 0
        room = self.config.frontier.in_process_max - len(self.handout.held)
        if self.speed.limits:
            room = min(room, self.speed.room(self.handout.buffered + self._gatekeeper.waiting))
        if self.config.crawl.pages_max:
            room = min(room, self._pages_left() - self.handout.soon_ended)
        return max(0, room)

    def _pages_left(self) -> int:
        """What is this node's to fetch of what BIGCRAWL_MAX_PAGES left at the last survey; busy nodes share it."""
        others = sum(
            report.get("held", 0) > 0 for name, report in self.membership.reports.items() if name != self.node_id
        )
        left = self.config.crawl.pages_max - self.pages_before
        return ceil(left / (1 + int(others))) - (self._exchange.pages - self._pages_counted)
