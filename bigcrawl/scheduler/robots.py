"""Robots rules of authorities: asked for before a host's first page, kept for all nodes (step 10).

A robots.txt is fetched in the place of a taken URL, which goes back to its queue for the host's delay. So
the fetch is as polite as any page: the host is busy meanwhile, and nobody else asks for the same file.

    known, young         -> used
    in the host record   -> used: another node or an earlier run fetched it
    else                 -> fetched; 2xx, 4xx: kept a day. No answer, 5xx, 429: forbidden, asked again with
                            back-off, and after `ATTEMPTS_MAX` in a row the host's URLs end as unreachable

A redirect to another host borrows that host, so that its delay and its one connection hold for it too.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bigcrawl.exceptions import CorruptionError
from bigcrawl.politeness.robots_policy import REDIRECTS_MAX, Rules, Verdict, agent_token, decide, robots_url
from bigcrawl.politeness.throttle_policy import retry_backoff_ms
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.redisdb.scripts import ANSWERS
from bigcrawl.scheduler.doors import WAIT_MS_MAX, Closed
from bigcrawl.url.canonical import host_of, join

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.scheduler.doors import Doors
    from bigcrawl.scheduler.held import HeldUrl

RULES_CACHED = 20_000  # parsed rules a node keeps; 1-2 KB each
ATTEMPTS_MAX = 3
ATTEMPT_FIRST_MS = 10_000  # then doubled: a host that is gone ends its URLs within a minute, a restart is waited for
BORROW_TRIES_MAX = 30
BORROW_WAIT_MS_MAX = 2_000
BORROW_AHEAD_MS_MAX = 10_000  # a start that lies further ahead is not waited for with the host in hand


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one fetch brought; status None when no answer came."""

    status: int | None
    body: bytes = b""
    location: str = ""


class Fetch(Protocol):
    """Fetches one URL through Scrapy's downloader, redirects not followed, no retries; raises nothing."""

    async def __call__(self, url: str) -> Fetched: ...


@dataclass(frozen=True, slots=True)
class KnownRules:
    """Rules with their end on the monotonic clock; `attempts` counts fetches in a row without an answer."""

    rules: Rules
    expires_ms: int
    reason: str
    attempts: int = 0


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
    ) -> None:
        self._crawl = config.crawl.name
        self._node = config.crawl.node
        self._policy = config.politeness
        self._records_max = max(8, config.frontier.host_records // config.crawl.partitions)
        self._client = client
        self._doors = doors
        self._clock = clock
        self._fetch = fetch
        self._partition_of_host = partition_of_host
        self._agent = agent_token(config.politeness.agent)
        self._rules: OrderedDict[str, KnownRules] = OrderedDict()
        self._under_way: set[str] = set()
        self.fetched = 0

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

    def crawl_delay_ms(self, authority: str) -> int | None:
        """What the authority asks for between two fetches, if its rules are here."""
        known = self._rules.get(authority)
        return known.rules.crawl_delay_ms if known else None

    async def stored(self, held: HeldUrl) -> KnownRules | None:
        """Rules that another node or an earlier run left in the host record."""
        if held.authority in self._rules:
            return None  # known here and expired: the record is no younger
        key = partition_keys(self._crawl, held.partition).host + held.host
        packed, left_ms = await self._client.commands([("HGET", key, _field(held.authority)), ("PTTL", key)])
        if not packed or left_ms <= 0:
            return None
        try:
            rules = Rules.from_bytes(packed)
        except CorruptionError:
            return None
        return self._keep(held.authority, Verdict(rules, left_ms, "rules"))

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
        await self._wait_at_doors(held.host, held.due_ms, held.due_server_ms, url)
        fetched = await self._follow(url, held.host)
        earlier = self._rules.get(held.authority)
        attempts = (earlier.attempts if earlier else 0) + 1
        verdict = decide(fetched.status, fetched.body, self._agent, attempts=attempts, jitter=random.random())
        if verdict.reason == "unreachable":
            return self._keep_unreachable(held.authority, verdict, attempts)
        self._keep(held.authority, verdict)
        await self._share(held, verdict)
        return self._rest_ms(verdict.rules)

    def _keep_unreachable(self, authority: str, verdict: Verdict, attempts: int) -> int:
        """Forbid all for now: a little while, and after the last attempt as long as the verdict says."""
        last = attempts >= ATTEMPTS_MAX
        self._keep(authority, Verdict(verdict.rules, verdict.expires_in_ms if last else 0, verdict.reason), attempts)
        if last:
            return self._policy.host_delay_ms
        wait_ms = retry_backoff_ms(attempts, random.random(), first_ms=ATTEMPT_FIRST_MS)
        return max(self._policy.host_delay_ms, wait_ms)

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

    async def _wait_at_doors(self, host: str, due_ms: int, due_server_ms: int, grant: str) -> None:
        address = await self._doors.address(host)
        gap_ms = self._doors.server_delay_ms(address, host)
        start_ms = await self._doors.start_ms(address, due_ms, due_server_ms, grant, gap_ms)
        await asyncio.sleep(max(0, start_ms - self._clock.monotonic_ms()) / 1000)

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
            await asyncio.sleep(self._policy.host_delay_ms / 1000)
        return fetched

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
        try:
            now_ms = self._clock.monotonic_ms()
            await self._wait_at_doors(host, now_ms, 0, url)
            self.fetched += 1
            return await self._fetch(url)
        except Closed:
            return Fetched(None)
        finally:
            await self._client.run([scripts.return_host(keys, host, ticket, self._policy.host_delay_ms)])

    async def _borrow(self, keys: PartitionKeys, host: str, ticket: str) -> bool:
        """Wait for the host and its start; False when it is not to be had."""
        deadline_ms = self._policy.fetch_deadline_ms + WAIT_MS_MAX
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
        await self._client.run(
            [scripts.put_robots(keys, held.host, field, packed, verdict.expires_in_ms, self._records_max)]
        )

    def _keep(self, authority: str, verdict: Verdict, attempts: int = 0) -> KnownRules:
        expires_ms = self._clock.monotonic_ms() + verdict.expires_in_ms
        known = KnownRules(verdict.rules, expires_ms, verdict.reason, attempts)
        self._rules[authority] = known
        self._rules.move_to_end(authority)
        if len(self._rules) > RULES_CACHED:
            self._rules.popitem(last=False)
        return known


def _field(authority: str) -> str:
    """The host record's field: rules differ by scheme and port."""
    return f"robots:{authority}"
