"""Starts at one server over all nodes: apart, whoever is late; and each comes."""

from __future__ import annotations

import asyncio
import heapq
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bigcrawl.clock import ManualClock
from bigcrawl.redisdb.keys import gate_key
from bigcrawl.scheduler.gates import ANY_TIME, Gates, Start, slack_ms
from tests.support.script_world import T0, ScriptRunner

if TYPE_CHECKING:
    from collections.abc import Sequence

    import redis

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.scripts import Call
    from tests.support.redis_server import PrivateRedis

GAP_MS = 400
SERVER = "192.0.2.1"
NODES = ("a", "b", "c")
SLACK_MS = slack_ms(GAP_MS, 0)


class Fetch(NamedTuple):
    """Who fetches, when it asks for its start, how late it then is, and how long the request takes to the server."""

    node: str
    asked_ms: int
    late_ms: int
    way_ms: int


FETCHES = st.lists(
    st.builds(
        Fetch,
        st.sampled_from(NODES),
        st.integers(0, 20 * GAP_MS),
        st.one_of(st.integers(0, SLACK_MS), st.integers(0, 8 * GAP_MS)),
        st.integers(0, SLACK_MS),
    ),
    max_size=40,
)


class TimedClient:
    """Runs scripts on a real Redis, by a clock that the test sets."""

    def __init__(self, redis: redis.Redis, clock: ManualClock) -> None:
        self._runner = ScriptRunner(redis, ["pass_gate"])
        self._clock = clock
        self.calls = 0

    def now_ms(self) -> int:
        return T0 + self._clock.monotonic_ms()

    async def run(self, calls: Sequence[Call[Any]]) -> list[Any]:
        self.calls += len(calls)
        return self._runner.run_all([call._replace(args=(self.now_ms(), *call.args[1:])) for call in calls])


class Web:
    """One server, and nodes that ask for their starts there."""

    def __init__(self, server: PrivateRedis) -> None:
        server.client.delete(gate_key(SERVER))
        self.clock = ManualClock()
        self.client = TimedClient(server.client, self.clock)
        self.gates = {node: Gates(node, cast("RedisClient", self.client), self.clock) for node in NODES}

    def ask(self, node: str, missed: Start = ANY_TIME, due_ms: int = 0, *, had_turn: bool = False) -> Start | int:
        due_server_ms = T0 + due_ms if due_ms else 0
        asking = self.gates[node].ask(SERVER, GAP_MS, due_ms, due_server_ms, missed=missed, had_turn=had_turn)
        return asyncio.run(asking)

    def start(self, node: str, missed: Start = ANY_TIME, due_ms: int = 0) -> Start:
        start = self.ask(node, missed, due_ms)
        assert isinstance(start, Start)
        return start


@pytest.fixture
def web(redis_server: PrivateRedis) -> Web:
    return Web(redis_server)


@given(FETCHES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_starts_of_different_nodes_arrive_the_gap_apart(redis_server: PrivateRedis, fetches: list[Fetch]) -> None:
    """However late nodes are, and none starts for ever: each asks again, a bounded number of times."""
    web = Web(redis_server)
    moments: list[tuple[int, int, Start | None, Start]] = [
        (fetch.asked_ms, number, None, ANY_TIME) for number, fetch in enumerate(fetches)
    ]
    heapq.heapify(moments)
    turns = [0] * len(fetches)
    latest: dict[str, int] = defaultdict(lambda: -GAP_MS)
    arrived = []
    misses = 0
    while moments:
        now_ms, number, start, missed = heapq.heappop(moments)
        fetch = fetches[number]
        web.clock.advance(now_ms - web.clock.monotonic_ms())
        if start is None or now_ms > start.until_ms:
            missed = start or missed
            answer = web.ask(fetch.node, missed, had_turn=turns[number] > 0)
            if isinstance(answer, Start):
                misses = max(misses, answer.misses)
                heapq.heappush(moments, (answer.at_ms + fetch.late_ms, number, answer, answer))
            else:
                turns[number] += 1
                heapq.heappush(moments, (answer + fetch.late_ms, number, None, missed))
        elif now_ms < latest[fetch.node] + GAP_MS:
            heapq.heappush(moments, (latest[fetch.node] + GAP_MS, number, start, start))
        else:
            latest[fetch.node] = now_ms
            arrived.append((now_ms + fetch.way_ms, fetch.node))
    arrived.sort()
    assert len(arrived) == len(fetches)
    assert all(later[0] - earlier[0] >= GAP_MS for earlier, later in pairwise(arrived) if earlier[1] != later[1])
    assert misses <= 7
    assert max(turns, default=0) <= 10 + 2 * len(fetches)


def test_node_that_is_late_and_alone_loses_no_time(web: Web) -> None:
    """A missed start is granted at once, with twice the slack, and the next one stands."""
    first, second = web.start("a"), web.start("a")
    web.clock.advance(150)
    assert web.start("a", first).at_ms == web.clock.monotonic_ms()
    assert second.at_ms == first.at_ms + GAP_MS
    assert web.ask("b") == second.at_ms + GAP_MS + 2 * SLACK_MS


def test_start_is_not_before_the_host_is_due(web: Web) -> None:
    """Nor is its slack counted from another moment."""
    assert web.start("a", due_ms=300) == Start(300, 300 + SLACK_MS, T0 + 300)


def test_missed_start_waits_for_its_turn_where_others_came(web: Web) -> None:
    """It would be at the same time as another node's."""
    first, other = web.start("a"), web.start("b")
    web.clock.advance(150)
    assert web.ask("a", first) == other.at_ms + GAP_MS + 2 * SLACK_MS
