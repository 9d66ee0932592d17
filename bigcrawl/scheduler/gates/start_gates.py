"""Gates in Redis that grant the starts of fetches. Servers' gates are shared by all crawls.

A server has a gate, and so has each space: a pay-level domain, or a user's group (`gates.spaces`).

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

from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.politeness.addresses import server_of
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import gate_prefix
from bigcrawl.scheduler.gates.batcher import QuestionBatcher
from bigcrawl.scheduler.records.passage import ANY_TIME, Start

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.clock import Clock
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.records.passage import Space


AHEAD_MS: Final = 500  # how far ahead starts are granted, and URLs taken before their host is due
SLACK_PART: Final = 8
SLACK_MS_MIN: Final = 50  # a busy event loop is late by some tens of milliseconds
SLACK_MS_MAX: Final = 250
DOUBLINGS_MAX: Final = 3


def slack_ms(gap_ms: int, misses: int) -> int:
    return min(max(gap_ms // SLACK_PART, SLACK_MS_MIN), SLACK_MS_MAX) << min(misses, DOUBLINGS_MAX)


class GateLine(NamedTuple):
    prefix: str
    gates: tuple[Space, ...]


class GateLines(NamedTuple):
    """All gates of a fetch. They are asked in two calls, because their keys may be on two servers of a cluster."""

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
