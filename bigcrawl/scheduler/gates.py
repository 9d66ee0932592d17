"""When a server may be asked (step 10): its gate in Redis, shared by all nodes and crawls, grants the moments.

No node can promise to be punctual, and a start that is late comes too close to the next one, which may be another
node's. So a start has some slack: after that it is missed, and asked for again. Who was granted the last start may have
the next one a gap later, for a node keeps its own starts apart whenever they come; all others wait for twice the slack
more, half of it for what lies between a start and its arrival. A node that has a server to itself pays nothing for it.

    granted ---- slack ----> missed
    granted ---------- gap ----------> next, the same node's ---- 2 slack ----> next, another node's

Only near starts are granted, for what is granted for later would be missed by who comes back for it through Redis.
Where many wait for one server, each gets a turn to ask again, a gap after the one before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.politeness.addresses import server_of
from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.gathered import Gathered

if TYPE_CHECKING:
    from bigcrawl.clock import Clock
    from bigcrawl.redisdb.client import RedisClient

AHEAD_MS: Final = 500  # a start further ahead is not granted; a URL is taken so long before its host is due
SLACK_PART: Final = 8  # of the gap
SLACK_MS_MIN: Final = 50  # an event loop with enough to do is late by some tens of milliseconds
SLACK_MS_MAX: Final = 250
DOUBLINGS_MAX: Final = 3


class Start(NamedTuple):
    """A moment at which a server may be asked.

    Attributes:
        at_ms: not before that, on the monotonic clock.
        until_ms: nor after that.
        granted_ms: the moment that was granted, in the time of the crawls; 0: no gate was asked.
        misses: how many starts of the same fetch were missed before; each doubles the slack, so that a node that is
            always late gets on.
    """

    at_ms: int
    until_ms: int
    granted_ms: int = 0
    misses: int = 0


MISSED: Final = -1
"""In place of how long a start must wait: it is too late for it."""

ANY_TIME: Final = Start(0, 1 << 62)
"""The start of a fetch from a server without a gate."""


def slack_ms(gap_ms: int, misses: int) -> int:
    """By how much a start may be late."""
    return min(max(gap_ms // SLACK_PART, SLACK_MS_MIN), SLACK_MS_MAX) << min(misses, DOUBLINGS_MAX)


class Gates:
    """A node's starts at servers."""

    def __init__(self, node: str, client: RedisClient, clock: Clock) -> None:
        """Ask in the name of `node`, which keeps the starts that it is granted apart."""
        self._node = node
        self._client = client
        self._clock = clock
        self._calls: Gathered[scripts.Call[tuple[int, bool]], tuple[int, bool]] = Gathered(client.run_each)

    async def ask(
        self, address: str, gap_ms: int, due_ms: int, *, missed: Start = ANY_TIME, had_turn: bool = False
    ) -> Start | int:
        """Return when a fetch may start, or, on the monotonic clock, its turn to be asked for again.

        Args:
            address: of the server, whose gate it shares with its /64 if it is IPv6.
            gap_ms: between fetches from the server.
            due_ms: not before that, on the monotonic clock.
            missed: the fetch's start before, if that was missed.
            had_turn: whether its turn has come.

        Raises:
            TransientStoreError: Redis is away.
        """
        misses = missed.misses + (missed.granted_ms > 0)
        slack = slack_ms(gap_ms, misses)
        early_ms = due_ms - self._clock.monotonic_ms()
        call = scripts.pass_gate(
            server_of(address),
            gap_ms,
            self._client.now_ms() + early_ms if early_ms > 0 else 0,
            self._node,
            late_ms=2 * slack,
            ahead_ms=AHEAD_MS,
            missed_ms=missed.granted_ms,
            had_turn=had_turn or misses > 0,
        )
        server_ms, is_granted = await self._calls.ask(call)
        at_ms = self._clock.monotonic_ms() + server_ms - self._client.now_ms()
        return Start(max(at_ms, due_ms), at_ms + slack, server_ms, misses) if is_granted else at_ms
