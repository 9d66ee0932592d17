"""When and at which address fetches may start: pages, robots.txt, heads, and single requests to other hosts."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bigcrawl.clock import Clock, Patience
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import PartitionKeys, partition_keys
from bigcrawl.scheduler.gates.interfaces import Closed
from bigcrawl.scheduler.records.at_gates import MISSED, UNASKED, Space
from bigcrawl.scheduler.records.held import HeldUrl, Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from bigcrawl.scheduler.crawl.joined_crawl import JoinedCrawl
    from bigcrawl.scheduler.gates.address_check import AddressCheck
    from bigcrawl.scheduler.gates.passages import HostGates
    from bigcrawl.scheduler.gates.shared_hosts import SharedHosts

BORROW_TRIES_MAX = 30
BORROW_WAIT_MS_MAX: Final = 2_000
BORROW_GATES_MS_MAX = 5_000
BORROW_AHEAD_MS_MAX: Final = 10_000  # starts further ahead are not awaited while a host is borrowed


class FetchStarts:
    def __init__(
        self,
        addresses: AddressCheck,
        passages: HostGates,
        shared_hosts: SharedHosts,
        clock: Clock,
        turn: Callable[[], Awaitable[None]],
        try_start: Callable[[tuple[Space, ...], int], int],
    ) -> None:
        self._addresses = addresses
        self._passages = passages
        self.shared_hosts = shared_hosts
        self.clock = clock
        self._turn = turn
        self._try_start = try_start

    def known_address(self, host: str) -> str | None:
        """Return the host's address if its fetch needs no answer from outside this process, else None."""
        passages = self._passages
        if self.shared_hosts.are_kept or passages.spaces.are_kept:
            return None
        if passages.servers_have_gates and not self._addresses.proxy_resolves(host):
            return None
        return self._addresses.known(host)

    async def grant(self, held: HeldUrl) -> None:
        """Wait until a URL may be handed out. Raises Closed."""
        passages = self._passages
        held.record_address(await self._addresses.find(held.host))
        if self.shared_hosts.are_kept:
            await self._hold_host(held)
        lines, grant = passages.lines(held.address, held.host, held.url), f"{held.partition}:{held.seq}"
        granted = await passages.wait_for_starts(lines, held.due_ms, grant, held.granted)
        held.grant_start(granted, lines.gaps)
        await asyncio.sleep(max(0, held.due_ms - self.clock.monotonic_ms()) / 1000)

    async def begin_other_fetch(self, held: HeldUrl) -> bool:
        """Begin a fetch of robots.txt or a HEAD instead of the URL's fetch. False if the URL has left meanwhile."""
        await self._turn()
        if self.shared_hosts.are_kept:
            await self._hold_host(held)
        if held.stage is not Stage.WAITING:
            return False
        held.go_to(Stage.ROBOTS)
        return True

    async def _hold_host(self, held: HeldUrl) -> None:
        await asyncio.sleep(max(0, held.due_ms - self.clock.monotonic_ms()) / 1000)
        await self.shared_hosts.hold(held)

    async def wait_for_start(self, host: str, due_ms: int, url: str) -> tuple[Space, ...]:
        """Wait until a URL of the host may be fetched, at least until `due_ms`. Return its gaps; raises as `grant`."""
        address = await self._addresses.find(host)
        lines = self._passages.lines(address, host, url)
        granted, wait_ms = UNASKED, MISSED
        while wait_ms:
            if wait_ms == MISSED:
                granted = await self._passages.wait_for_starts(lines, due_ms, url, granted)
                wait_ms = max(0, granted.at_ms - self.clock.monotonic_ms())
            await asyncio.sleep(wait_ms / 1000)
            wait_ms = self._try_start(lines.gaps, granted.until_ms)
        return lines.gaps


@dataclass(slots=True)
class HostLoan:
    """A borrowed host: the gaps of its fetch, and how long it rests afterwards."""

    gaps: tuple[Space, ...]
    rest_ms: int

    def rest_at_least(self, rest_ms: int) -> None:
        self.rest_ms = max(self.rest_ms, rest_ms)


class HostLoans:
    """Borrows hosts for single fetches, in Redis, which keeps their delays whichever node owns them."""

    def __init__(self, crawl: JoinedCrawl, starts: FetchStarts) -> None:
        self._crawl = crawl.config.crawl.name
        self._node = crawl.config.crawl.node
        self._policy = crawl.config.politeness
        self._client = crawl.client
        self._clock = crawl.clock
        self._starts = starts
        self._shared_hosts = starts.shared_hosts
        self._joined = crawl
        self._arrivals = crawl.arrivals

    @asynccontextmanager
    async def borrow(self, host: str, url: str) -> AsyncIterator[HostLoan | None]:
        """Yield the host's loan once the URL may be fetched; None if it is not lent, or closed. Raises Closed."""
        keys = partition_keys(self._crawl, self._joined.partition_of_host(host))
        ticket = f"{self._node}:{uuid.uuid4().hex}"  # one node may borrow a host twice at a time
        if not await self._borrow_host(keys, host, ticket):
            yield None
            return
        loan: HostLoan | None = None
        rest_ms, is_held = self._policy.host_delay_ms, False
        try:
            try:
                async with Patience(BORROW_GATES_MS_MAX / 1000):
                    if self._shared_hosts.are_kept:
                        await self._shared_hosts.hold_host(host)
                        is_held = True
                    gaps = await self._starts.wait_for_start(host, self._clock.monotonic_ms(), url)
                    loan = HostLoan(gaps, rest_ms)
            except Closed as closed:
                if closed.error is not None:
                    raise
            except TimeoutError:
                pass
            yield loan
        finally:
            rest_ms = loan.rest_ms if loan is not None else rest_ms
            if is_held:
                self._shared_hosts.leave_host(host, rest_ms)
            await self._client.run([scripts.return_host(keys, host, ticket, rest_ms)])
            self._arrivals.add(keys.partition)

    async def _borrow_host(self, keys: PartitionKeys, host: str, ticket: str) -> bool:
        deadline_ms = self._policy.fetch_deadline_ms + BORROW_GATES_MS_MAX
        call = scripts.borrow_host(keys, host, ticket, BORROW_AHEAD_MS_MAX, deadline_ms)
        for _ in range(BORROW_TRIES_MAX):
            [(lent, wait_ms)] = await self._client.run([call])
            if lent:
                await asyncio.sleep(wait_ms / 1000)
                return True
            await asyncio.sleep(min(wait_ms, BORROW_WAIT_MS_MAX) / 1000)
        return False
