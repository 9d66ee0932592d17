"""Hosts that other crawls on the same Redis may fetch too: one crawl holds a host for each fetch.

Ready heaps are per crawl. So each node reads a list of all crawls' nodes with its heartbeat. While there are other
crawls, each fetch holds its host, which then rests for the longer delay of the crawl that had it and the one that wants
it. The crawl refused first gets it next.

    alone ---- another crawl is listed ----> holds the hosts being fetched, and confirms it with its next sign of life
      ^                                         |
      +------------ no other is listed ---------+

A crawl that joins others takes no URL before all their nodes have confirmed. A node that leaves stays listed until its
hosts have rested.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.gates.batcher import QuestionBatcher
from bigcrawl.scheduler.gates.interfaces import WAIT_MS_MAX, Closed
from bigcrawl.scheduler.records.at_gates import Start
from bigcrawl.scheduler.records.held import HeldUrl, Stage

if TYPE_CHECKING:
    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.gates.delays import HostDelays
    from bigcrawl.scheduler.records.held_urls import HeldUrls

logger = logging.getLogger(__name__)

START_MS: Final = 30_000
"""After this time, a fetch that has not begun must hold its host again."""

TRIES_MAX: Final = 4


@dataclass(slots=True)
class _HeldHost:
    """A held host, with times by the crawl's clock; the ticket is when it was last asked for."""

    users: int = 0
    ticket: int = 0
    ended_ms: int = 0
    free_ms: int = 0


class SharedHosts:
    """The hosts that a node holds while there are other crawls.

    Attributes:
        are_kept: there are other crawls, so hosts must be held.
        may_take: all nodes of other crawls hold the hosts that they fetch.
    """

    def __init__(
        self, config: Config, node: str, client: RedisClient, clock: Clock, paces: HostDelays, urls: HeldUrls
    ) -> None:
        self._policy = config.politeness
        self._crawl = config.crawl.name
        self._lease_ms = config.frontier.lease_ms
        self._node = node
        self._client = client
        self._clock = clock
        self._paces = paces
        self._calls: QuestionBatcher[scripts.Call[int], int] = QuestionBatcher(client.run_each)
        self._urls = urls
        urls.tell_left_hosts_to(self.record_end)
        self._holds: dict[str, _HeldHost] = {}
        self._left: list[tuple[str, _HeldHost]] = []
        self._longest_ms = 0
        self._rests_until_ms = 0  # by the crawl's clock: the last rest of all hosts so far
        self._holds_all = True  # a new node fetches nothing yet
        self.are_kept = False
        self.may_take = True

    @property
    def company(self) -> tuple[bool, bool]:
        return self.are_kept, self._holds_all

    async def record_company(self, company: scripts.CrawlCompany) -> None:
        self.are_kept, self._longest_ms = company.has_others, company.longest_ms
        if self.may_take and not company.all_hold:
            logger.info("no URLs are taken until the nodes of the other crawls on this Redis know about this crawl")
        self.may_take = company.all_hold
        if not self.are_kept:
            self._holds_all = False
        elif not self._holds_all:
            await self._hold_all()
            self._holds_all = True

    def longest_delay_ms(self) -> int:
        return self._longest_ms

    def record_restart(self) -> None:
        self._holds_all = False

    async def leave(self) -> None:
        await self.report_released()
        await self._client.run([self.sign_of_life(leave=True)])

    def sign_of_life(self, *, leave: bool = False) -> scripts.Call[scripts.CrawlCompany]:
        return scripts.meet_crawls(
            self._node,
            self._crawl,
            self._lease_ms,
            max(self._policy.host_delay_ms, self._policy.server_delay_ms),
            holds=self._holds_all,
            leave=leave,
            rest_ms=max(0, self._rests_until_ms - self._client.now_ms()),
        )

    async def hold(self, held: HeldUrl) -> None:
        """Hold the host of a URL for its fetch, if there are other crawls; raise Closed if one has it for long."""
        before = held.granted.of_host
        if not self.are_kept or (before.granted_ms and self._clock.monotonic_ms() <= before.until_ms):
            return
        if before.granted_ms:
            held.hold_host(Start(0, 0))
            self._end_use(held.host)
        ticket = await self.hold_host(held.host, held.crawl_delay_ms or 0)
        held.hold_host(self._start_after(ticket))
        if held.stage is Stage.ENDED:
            self._end_use(held.host)
            raise Closed(retry_ms=0)

    async def hold_host(self, host: str, crawl_delay_ms: int = 0) -> int:
        asked_ms = min(crawl_delay_ms, self._policy.crawl_delay_max_ms)
        delay_ms = max(self._paces.host_delay_ms(host), asked_ms)
        wait_ms = 0
        for _ in range(TRIES_MAX):
            ticket = self._begin_use(host)
            try:
                wait_ms = await self._calls.ask(self._hold_call(host, ticket, delay_ms))
            except BaseException:
                self._end_use(host)
                raise
            if not wait_ms:
                return ticket
            self._forget_use(host)
            if wait_ms > WAIT_MS_MAX:
                break
            await asyncio.sleep(wait_ms / 1000)
        raise Closed(retry_ms=wait_ms)

    def leave_host(self, host: str, rest_ms: int) -> None:
        self._end_use(host, self._client.now_ms(), rest_ms)

    def record_end(self, held: HeldUrl, rest_ms: int | None) -> None:
        """Record that a URL is about to leave. If `rest_ms` is None, its host rests as long as a fetch may take."""
        was_asked = not held.refusal or bool(held.robots_failure) or held.rest_after_head_ms >= 0
        was_fetched = held.stage in (Stage.ROBOTS, Stage.STARTED) and was_asked
        if rest_ms is None:
            rest_ms = self._policy.fetch_deadline_ms
        self._end_use(held.host, self._crawls_ms(held.ended_ms) if was_fetched else 0, rest_ms)

    async def report_released(self) -> None:
        """Report the hosts no longer held to Redis; after a failure, the next call does."""
        left, self._left = self._left, []
        if not left:
            return
        kept_ms = max(self._longest_ms, self._policy.host_delay_ms)
        calls = [
            scripts.leave_host(host, self._crawl, hold.ticket, hold.ended_ms, hold.free_ms, kept_ms)
            for host, hold in left
        ]
        try:
            await self._client.run(calls)
        except BaseException:
            self._left = left + self._left
            raise

    async def _hold_all(self) -> None:
        ended = self._urls.recently_ended()
        for held in self._urls:
            if held.stage is Stage.ENDED:
                ended.append(held)
            elif not held.granted.of_host.granted_ms:
                held.hold_host(self._start_after(self._begin_use(held.host)))
        tickets = {host: hold.ticket for host, hold in self._holds.items()}
        for held in ended:
            if held.ended_ms and held.end is not None:
                tickets[held.host] = self._begin_use(held.host)
                self._end_use(held.host, self._crawls_ms(held.ended_ms), held.end.delay_ms)
        delay_ms = self._policy.host_delay_ms
        await self._client.run(
            [self._hold_call(host, ticket, delay_ms, is_under_way=True) for host, ticket in tickets.items()]
        )

    def _crawls_ms(self, ended_ms: int) -> int:
        """Convert the end of a fetch from the boot clock to the crawls' clock; `ended_ms` 0 means now."""
        return self._client.now_ms() - (self._clock.monotonic_ms() - ended_ms if ended_ms else 0)

    def _start_after(self, ticket: int) -> Start:
        return Start(0, self._clock.monotonic_ms() + START_MS, ticket)

    def _hold_call(self, host: str, ticket: int, delay_ms: int, *, is_under_way: bool = False) -> scripts.Call[int]:
        most_ms = START_MS + self._policy.fetch_deadline_ms
        return scripts.hold_host(host, self._crawl, delay_ms, most_ms, ticket, is_under_way=is_under_way)

    def _begin_use(self, host: str) -> int:
        hold = self._holds.setdefault(host, _HeldHost())
        hold.users += 1
        hold.ticket = max(hold.ticket, self._client.now_ms())
        return hold.ticket

    def _forget_use(self, host: str) -> None:
        hold = self._holds[host]
        hold.users -= 1
        if not hold.users:
            del self._holds[host]

    def _end_use(self, host: str, ended_ms: int = 0, rest_ms: int = 0) -> None:
        hold = self._holds[host]
        hold.users -= 1
        if ended_ms:
            hold.ended_ms = max(hold.ended_ms, ended_ms)
            hold.free_ms = max(hold.free_ms, ended_ms + rest_ms)
            self._rests_until_ms = max(self._rests_until_ms, hold.free_ms)
        if not hold.users:
            self._left.append((host, self._holds.pop(host)))
