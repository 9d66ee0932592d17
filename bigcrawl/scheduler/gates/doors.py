"""The two doors before a connection: which address, and when that server may be asked (step 10).

An address is resolved, and refused when it lies in a range that is closed. Where a proxy resolves names, the address is
empty: such a host has its own delay, and no server's gate. When a server may be asked its gate says (`start_gates`).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from bigcrawl.exceptions import ConfigError
from bigcrawl.politeness import addresses
from bigcrawl.politeness.addresses import AddressGuard, server_of
from bigcrawl.politeness.dns_cache import DnsError, literal_address
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.gates.closed import WAIT_MS_MAX, Closed
from bigcrawl.scheduler.gates.start_gates import AHEAD_MS, Gates, Line, Lines, of_server
from bigcrawl.scheduler.records.passage import ANY_TIME, UNASKED, Passage, Start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bigcrawl.clock import Clock
    from bigcrawl.config import PolitenessConfig
    from bigcrawl.politeness.dns_cache import DnsCache
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.gates.delays import Paces
    from bigcrawl.scheduler.gates.lookups import Lookups
    from bigcrawl.scheduler.gates.spaces import Spaces
    from bigcrawl.scheduler.gates.ways_out import SetsAside


T = TypeVar("T")
REMEMBERED_MAX = 100_000
FAILED_LOOKUPS_KEPT = 10_000
LOOKUP_RETRY_MS = 2_000  # a URL whose name is still being asked for comes back after that long
LOOKUPS_UNDER_WAY_MAX = 5_000  # of a node; more hosts wait
LOOKUP_WAIT_MS_MAX = 600_000  # whose turn to be looked up is later comes and asks again
NO_SUCH_NAME = frozenset({"not-found", "malformed-name"})  # as DNS itself says; no failure of ours
UNIDENTIFIED_MS = 10_000  # the crawl ends meanwhile, and the URL is there for the next
UNIDENTIFIED = (
    "public addresses are not crawled namelessly: set BIGCRAWL_CONTACT, or USER_AGENT, to a web page or a mail address "
    "of yours, so that whoever is crawled can reach you. No public address was asked for anything"
)


class Doors:
    """Addresses and gates, for pages and for robots.txt alike."""

    def __init__(
        self,
        policy: PolitenessConfig,
        node: str,
        client: RedisClient,
        dns: DnsCache,
        clock: Clock,
        paces: Paces,
        spaces: Spaces | None = None,
        crawl: str = "",
        *,
        lookups: Lookups | None = None,
        resolves_here: Callable[[str], bool] | None = None,
        aside: SetsAside | None = None,
        on_unidentified: Callable[[ConfigError], None] | None = None,
    ) -> None:
        """Make the doors.

        Args:
            policy: delays, and which addresses are open.
            node: whose doors these are; no other node of any crawl has the same name.
            client: of the crawl's Redis.
            dns: what names resolve to.
            clock: the node's.
            paces: gaps between fetches.
            spaces: what hosts share; None: nothing.
            crawl: the crawl's name, whose spaces these are.
            lookups: shares look-ups out over PLDs; None: whoever asks has his name looked up.
            resolves_here: whether a host's name is resolved by this node, not by a proxy; None: all are.
            aside: the blacklist; None: there is none.
            on_unidentified: told that a crawl without a contact was about to ask a public address, which it must not.
        """
        self._spaces = spaces
        self._keys = CrawlKeys(crawl)
        self._policy = policy
        self._guard = AddressGuard(policy.allow_private_addresses, policy.allow_addresses)
        self._paces = paces
        self._dns = dns
        self._clock = clock
        self._lookups = lookups
        self._resolves_here = resolves_here
        self._aside = aside
        self._failed_lookups: OrderedDict[str, int] = OrderedDict()  # in a row, when a URL last heard of one
        self._gates = Gates(node, client, clock)
        self._turns: OrderedDict[str, Start] = OrderedDict()  # who was sent away by a gate, with what it missed
        self._on_unidentified = on_unidentified

    def __repr__(self) -> str:
        return f"<Doors turns={len(self._turns)} failed_lookups={len(self._failed_lookups)}>"

    def known_address(self, host: str) -> str | None:
        """The address to connect to if nothing needs to be asked, empty where that is a proxy's; None otherwise.

        Raises:
            Closed: the address is refused.
        """
        if self._spaces is not None and self._spaces.are_kept:
            return None
        if self._is_proxys(host):
            self._identify()
            return ""
        if self._policy.server_delay_ms:
            return None
        found = self._dns.peek(host)
        return self._checked(found) if found else None

    async def address(self, host: str) -> str:
        """Resolve and check the host's addresses, and return the one to connect to; empty where that is a proxy's.

        Raises:
            Closed: refused, blacklisted, or there is none, or it is not yet its turn to be looked up.
        """
        if self._aside is not None and self._aside.blacklist.of_host(host):
            raise Closed(is_aside=True)
        if self._is_proxys(host):
            self._identify()
            return ""
        await self._take_turn(host)
        try:
            found = await self._looked_up(host)
        except DnsError as error:
            raise self._after_failed_lookup(host, error) from error
        self._failed_lookups.pop(host, None)
        return self._checked(found)

    async def _take_turn(self, host: str) -> None:
        """See that a host that is neither known nor asked for may be looked up now."""
        if self._dns.knows(host) or self._dns.asking_ms(host) is not None:
            return
        if self._dns.under_way >= LOOKUPS_UNDER_WAY_MAX:
            raise Closed(retry_ms=LOOKUP_RETRY_MS)
        wait_ms = await self._lookups.wait_ms(host) if self._lookups is not None else 0
        if wait_ms:
            raise Closed(retry_ms=min(wait_ms, LOOKUP_WAIT_MS_MAX))

    async def _looked_up(self, host: str) -> list[str]:
        """The host's addresses, waited for only a while: a question goes on without the URL that asked it.

        Else hosts whose name servers are silent would fill the node, ten seconds each.
        """
        if (self._dns.asking_ms(host) or 0) >= WAIT_MS_MAX:
            raise Closed(retry_ms=LOOKUP_RETRY_MS)
        try:
            async with asyncio.timeout(WAIT_MS_MAX / 1000):
                return await self._dns.lookup(host)
        except TimeoutError:
            raise Closed(retry_ms=LOOKUP_RETRY_MS) from None

    def _after_failed_lookup(self, host: str, error: DnsError) -> Closed:
        """Where DNS says that there is no such name, the URL ends; where it says nothing, the host has failed, once."""
        if error.reason in NO_SUCH_NAME:
            return Closed(reason="unresolved")
        is_news = self._failed_lookups.pop(host, 0) != error.failures
        self._failed_lookups[host] = error.failures
        if len(self._failed_lookups) > FAILED_LOOKUPS_KEPT:
            self._failed_lookups.popitem(last=False)
        return Closed(retry_ms=error.retry_after_ms, failure="dns" if is_news else "")

    def lines(self, address: str, host: str, url: str) -> Lines:
        """The gates before a fetch of a URL: those of its spaces, and its server's, if its address is not empty."""
        spaces = self._spaces.of(host, url) if self._spaces is not None and self._spaces.are_kept else ()
        gap_ms = self._paces.server_delay_ms(server_of(address), host) if address else 0
        return Lines(Line(self._keys.space, spaces), of_server(address, gap_ms))

    async def passage(self, lines: Lines, due_ms: int, grant: str, before: Passage = UNASKED) -> Passage:
        """Return when a fetch may start, which is soon; there may have been some waiting for it here.

        Args:
            lines: the gates.
            due_ms: when the host may be fetched, on the monotonic clock.
            grant: what the start is for; who is sent away comes back under the same name.
            before: the fetch's starts before, if they were missed.

        Raises:
            Closed: with the time until its turn.
            TransientStoreError: Redis is away.
        """
        name = f"{grant} in its spaces"
        with self._kept(grant, before.of_server):
            in_spaces = await self._start(lines.of_spaces, due_ms, name, before.of_spaces)
        with self._kept(name, in_spaces):
            at_server = await self._start(lines.of_server, in_spaces.at_ms, grant, before.of_server)
        if at_server.at_ms > in_spaces.until_ms:  # that one is given up
            with self._kept(grant, at_server):
                in_spaces = await self._start(lines.of_spaces, at_server.at_ms, name, in_spaces)
        return Passage(in_spaces, at_server)

    @contextmanager
    def _kept(self, grant: str, start: Start) -> Iterator[None]:
        """Keep what was granted at other gates for when the fetch comes back."""
        try:
            yield
        except Closed:
            if start.granted_ms:
                _remember(self._turns, grant, start)
            raise

    async def _start(self, line: Line, due_ms: int, grant: str, before: Start) -> Start:
        if not line.gates:
            return ANY_TIME._replace(at_ms=due_ms)
        had_turn = grant in self._turns
        before = self._turns.get(grant, before)
        await self._sleep_until(due_ms if had_turn else due_ms - AHEAD_MS)
        while True:
            start = await self._gates.ask(line, due_ms, before=before, had_turn=had_turn)
            if isinstance(start, Start):
                self._turns.pop(grant, None)
                return start
            wait_ms = start - self._clock.monotonic_ms()
            if wait_ms > WAIT_MS_MAX:
                _remember(self._turns, grant, before)
                raise Closed(retry_ms=wait_ms)
            await self._sleep_until(start)
            had_turn = True

    async def _sleep_until(self, at_ms: int) -> None:
        await asyncio.sleep(max(0, at_ms - self._clock.monotonic_ms()) / 1000)

    def _is_proxys(self, host: str) -> bool:
        """Whether a proxy resolves the host; an address needs no resolving, and is checked as ever."""
        return self._resolves_here is not None and not self._resolves_here(host) and literal_address(host) is None

    def _checked(self, found: list[str]) -> str:
        if kind := self._guard.refusal(found):
            raise Closed(reason="refused-address", is_aside=True, about=f"the address {', '.join(found)} is {kind}")
        if self._aside is not None and len(self._aside.blacklist) and any(map(self._aside.refuses_address, found)):
            raise Closed(is_aside=True)
        if addresses.refusal(found[0]) is None:
            self._identify()
        return found[0]

    def _identify(self) -> None:
        """Ask no public address, or a proxy for what may be one, for a crawl that does not say whose it is."""
        if not self._policy.contact:
            if self._on_unidentified is not None:
                self._on_unidentified(ConfigError(UNIDENTIFIED))
            raise Closed(retry_ms=UNIDENTIFIED_MS)


def _remember(what: OrderedDict[str, T], name: str, value: T) -> None:
    what[name] = value
    what.move_to_end(name)
    if len(what) > REMEMBERED_MAX:
        what.popitem(last=False)
