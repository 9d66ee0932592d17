"""Several nodes crawl a small web whose answer is known, over an unreliable network and a Redis that forgets.

The nodes are real ones on real files, their loops turned by hand; the engine is this module: what a node hands out is
fetched, its links are offered, and it ends. Each fetch is held against those before it: whether its host was left in
peace, and whether its URL may come again at all, by P2 of docs/promises.md.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import redis

from bigcrawl.exceptions import BigcrawlError, OwnershipLostError, TransientStoreError
from bigcrawl.redisdb.reply_errors import RedisRestartedError
from bigcrawl.scheduler.records.member import pack_member
from bigcrawl.scheduler.records.outcomes import ABORTED
from bigcrawl.scheduler.records.queued_url import QueuedUrl
from tests.support.redis_servers.unreliable_redis import Network, UnreliableClient
from tests.unit.scheduler.world import World, queued

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sized
    from pathlib import Path

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.held import HeldUrl

PAGES = 40
TURN_MS = 500
FORGETTABLE_MS = 3_000  # what ended so shortly before a moment that Redis forgot may be fetched again
SNAPSHOTS_MS = 40_000
TRIES_MAX = 2
SETTLE_TURNS = 600
SETTINGS: dict[str, Any] = {
    "partitions": 4,
    "lease_seconds": 8,
    "durable_seconds": 2,
    "fetch_deadline": 20,
    "step_seconds": 1,
}


@dataclass(frozen=True, slots=True)
class Sites:
    """The web, and how its hosts are crawled; page 0 leads to every other one."""

    hosts: int
    plds: int
    delay_ms: int
    in_process_max: int

    def url_of(self, page: int) -> str:
        return f"http://h{page % self.hosts}.d{page % self.plds}.example/{page}"

    def links_of(self, url: str) -> list[str]:
        page = int(url.rpartition("/")[2])
        targets = {2 * page + 1, 2 * page + 2, (7 * page + 3) % PAGES}
        return [self.url_of(target) for target in sorted(targets) if target < PAGES]


MANY_HOSTS = Sites(hosts=5, plds=3, delay_ms=1_000, in_process_max=6)
FEW_HOSTS = Sites(hosts=2, plds=1, delay_ms=100, in_process_max=16)
"""Their URLs are taken ahead of their turns, see `handout.lanes`."""
NO_DELAY = Sites(hosts=2, plds=1, delay_ms=0, in_process_max=16)
SITES = [MANY_HOSTS, FEW_HOSTS, NO_DELAY]
SITES_IDS = ["many hosts", "few hosts", "no delay"]


class LeapingLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers follow the test's clock alone: who sleeps wakes when `leap` has passed that moment."""

    def __init__(self) -> None:
        self._now_s = 0.0
        super().__init__()

    def time(self) -> float:
        return self._now_s

    def leap(self, ms: int) -> None:
        self._now_s += ms / 1000

    @property
    def is_quiet(self) -> bool:
        """Whether every task but the one that asks waits for a timer, or for what is outside of the loop."""
        ready: Sized = self._ready  # type: ignore[attr-defined]
        return not ready


@dataclass(slots=True)
class FetchSeen:
    """One fetch as the web sees it; `end_ms` is None while it is under way."""

    held: HeldUrl
    epoch: int
    start_ms: int
    end_ms: int | None = None
    may_repeat: bool = False  # it was to be tried again, or Redis forgot it

    @property
    def url(self) -> str:
        return self.held.url

    @property
    def host(self) -> str:
        return self.held.host


class Trial(World):
    """The world of such a crawl; call `close` whatever becomes of it."""

    def __init__(
        self,
        tmp_path: Path,
        crawl: str,
        redis_url: str,
        sites: Sites = MANY_HOSTS,
        *,
        may_forget: bool = True,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.sites = sites
        self.server = redis.Redis.from_url(redis_url)
        self.network = Network(self.server, crawl)
        chosen = {"host_delay": sites.delay_ms / 1000, "in_process_max": sites.in_process_max}
        super().__init__(tmp_path, crawl, redis_url, {**SETTINGS, **chosen, **(settings or {})})
        self.fetches: list[FetchSeen] = []
        self.under_way: dict[Node, list[FetchSeen]] = {}
        self.may_forget = may_forget  # Redis: then each turn is kept for `rewind`
        self.snapshots: deque[tuple[int, dict[bytes, tuple[int, bytes]]]] = deque()

    def new_client(self) -> RedisClient:
        assert self.config.crawl.redis_url is not None
        self.clients.append(UnreliableClient(self.config.crawl.redis_url, self.network, self.clock_for_clients))
        return self.clients[-1]

    @property
    def clock_for_clients(self) -> Any:
        return self.clock

    @property
    def now_ms(self) -> int:
        return self.clock.monotonic_ms()

    # --- nodes

    async def begin(self) -> None:
        """One node with one seed, safe in an inbox."""
        node = await self.start_node()
        assert node is not None
        node.offer(queued(self.sites.url_of(0))[0])
        await node.pump.flush()
        await self.pass_time(0)

    async def start_node(self) -> Node | None:
        """A node that has joined, or None where the network kept it from that."""
        node = self.new_node()
        try:
            await node.arrival.join()
        except TransientStoreError:
            await node.departure.abandon()
            self.nodes.remove(node)
            return None
        self.under_way[node] = []
        node.handout.break_off = lambda: self.break_off(node)
        return node

    async def kill(self, node: Node) -> None:
        """kill -9: the node says nothing more, and its lock is free."""
        for fetch in self.under_way.pop(node):
            fetch.end_ms = self.now_ms
        self.nodes.remove(node)
        await node.departure.abandon()

    async def turn_loop(self, node: Node, work: Callable[[], Awaitable[float]]) -> None:
        """One round of one of its loops, as `LoopRunner` has it."""
        try:
            await work()
        except RedisRestartedError:
            node.parts.troubles.record_restart()
        except (TransientStoreError, OwnershipLostError):
            return  # the client knows what is in doubt now
        except BigcrawlError as error:
            self.fatal.append(error)

    async def turn_node(self, node: Node) -> None:
        """All loops of the node, once; what it hands out is on the wire from then on."""
        for work in (node.guard.turn, node.pump.turn, node.fold.turn, node.beat.turn, node.watch.turn):
            await self.turn_loop(node, work)
        await self._hand_out(node)

    async def _hand_out(self, node: Node) -> None:
        await self._decide(node)
        while (held := node.handout.buffer.pop()) is not None:
            self._record_start(node, held)

    async def _decide(self, node: Node) -> None:
        """Let the node decide what it can decide before time goes on, however long that takes."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, LeapingLoop)
        while node.parts.gates.gatekeeper._tasks:
            await asyncio.sleep(0)
            if loop.is_quiet and not self.network.under_way:
                break

    async def turn_all(self) -> None:
        """Half a second for everybody."""
        await self.pass_time(TURN_MS)
        for node in list(self.nodes):
            await self.turn_node(node)

    async def pass_time(self, ms: int) -> None:
        self.clock.advance(ms)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, LeapingLoop)
        loop.leap(ms)
        if not self.may_forget:
            return
        self.snapshots.append((self.now_ms, self.network.snapshot()))
        while len(self.snapshots) > 1 and self.snapshots[0][0] < self.now_ms - SNAPSHOTS_MS:
            self.snapshots.popleft()

    # --- the web

    def _record_start(self, node: Node, held: HeldUrl) -> None:
        now_ms = max(self.now_ms, held.due_ms)  # the downloader waits for the last milliseconds
        epoch = node.ownership.owned[held.partition].identity.epoch
        for other in self.fetches:
            if other.host == held.host:
                self._check_rest(other, held, now_ms)
            if other.url == held.url:
                is_known = other.epoch == epoch or other.held.is_end_confirmed
                assert other.may_repeat or not is_known, f"{held.url} again, after {other}"
        fetch = FetchSeen(held, epoch, now_ms)
        self.fetches.append(fetch)
        self.under_way[node].append(fetch)

    def _check_rest(self, other: FetchSeen, held: HeldUrl, now_ms: int) -> None:
        """One connection a host, and its delay between two fetches; none takes longer than its deadline."""
        deadline_ms = other.start_ms + self.config.politeness.fetch_deadline_ms
        end_ms = deadline_ms if other.end_ms is None else min(other.end_ms, deadline_ms)
        assert end_ms <= now_ms, f"two connections to {held.host}: {other.url} and {held.url}"
        rested_ms = now_ms - end_ms
        assert rested_ms >= self.sites.delay_ms, f"{held.host} after {rested_ms} ms: {other.url}, {held.url}"

    def may_end(self, node: Node) -> bool:
        """Whether the node fetches anything by now."""
        return bool(self.under_way[node]) and self.under_way[node][0].start_ms <= self.now_ms

    async def end_one(self, node: Node, *, again: bool = False) -> None:
        """The node's oldest fetch is over: its links are offered, or it is to be tried again."""
        if not self.may_end(node):
            return
        fetch = self.under_way[node].pop(0)
        held, fetch.end_ms = fetch.held, self.now_ms
        fields = held.fields
        if again and fields.attempts < TRIES_MAX:
            url = QueuedUrl(fields.key, held.host, fields.priority, fields.flags, fields.body)
            held.next_try = pack_member(fields.seq, url, fields.attempts + 1)
            held.outcome = "status:500"
            fetch.may_repeat = True
        else:
            self._offer_links(node, held.url)
            held.outcome = "status:200"
        node.handout.fetches.end(held)
        await self._hand_out(node)  # the engine asks for more at once

    def _offer_links(self, node: Node, page: str) -> None:
        urls = self.sites.links_of(page)
        for at in node.outbox.remember_each(node.crawl.keys.signed_marks_of(urls)):
            node.offer(queued(urls[at])[0])

    def break_off(self, node: Node) -> None:
        """What the node has under way is given up, as its engine does when the lease is over."""
        for fetch in self.under_way[node]:
            fetch.end_ms = self.now_ms
            fetch.may_repeat = True
            fetch.held.outcome = ABORTED
            node.handout.fetches.end(fetch.held)
        self.under_way[node] = []

    # --- a Redis that forgets

    def rewind(self, by_ms: int) -> None:
        """Redis restarts with what it held so long ago."""
        then_ms, snapshot = next(
            (each for each in reversed(self.snapshots) if each[0] <= self.now_ms - by_ms), self.snapshots[0]
        )
        self.restart(then_ms, snapshot)

    def restart(self, then_ms: int, snapshot: dict[bytes, tuple[int, bytes]]) -> None:
        """Redis restarts with what it held at that time."""
        for fetch in self.fetches:
            fetch.may_repeat |= fetch.end_ms is None or fetch.end_ms >= then_ms - FORGETTABLE_MS
        self.snapshots = deque(each for each in self.snapshots if each[0] <= then_ms)
        self.network.rewind(snapshot)

    # --- the end

    async def settle(self) -> None:
        """Nothing goes wrong any more: the crawl ends by itself, and is complete."""
        self.network.plans.clear()
        while self.network.deliver():
            pass
        if not self.nodes:
            assert await self.start_node() is not None
        for _ in range(SETTLE_TURNS):
            await self.turn_all()
            for node in self.nodes:
                for _ in list(self.under_way[node]):
                    await self.end_one(node)
            assert not self.fatal, self.fatal
            if all(node.progress.is_finished for node in self.nodes):
                break
        assert all(node.progress.is_finished for node in self.nodes), (
            f"the crawl does not end: {await self.nodes[0].progress.survey()}"
        )
        seen = await self.nodes[0].progress.survey()
        assert not seen.urls_uncounted, f"in no place: {seen}"
        missing = {self.sites.url_of(page) for page in range(PAGES)} - {fetch.url for fetch in self.fetches}
        assert not missing, f"never fetched: {sorted(missing)}"

    async def close(self) -> None:
        await super().close()
        self.network.delete_all()
        self.server.close()
