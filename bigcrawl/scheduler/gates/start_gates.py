"""When a fetch may start (step 10): gates in Redis grant the moments, those of servers to all crawls' nodes.

A server has one, and each space that hosts share: that of a pay-level domain, that of a user's group (`gates.spaces`).

No node can promise to be punctual, and a start that is late comes too close to the next one, which may be another
node's. So a start has some slack: after that it is missed, and asked for again. Who was granted the last start may have
the next one a gap later, for a node keeps its own starts apart whenever they come; all others wait for twice the slack
more, half of it for what lies between a start and its arrival. A node that has a gate to itself pays nothing for it.

    granted ---- slack ----> missed
    granted ---------- gap ----------> next, the same node's ---- 2 slack ----> next, another node's

Only near starts are granted, for what is granted for later would be missed by who comes back for it through Redis.
Where many wait at one gate, each gets a turn to ask again, a gap after the one before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.politeness.addresses import server_of
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import gate_prefix
from bigcrawl.scheduler.gates.batcher import Gathered
from bigcrawl.scheduler.records.passage import ANY_TIME, Start

if TYPE_CHECKING:
    from bigcrawl.clock import Clock
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.records.passage import Space


AHEAD_MS: Final = 500  # a start further ahead is not granted; a URL is taken so long before its host is due
SLACK_PART: Final = 8  # of the gap
SLACK_MS_MIN: Final = 50  # an event loop with enough to do is late by some tens of milliseconds
SLACK_MS_MAX: Final = 250
DOUBLINGS_MAX: Final = 3


def slack_ms(gap_ms: int, misses: int) -> int:
    """By how much a start may be late."""
    return min(max(gap_ms // SLACK_PART, SLACK_MS_MIN), SLACK_MS_MAX) << min(misses, DOUBLINGS_MAX)


class Line(NamedTuple):
    """Gates that are passed at once.

    Attributes:
        prefix: of their keys.
        gates: name, and gap between starts in ms, of each.
    """

    prefix: str
    gates: tuple[Space, ...]


class Lines(NamedTuple):
    """All the gates before a fetch; one lot after the other, for their keys may lie on two servers of a cluster."""

    of_spaces: Line
    of_server: Line

    @property
    def gaps(self) -> tuple[Space, ...]:
        """What a node keeps between starts of its own, late ones too: name and ms."""
        return (*self.of_server.gates, *self.of_spaces.gates)


def of_server(address: str, gap_ms: int) -> Line:
    """The gate of a server, which it shares with its /64 if it is IPv6; none for a gap of 0."""
    server = server_of(address) if gap_ms else ""
    return Line(gate_prefix(server), ((server, gap_ms),) if gap_ms else ())


class Gates:
    """A node's starts."""

    def __init__(self, node: str, client: RedisClient, clock: Clock) -> None:
        """Ask in the name of `node`, which keeps the starts that it is granted apart."""
        self._node = node
        self._client = client
        self._clock = clock
        self._calls: Gathered[scripts.Call[tuple[int, bool]], tuple[int, bool]] = Gathered(client.run_each)

    async def ask(self, line: Line, due_ms: int, *, before: Start = ANY_TIME, had_turn: bool = False) -> Start | int:
        """Return when a fetch may start, or, on the monotonic clock, its turn to be asked for again.

        Args:
            line: the gates, one at least.
            due_ms: not before that, on the monotonic clock.
            before: the fetch's start before, if that was missed, or is given up for a later one.
            had_turn: whether its turn has come.

        Raises:
            TransientStoreError: Redis is away.
        """
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
        )
        server_ms, is_granted = await self._calls.ask(call)
        at_ms = self._clock.monotonic_ms() + server_ms - self._client.now_ms()
        return Start(max(at_ms, due_ms), at_ms + slack, server_ms, misses) if is_granted else at_ms
