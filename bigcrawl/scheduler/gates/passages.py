"""When a fetch may pass the gates of its host's spaces, then its server's, unless a proxy resolves the name.

Gates in Redis grant starts. Servers' gates are shared by all crawls. A space is a pay-level domain, or a user's group
of hosts, with a gap between starts over all nodes.

A late start comes too close to the next one, which may be another node's. So a start has some slack, after which it
must be asked for again. The node with the last start may have the next one a gap later, because it keeps its own starts
apart. Other nodes wait twice the slack longer, half of it for the time between a start and its arrival. Of two
different gaps, the longer counts.

    granted ---- slack ----> missed
    granted ---------- gap ----------> next, the same node's ---- 2 slack ----> next, another node's

Only near starts are granted: a URL that must come back through Redis would miss a later one. If many wait at one gate,
each gets a turn to ask again, a gap after the one before.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.bounded import BoundedDict
from bigcrawl.exceptions import ConfigError
from bigcrawl.given import import_object
from bigcrawl.politeness.addresses import server_of
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys, gate_prefix
from bigcrawl.scheduler.gates.batcher import QuestionBatcher
from bigcrawl.scheduler.gates.interfaces import WAIT_MS_MAX, Closed
from bigcrawl.scheduler.records.at_gates import ANY_TIME, UNASKED, GrantedStarts, Space, Start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bigcrawl.clock import Clock
    from bigcrawl.config import PaceConfig
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.gates.delays import HostDelays

    Group = Callable[[str, str], str | None]

AHEAD_MS: Final = 500  # how far ahead starts are granted, and URLs taken before their host is due
SLACK_PART: Final = 8
SLACK_MS_MIN: Final = 50  # a busy event loop is late by some tens of milliseconds
SLACK_MS_MAX: Final = 250
DOUBLINGS_MAX: Final = 3

GROUP_BYTES_MAX: Final = 200

TURNS_KEPT = 100_000


def slack_ms(gap_ms: int, misses: int) -> int:
    return min(max(gap_ms // SLACK_PART, SLACK_MS_MIN), SLACK_MS_MAX) << min(misses, DOUBLINGS_MAX)


class GateLine(NamedTuple):
    prefix: str
    gates: tuple[Space, ...]


class GateLines(NamedTuple):
    """All gates of a fetch, in two groups, because their keys may be on two servers of a cluster."""

    of_spaces: GateLine
    of_server: GateLine

    @property
    def gaps(self) -> tuple[Space, ...]:
        """The gaps that a node keeps between its own starts, even late ones: name and ms."""
        return (*self.of_server.gates, *self.of_spaces.gates)


def of_server(address: str, gap_ms: int) -> GateLine:
    server = server_of(address) if gap_ms else ""
    return GateLine(gate_prefix(server), ((server, gap_ms),) if gap_ms else ())


class StartGates:
    def __init__(self, node: str, client: RedisClient, clock: Clock, kept_ms: Callable[[], int] = lambda: 0) -> None:
        """`kept_ms` returns the longest gap of other crawls that may meet at a gate."""
        self._kept_ms = kept_ms
        self._node = node
        self._client = client
        self._clock = clock
        self._calls: QuestionBatcher[scripts.Call[tuple[int, bool]], tuple[int, bool]] = QuestionBatcher(
            client.run_each
        )

    async def request_start(
        self, line: GateLine, due_ms: int, *, before: Start = ANY_TIME, had_turn: bool = False
    ) -> Start | int:
        """Return when a fetch may start, or, as an int, when to ask again (monotonic). `before` is a missed start."""
        now_ms = self._clock.monotonic_ms()
        misses = before.misses + (before.granted_ms > 0 and now_ms > before.until_ms)
        slack = min(slack_ms(gap_ms, misses) for _, gap_ms in line.gates)
        early_ms = due_ms - now_ms
        call = scripts.pass_gates(
            *line,
            self._client.now_ms() + early_ms if early_ms > 0 else 0,
            self._node,
            late_ms=2 * slack,
            ahead_ms=AHEAD_MS,
            missed_ms=before.granted_ms,
            had_turn=had_turn or misses > 0,
            kept_ms=self._kept_ms(),
        )
        server_ms, is_granted = await self._calls.ask(call)
        at_ms = self._clock.monotonic_ms() + server_ms - self._client.now_ms()
        return Start(max(at_ms, due_ms), at_ms + slack, server_ms, misses) if is_granted else at_ms


class PolitenessSpaces:
    def __init__(self, config: PaceConfig, paces: HostDelays, pld_of: Callable[[str], str]) -> None:
        self._pld_delay_ms = config.pld_delay_ms
        self._group = group_function(config.group)
        self._group_delay_ms = config.group_delay_ms
        self._paces = paces
        self._pld_of = pld_of

    @property
    def are_kept(self) -> bool:
        return bool(self._pld_delay_ms or self._group or self._paces.delays.has_pld_delays)

    def spaces_of(self, host: str, url: str) -> tuple[Space, ...]:
        spaces = []
        ruled_ms = self._paces.delays.of_host(host).pld_delay_ms
        pld_delay_ms = self._pld_delay_ms if ruled_ms is None else ruled_ms
        if pld_delay_ms:
            spaces.append((f"pld {self._pld_of(host)}", pld_delay_ms))
        if self._group is not None and self._group_delay_ms and (group := self._group(host, url)):
            spaces.append((f"group {str(group)[:GROUP_BYTES_MAX]}", self._group_delay_ms))
        return tuple(spaces)


def group_function(path: str | None) -> Group | None:
    """Return the function with a dotted path, if any, after a trial call. Raises ConfigError."""
    if not path:
        return None
    function = import_object("BIGCRAWL_GROUP", path)
    try:
        found = function("www.example.com", "http://www.example.com/")
    except Exception as error:
        raise ConfigError(f"BIGCRAWL_GROUP is {path!r}, which failed in a trial: {error!r}") from error
    if found is not None and not isinstance(found, str):
        raise ConfigError(f"BIGCRAWL_GROUP is {path!r}, which returned {found!r}; must return text, or None")
    checked: Group = function
    return checked


class HostGates:
    def __init__(
        self,
        node: str,
        client: RedisClient,
        clock: Clock,
        paces: HostDelays,
        spaces: PolitenessSpaces,
        crawl: str,
        kept_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        self._clock = clock
        self._paces = paces
        self._keys = CrawlKeys(crawl)
        self._gates = StartGates(node, client, clock, kept_ms)
        self._turns: BoundedDict[str, Start] = BoundedDict(TURNS_KEPT)
        self.spaces = spaces
        self.servers_have_gates = paces.servers_have_gaps

    def __repr__(self) -> str:
        return f"<HostGates turns={len(self._turns)}>"

    def lines(self, address: str, host: str, url: str) -> GateLines:
        """Return the gates of the URL's spaces, and its server's unless the address is empty."""
        spaces = self.spaces.spaces_of(host, url) if self.spaces.are_kept else ()
        gap_ms = self._paces.server_delay_ms(server_of(address), host) if address else 0
        return GateLines(GateLine(self._keys.space, spaces), of_server(address, gap_ms))

    async def wait_for_starts(
        self, lines: GateLines, due_ms: int, grant: str, before: GrantedStarts = UNASKED
    ) -> GrantedStarts:
        """Wait for a start at all gates and return it; raise Closed if it would be far ahead.

        A fetch that was sent away must return with the same `grant`; `before` has the starts that it missed.
        """
        name = f"{grant} in its spaces"
        with self._keeping_start(grant, before.of_server):
            in_spaces = await self._wait_for_start(lines.of_spaces, due_ms, name, before.of_spaces)
        with self._keeping_start(name, in_spaces):
            at_server = await self._wait_for_start(lines.of_server, in_spaces.at_ms, grant, before.of_server)
        if at_server.at_ms > in_spaces.until_ms:  # too late for the spaces' start: ask for another
            with self._keeping_start(grant, at_server):
                in_spaces = await self._wait_for_start(lines.of_spaces, at_server.at_ms, name, in_spaces)
        return GrantedStarts(in_spaces, at_server)

    @contextmanager
    def _keeping_start(self, grant: str, start: Start) -> Iterator[None]:
        try:
            yield
        except Closed:
            if start.granted_ms:
                self._turns.remember(grant, start)
            raise

    async def _wait_for_start(self, line: GateLine, due_ms: int, grant: str, before: Start) -> Start:
        if not line.gates:
            return ANY_TIME._replace(at_ms=due_ms)
        had_turn = grant in self._turns
        before = self._turns.get(grant, before)
        await self._sleep_until(due_ms if had_turn else due_ms - AHEAD_MS)
        while True:
            start = await self._gates.request_start(line, due_ms, before=before, had_turn=had_turn)
            if isinstance(start, Start):
                self._turns.pop(grant, None)
                return start
            wait_ms = start - self._clock.monotonic_ms()
            if wait_ms > WAIT_MS_MAX:
                self._turns.remember(grant, before)
                raise Closed(retry_ms=wait_ms)
            await self._sleep_until(start)
            had_turn = True

    async def _sleep_until(self, at_ms: int) -> None:
        await asyncio.sleep(max(0, at_ms - self._clock.monotonic_ms()) / 1000)
