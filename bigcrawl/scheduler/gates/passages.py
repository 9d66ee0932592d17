"""When a fetch may pass the gates of its host's spaces, then its server's, unless a proxy resolves the name."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bigcrawl.bounded import BoundedDict
from bigcrawl.politeness.addresses import server_of
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.gates.closed import WAIT_MS_MAX, Closed
from bigcrawl.scheduler.gates.start_gates import AHEAD_MS, GateLine, GateLines, StartGates, of_server
from bigcrawl.scheduler.records.passage import ANY_TIME, UNASKED, Passage, Start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bigcrawl.clock import Clock
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.gates.delays import HostDelays
    from bigcrawl.scheduler.gates.spaces import PolitenessSpaces


TURNS_KEPT = 100_000


class GatePassages:
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
        return f"<GatePassages turns={len(self._turns)}>"

    def lines(self, address: str, host: str, url: str) -> GateLines:
        """Return the gates of the URL's spaces, and its server's unless the address is empty."""
        spaces = self.spaces.spaces_of(host, url) if self.spaces.are_kept else ()
        gap_ms = self._paces.server_delay_ms(server_of(address), host) if address else 0
        return GateLines(GateLine(self._keys.space, spaces), of_server(address, gap_ms))

    async def passage(self, lines: GateLines, due_ms: int, grant: str, before: Passage = UNASKED) -> Passage:
        """Wait for a near grant, and return when the fetch may start; raise Closed if its turn is far ahead.

        A fetch that is sent away must come back under the same `grant`. `before` has the starts that it missed.
        """
        name = f"{grant} in its spaces"
        with self._keeping_start(grant, before.of_server):
            in_spaces = await self._wait_for_start(lines.of_spaces, due_ms, name, before.of_spaces)
        with self._keeping_start(name, in_spaces):
            at_server = await self._wait_for_start(lines.of_server, in_spaces.at_ms, grant, before.of_server)
        if at_server.at_ms > in_spaces.until_ms:  # too late for the spaces' start: ask for another
            with self._keeping_start(grant, at_server):
                in_spaces = await self._wait_for_start(lines.of_spaces, at_server.at_ms, name, in_spaces)
        return Passage(in_spaces, at_server)

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
