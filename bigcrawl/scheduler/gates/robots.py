"""Robots rules of authorities: asked for before a host's first page, kept for all nodes (step 10).

A robots.txt is fetched in the place of a taken URL, which goes back to its queue for the host's delay. So
the fetch is as polite as any page: the host is busy meanwhile, and nobody else asks for the same file.

    known, young         -> used
    in the host record   -> used: another node or an earlier run fetched it
    on the shelf         -> used: the host record had no room for it, or has expired
    else                 -> fetched. 2xx, 4xx: kept for a day, or as Cache-Control has it. No answer, 5xx, 429: the last
                            good copy, for `STALE_MS` beyond its time in the host record, holds on, and is asked
                            again with back-off. Without one all is forbidden, and the host has failed: it backs off, is
                            snoozed and retired like any other, and its URLs wait. Only where the host itself is well,
                            so that one authority alone is out of reach (https where there is only http), do that
                            authority's URLs end, as unreachable, after `ALONE_MAX` more tries.

A redirect to another host borrows that host, so that its delay and its one connection hold for it too.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bigcrawl.exceptions import CorruptionError
from bigcrawl.politeness.backoff_policy import OVERLOADED, retry_after_ms
from bigcrawl.politeness.robots_policy import (
    REDIRECTS_MAX,
    Rules,
    Verdict,
    agent_token,
    decide,
    kept_ms,
    read_record,
    robots_url,
    write_record,
)
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.redisdb.scripts import ANSWERS
from bigcrawl.scheduler.gates.batcher import Gathered
from bigcrawl.scheduler.gates.closed import Closed
from bigcrawl.scheduler.gates.fetched import Fetched
from bigcrawl.scheduler.gates.robots_store import RulesShelf
from bigcrawl.scheduler.records.held import Stage
from bigcrawl.scheduler.records.passage import MISSED, UNASKED
from bigcrawl.url.canonical import host_of, join

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.scheduler.gates.doors import Doors
    from bigcrawl.scheduler.gates.fetched import Fetch
    from bigcrawl.scheduler.gates.shared_hosts import SharedHosts
    from bigcrawl.scheduler.records.held import HeldUrl


RULES_BYTES_MAX = 48 << 20  # of memory, about: 100,000 hosts that share a few files, or 20,000 with one of their own
ENTRY_BYTES, LINE_BYTES, CHAR_BYTES = 400, 250, 4  # of an authority, and of rules
STALE_MS = 7 * 86_400_000  # how long the host record keeps rules beyond their time, should the server err then
ALONE_MAX = 2  # failures in a row, while its host does not fail: it is the authority that is out of reach
BORROW_TRIES_MAX = 30
BORROW_WAIT_MS_MAX = 2_000
BORROW_DOORS_MS_MAX = 5_000  # it is given back when its server has no start for it so soon
BORROW_AHEAD_MS_MAX = 10_000  # a start that lies further ahead is not waited for with the host in hand


@dataclass(frozen=True, slots=True)
class KnownRules:
    """Rules with their end on the monotonic clock; past it they are the last good copy, unless they are "unreachable".

    Attributes:
        attempts: fetches in a row without an answer.
        alone: those of them, the last ones, when the host did not fail.
    """

    rules: Rules
    expires_ms: int
    reason: str
    attempts: int = 0
    alone: int = 0


IGNORED = KnownRules(Rules.allow_all(), 1 << 62, "ignored")


class Robots:
    """The node's rules, and how they are come by."""

    def __init__(
        self,
        config: Config,
        client: RedisClient,
        doors: Doors,
        clock: Clock,
        fetch: Fetch,
        partition_of_host: Callable[[str], int],
        shared_hosts: SharedHosts | None = None,
    ) -> None:
        self._shared_hosts = shared_hosts
        self._crawl = config.crawl.name
        self._node = config.crawl.node
        self._policy = config.politeness
        self._records_max = max(8, config.frontier.host_records // config.crawl.partitions)
        self._bytes_max = config.frontier.robots_bytes // config.crawl.partitions
        self._client = client
        self._records: Gathered[tuple[str, ...], bytes | None] = Gathered(client.commands)
        self._calls: Gathered[scripts.Call[int], int] = Gathered(client.run_each)
        self._doors = doors
        self._clock = clock
        self._fetch = fetch
        self._partition_of_host = partition_of_host
        self._agent = agent_token(config.politeness.agent)
        self._shelf = RulesShelf(config.crawl.crawl_dir)
        self._rules: OrderedDict[str, KnownRules] = OrderedDict()
        self._size = 0  # of `_rules`
        self._users: dict[Rules, tuple[Rules, int]] = {}  # how many of `_rules` have the same
        self._under_way: set[str] = set()
        self.fetched = 0
        self.host_fails: Callable[[str], bool] = _always
        """Whether the last that is known of a host is a failure."""
        self.start: Callable[[tuple[tuple[str, int], ...], int], int] = _at_once
        """Asked before each fetch, as `Handout.start_aside`."""
        self.tell_sitemaps: Callable[[str, list[str]], Awaitable[None]] | None = None
        """Called with the URL of a robots.txt and those of the sitemaps in it, before its rules are kept for all."""

    def __repr__(self) -> str:
        return f"<Robots rules={len(self._rules)} under_way={len(self._under_way)} fetched={self.fetched}>"

    def known(self, authority: str) -> KnownRules | None:
        """The rules if they are here and have not expired; no I/O."""
        if not self._policy.obey_robots:
            return IGNORED
        known = self._rules.get(authority)
        if known is None or known.expires_ms <= self._clock.monotonic_ms():
            return None
        self._rules.move_to_end(authority)
        return known

    async def stored(self, held: HeldUrl) -> KnownRules | None:
        """Rules that another node or an earlier run left in the host record; expired ones are kept as a last copy."""
        if held.authority in self._rules:
            return None  # known here and expired: the record is no younger
        key = partition_keys(self._crawl, held.partition).host + held.host
        value = await self._records.ask(("HGET", key, _field(held.authority)))
        try:
            rules, expires_ms = read_record(value or await self._shelf.get(held.partition, held.authority))
        except CorruptionError:
            return None
        left_ms = expires_ms - self._client.now_ms()
        if left_ms < -STALE_MS:
            return None  # of the shelf: Redis has forgotten it by then
        known = self._keep(held.authority, Verdict(rules, left_ms, "rules"))
        return known if left_ms > 0 else None

    async def fetch(self, held: HeldUrl) -> int:
        """Fetch and keep the rules of the held URL's authority; its host is busy with that URL.

        Returns:
            How long the host must rest now, in ms.

        Raises:
            Closed: the address is refused or unknown, or the server's gate opens later.
            TransientStoreError: Redis is away.
        """
        if held.authority in self._under_way:
            return self._policy.host_delay_ms
        self._under_way.add(held.authority)
        try:
            return await self._fetch_and_keep(held)
        finally:
            self._under_way.discard(held.authority)

    async def _fetch_and_keep(self, held: HeldUrl) -> int:
        url = robots_url(held.authority)
        await self._wait_at_doors(held.host, held.due_ms, url)
        if held.stage is Stage.ENDED:
            raise Closed(retry_ms=0)  # its host is another node's by now
        fetched = await self._follow(url, held.host)
        held.retry_after_ms = self._retry_after_ms(fetched)
        earlier = self._rules.get(held.authority)
        attempts = (earlier.attempts if earlier else 0) + 1
        least_ms = self._policy.robots_kept_min_ms
        verdict = decide(
            fetched.status,
            fetched.body,
            self._agent,
            attempts=attempts,
            jitter=random.random(),
            expires_in_ms=kept_ms(fetched.cache_control, fetched.age, least_ms=least_ms),
        )
        if verdict.reason == "unreachable":
            held.unanswered = fetched.failure
            if earlier is None or earlier.reason == "unreachable":
                return self._keep_unreachable(held, verdict, earlier, attempts)
            verdict = Verdict(earlier.rules, verdict.expires_in_ms, earlier.reason)
            self._keep(held.authority, verdict, attempts)
        else:
            await self._tell_sitemaps(url, verdict)
            self._keep(held.authority, verdict)
        await self._share(held, verdict)
        return self._rest_ms(verdict.rules)

    def _retry_after_ms(self, fetched: Fetched) -> int:
        """How long the answer asks to be left alone; 0 when it does not."""
        longest_ms = self._policy.retry_after_max_ms
        if fetched.status not in OVERLOADED or not fetched.retry_after or not longest_ms:
            return 0
        return retry_after_ms(fetched.retry_after, fetched.date, self._clock.now_ms(), longest_ms)

    async def _tell_sitemaps(self, robots: str, verdict: Verdict) -> None:
        """Tell of sitemaps first: a node that dies before the rules are kept leaves both to the next one."""
        if verdict.sitemaps and self.tell_sitemaps is not None:
            urls = (join(robots, sitemap) for sitemap in verdict.sitemaps)
            await self.tell_sitemaps(robots, list(dict.fromkeys(url for url in urls if url is not None)))

    def _keep_unreachable(self, held: HeldUrl, verdict: Verdict, earlier: KnownRules | None, attempts: int) -> int:
        """Let the host back off, which is all its URLs'; an authority that alone is away is closed for a while."""
        is_alone = earlier is not None and not self.host_fails(held.host)
        alone = earlier.alone + 1 if earlier is not None and is_alone else 0
        closed_ms = verdict.expires_in_ms if alone >= ALONE_MAX else 0
        self._keep(held.authority, Verdict(verdict.rules, closed_ms, verdict.reason), attempts, alone)
        return self._policy.host_delay_ms

    def said_of(self, authority: str) -> str:
        """What the last fetch of its rules says of the authority's host: that it answers, or why it failed."""
        known = self._rules.get(authority)
        return "" if known is None else "robots" if known.attempts else ANSWERS

    def rest_ms(self, authority: str) -> int:
        """How long its host rests after a fetch, as far as the authority's rules are known here."""
        known = self._rules.get(authority)
        return self._rest_ms(known.rules) if known else self._policy.host_delay_ms

    def _rest_ms(self, rules: Rules) -> int:
        asked_ms = min(rules.crawl_delay_ms or 0, self._policy.crawl_delay_max_ms)
        return max(self._policy.host_delay_ms, asked_ms)

    async def _wait_at_doors(self, host: str, due_ms: int, url: str) -> None:
        address = await self._doors.address(host)
        lines = self._doors.lines(address, host, url)
        passage, wait_ms = UNASKED, MISSED
        while wait_ms:
            if wait_ms == MISSED:
                passage = await self._doors.passage(lines, due_ms, url, passage)
                wait_ms = max(0, passage.at_ms - self._clock.monotonic_ms())
            await asyncio.sleep(wait_ms / 1000)
            # The start before it may have been late.
            wait_ms = self.start(lines.gaps, passage.until_ms)

    async def _follow(self, url: str, host: str) -> Fetched:
        """Fetch a URL of a host that is ours now, and what it redirects to."""
        for hop in range(REDIRECTS_MAX + 1):
            fetched = await self._fetch(url)
            self.fetched += 1
            target = join(url, fetched.location) if fetched.location else None
            if fetched.status is None or not 300 <= fetched.status < 400 or target is None or hop == REDIRECTS_MAX:
                break
            url = target
            if host_of(url) != host:
                return await self._follow_elsewhere(url, REDIRECTS_MAX - hop - 1)
            if not await self._wait_for_hop(host, url):
                return Fetched(None)
        return fetched

    async def _wait_for_hop(self, host: str, url: str) -> bool:
        """Wait until the host that is ours may be asked again; False when its server has no time for it soon."""
        await asyncio.sleep(self._policy.host_delay_ms / 1000)
        try:
            await self._wait_at_doors(host, self._clock.monotonic_ms(), url)
        except Closed as closed:
            if closed.reason or closed.is_aside or closed.retry_ms > BORROW_AHEAD_MS_MAX:
                return False
            await asyncio.sleep(closed.retry_ms / 1000)
            await self._wait_at_doors(host, self._clock.monotonic_ms(), url)
        return True

    async def _follow_elsewhere(self, url: str, hops: int) -> Fetched:
        """Follow redirects over other hosts, each borrowed for its fetch."""
        for _ in range(hops + 1):
            fetched = await self._fetch_borrowed(url)
            target = join(url, fetched.location) if fetched.location else None
            if fetched.status is None or not 300 <= fetched.status < 400 or target is None:
                break
            url = target
        return fetched

    async def _fetch_borrowed(self, url: str) -> Fetched:
        host = host_of(url)
        keys = partition_keys(self._crawl, self._partition_of_host(host))
        ticket = f"{self._node}:{uuid.uuid4().hex}"  # two authorities may redirect to the same file
        if not await self._borrow(keys, host, ticket):
            return Fetched(None)  # busy all the time, or resting for long
        rest_ms = self._policy.host_delay_ms
        shared = self._shared_hosts if self._shared_hosts is not None and self._shared_hosts.are_kept else None
        is_held = False
        try:
            async with asyncio.timeout(BORROW_DOORS_MS_MAX / 1000):
                if shared is not None:
                    await shared.hold_host(host)
                    is_held = True
                await self._wait_at_doors(host, self._clock.monotonic_ms(), url)
            self.fetched += 1
            fetched = await self._fetch(url)
            rest_ms = max(rest_ms, self._retry_after_ms(fetched))
            return fetched
        except (Closed, TimeoutError):
            return Fetched(None)
        finally:
            if shared is not None and is_held:
                shared.leave_host(host, rest_ms)
            await self._client.run([scripts.return_host(keys, host, ticket, rest_ms)])

    async def _borrow(self, keys: PartitionKeys, host: str, ticket: str) -> bool:
        """Wait for the host and its start; False when it is not to be had."""
        deadline_ms = self._policy.fetch_deadline_ms + BORROW_DOORS_MS_MAX
        call = scripts.borrow_host(keys, host, ticket, BORROW_AHEAD_MS_MAX, deadline_ms)
        for _ in range(BORROW_TRIES_MAX):
            [(lent, wait_ms)] = await self._client.run([call])
            if lent:
                await asyncio.sleep(wait_ms / 1000)
                return True
            await asyncio.sleep(min(wait_ms, BORROW_WAIT_MS_MAX) / 1000)
        return False

    async def _share(self, held: HeldUrl, verdict: Verdict) -> None:
        keys = partition_keys(self._crawl, held.partition)
        field, packed = _field(held.authority), verdict.rules.to_bytes()
        call = scripts.put_robots(
            keys,
            held.host,
            field,
            packed,
            verdict.expires_in_ms,
            self._records_max,
            stale_ms=STALE_MS,
            bytes_max=self._bytes_max,
        )
        await self._calls.ask(call)
        record = write_record(verdict.rules, self._client.now_ms() + verdict.expires_in_ms)
        await self._shelf.put(held.partition, held.authority, record)

    async def close(self) -> None:
        """Have the rules on disk that another run may use."""
        await self._shelf.close()

    def _keep(self, authority: str, verdict: Verdict, attempts: int = 0, alone: int = 0) -> KnownRules:
        expires_ms = self._clock.monotonic_ms() + verdict.expires_in_ms
        known = KnownRules(self._shared(verdict.rules), expires_ms, verdict.reason, attempts, alone)
        if before := self._rules.pop(authority, None):
            self._drop(before.rules)
        self._rules[authority] = known
        while self._size > RULES_BYTES_MAX and len(self._rules) > 1:
            self._drop(self._rules.popitem(last=False)[1].rules)
        return known

    def _shared(self, rules: Rules) -> Rules:
        """One object for all that are alike: many sites have what came with their software."""
        alike, users = self._users.get(rules, (rules, 0))
        self._users[alike] = alike, users + 1
        self._size += ENTRY_BYTES + (0 if users else _size_of(alike))
        return alike

    def _drop(self, rules: Rules) -> None:
        alike, users = self._users.pop(rules)
        if users > 1:
            self._users[alike] = alike, users - 1
        self._size -= ENTRY_BYTES + (0 if users > 1 else _size_of(alike))


def _size_of(rules: Rules) -> int:
    return LINE_BYTES * len(rules.lines) + CHAR_BYTES * rules.chars


def _at_once(gaps: tuple[tuple[str, int], ...], until_ms: int) -> int:
    """Nobody else starts fetches."""
    return 0


def _always(host: str) -> bool:
    """Nobody knows of answers of the host."""
    return True


def _field(authority: str) -> str:
    """The host record's field: rules differ by scheme and port."""
    return f"robots:{authority}"
