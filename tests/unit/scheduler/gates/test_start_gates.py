"""Starts at one server over all nodes: apart, whoever is late; and each comes, whosever it is."""

from __future__ import annotations

import asyncio
import functools
import heapq
import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bigcrawl.clock import ManualClock
from bigcrawl.redisdb.keys import gate_prefix
from bigcrawl.scheduler.gates.passages import GateLine, StartGates, of_server, slack_ms
from bigcrawl.scheduler.records.at_gates import ANY_TIME, Start
from tests.support.redis_servers.script_world import T0, ScriptRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import redis

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.redisdb.scripts import Call
    from tests.support.redis_servers.redis_server import PrivateRedis

GAP_MS = 400
SERVER = "192.0.2.1"
SPACES = ("pld a.example", "pld b.example", "group x")
NODES = ("a", "b", "c")
SLACK_MS = slack_ms(GAP_MS, 0)
HOST_DELAY_MS = 1_000


@functools.cache
def _loop() -> asyncio.Runner:
    """One for thousands of questions; nothing is left in it between them."""
    return asyncio.Runner()


@pytest.fixture(scope="module", autouse=True)
def _closed_loop() -> Iterator[None]:
    yield
    _loop().close()
    _loop.cache_clear()


class TimedClient:
    """Runs scripts on a real Redis, by a clock that the test sets."""

    def __init__(self, redis: redis.Redis, clock: ManualClock) -> None:
        self._runner = ScriptRunner(redis, ["pass_gates"])
        self._clock = clock
        self.calls = 0

    def now_ms(self) -> int:
        return T0 + self._clock.monotonic_ms()

    async def run_each(self, calls: Sequence[Call[Any]]) -> list[Any]:
        self.calls += len(calls)
        return [self._runner.run(call._replace(args=(self.now_ms(), *call.args[1:]))) for call in calls]


@dataclass
class Fetch:
    """A fetch that waits for its turn, or for its start."""

    node: str
    name: int
    start: Start | None = None
    missed: Start = ANY_TIME
    turns: int = 0
    gates: tuple[str, ...] = (SERVER,)


class Server:
    """What nodes fetch from, and how each does it; times are ms of their common clock."""

    def __init__(self, redis_server: PrivateRedis, gap_ms: int = GAP_MS) -> None:
        redis_server.client.delete(*(gate_prefix(SERVER) + name for name in (SERVER, *SPACES)))
        self.gap_ms = gap_ms
        self.clock = ManualClock()
        self.client = TimedClient(redis_server.client, self.clock)
        self._gates = {node: StartGates(node, cast("RedisClient", self.client), self.clock) for node in NODES}
        self._moments: list[tuple[int, int, Fetch]] = []
        self._numbers = count()
        self._latest: dict[tuple[str, str], int] = defaultdict(lambda: -gap_ms)

    def ask(
        self,
        node: str,
        missed: Start = ANY_TIME,
        due_ms: int = 0,
        gates: Sequence[str] = (SERVER,),
        *,
        had_turn: bool = False,
    ) -> Start | int:
        line = GateLine(gate_prefix(SERVER), tuple((gate, self.gap_ms) for gate in gates))
        return _loop().run(self._gates[node].request_start(line, due_ms, before=missed, had_turn=had_turn))

    def start(self, node: str, missed: Start = ANY_TIME, due_ms: int = 0) -> Start:
        start = self.ask(node, missed, due_ms)
        assert isinstance(start, Start)
        return start

    def want(self, at_ms: int, fetch: Fetch) -> None:
        """Let something of a fetch happen: the first time it asks for its start."""
        heapq.heappush(self._moments, (at_ms, next(self._numbers), fetch))

    def started(self, late_ms: Callable[[Fetch], int]) -> Iterator[tuple[int, Fetch]]:
        """When each fetch starts, in order; `late_ms` says how late a node does what the time has come for."""
        while self._moments:
            now_ms, _, fetch = heapq.heappop(self._moments)
            self.clock.advance(now_ms - self.clock.monotonic_ms())
            if fetch.start is None or now_ms > fetch.start.until_ms:
                self.want(self._asked(fetch) + late_ms(fetch), fetch)
                continue
            own = [(fetch.node, gate) for gate in fetch.gates]
            next_ms = max(self._latest[each] for each in own) + self.gap_ms
            if now_ms < next_ms:
                self.want(next_ms, fetch)
            else:
                self._latest.update(dict.fromkeys(own, now_ms))
                yield now_ms, fetch

    def _asked(self, fetch: Fetch) -> int:
        fetch.missed, fetch.start = fetch.start or fetch.missed, None
        answer = self.ask(fetch.node, fetch.missed, gates=fetch.gates, had_turn=fetch.turns > 0)
        if isinstance(answer, Start):
            fetch.start = answer
            return answer.at_ms
        fetch.turns += 1
        return answer


@pytest.fixture
def server(redis_server: PrivateRedis) -> Server:
    return Server(redis_server)


class Given(NamedTuple):
    """Who fetches, when it asks for its start, how late it then is, and how long the request takes to the server."""

    node: str
    asked_ms: int
    late_ms: int
    way_ms: int


FETCHES = st.lists(
    st.builds(
        Given,
        st.sampled_from(NODES),
        st.integers(0, 20 * GAP_MS),
        st.one_of(st.integers(0, SLACK_MS), st.integers(0, 4 * GAP_MS)),
        st.integers(0, SLACK_MS),
    ),
    max_size=40,
)


@given(FETCHES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_starts_of_different_nodes_arrive_the_gap_apart(redis_server: PrivateRedis, fetches: list[Given]) -> None:
    """However late nodes are, as far as the way is no longer than the slack; and each comes."""
    server = Server(redis_server)
    for number, each in enumerate(fetches):
        server.want(each.asked_ms, Fetch(each.node, number))
    dice = random.Random(1)
    arrived = sorted(
        (at_ms + fetches[fetch.name].way_ms, fetch.node)
        for at_ms, fetch in server.started(lambda fetch: dice.randint(0, fetches[fetch.name].late_ms))
    )
    assert len(arrived) == len(fetches)
    assert all(later[0] - earlier[0] >= GAP_MS for earlier, later in pairwise(arrived) if earlier[1] != later[1])


@given(
    FETCHES, st.lists(st.lists(st.sampled_from(SPACES), min_size=1, unique=True).map(tuple), min_size=40, max_size=40)
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_starts_in_each_space_arrive_the_gap_apart(
    redis_server: PrivateRedis, fetches: list[Given], spaces: list[tuple[str, ...]]
) -> None:
    """Those of one PLD, or of one group, or of both; and each comes."""
    server = Server(redis_server)
    for number, (each, gates) in enumerate(zip(fetches, spaces, strict=False)):
        server.want(each.asked_ms, Fetch(each.node, number, gates=gates))
    dice = random.Random(1)
    arrived = sorted(
        (at_ms + fetches[fetch.name].way_ms, fetch.node, fetch.gates)
        for at_ms, fetch in server.started(lambda fetch: dice.randint(0, fetches[fetch.name].late_ms))
    )
    assert len(arrived) == len(fetches)
    for space in SPACES:
        inside = [(at_ms, node) for at_ms, node, gates in arrived if space in gates]
        assert all(later[0] - earlier[0] >= GAP_MS for earlier, later in pairwise(inside) if earlier[1] != later[1])


class Crowded(NamedTuple):
    """What became of a server that hosts of some nodes keep busy."""

    starts: Counter[str]  # by node
    asked: float  # for each start
    rate: float  # of one start a gap


def crowded(server: Server, hosts: dict[str, int], late_ms: Callable[[Fetch], int], starts: int) -> Crowded:
    """Let the hosts of each node be fetched from for so many starts, each a while after it was the last time."""
    names = count()
    for node, number in hosts.items():
        for _ in range(number):
            server.want(0, Fetch(node, next(names)))
    nodes: Counter[str] = Counter()
    for at_ms, fetch in server.started(late_ms):
        nodes[fetch.node] += 1
        if nodes.total() == starts:
            return Crowded(nodes, server.client.calls / starts, (starts - 1) * server.gap_ms / at_ms)
        server.want(at_ms + HOST_DELAY_MS, Fetch(fetch.node, fetch.name))
    raise AssertionError("a host that is fetched from again and again does not end")


@pytest.mark.parametrize("gap_ms", [100, 500, 3_000, 10_000])
def test_the_one_host_of_a_node_comes_among_many_of_another(redis_server: PrivateRedis, gap_ms: int) -> None:
    """Each host has its share, whoever fetches from it; changes between nodes cost little."""
    dice = random.Random(1)
    seen = crowded(Server(redis_server, gap_ms), {"a": 30, "b": 1}, lambda _: dice.randint(0, 10), 620)
    assert seen.starts["b"] >= 15, "a share is 20"
    assert seen.rate > 0.8
    assert seen.asked < 3


@pytest.mark.parametrize(
    "late",
    [
        {"a"},
        pytest.param({"b"}, marks=pytest.mark.long("the other node")),
        pytest.param({"a", "b"}, marks=pytest.mark.long("both, of which one is late here")),
    ],
)
def test_nodes_that_are_always_late_keep_nobody_away(redis_server: PrivateRedis, late: set[str]) -> None:
    """Nor are they kept away themselves; the server is asked less often then."""
    dice = random.Random(1)
    server = Server(redis_server, 500)
    lateness = lambda fetch: dice.randint(200, 700) if fetch.node in late else dice.randint(0, 10)  # noqa: E731
    seen = crowded(server, {"a": 20, "b": 5}, lateness, 500)
    assert seen.starts["b"] >= 30, "a share is 100"
    assert seen.starts["a"] >= 200, "a share is 400"


def test_node_that_has_a_server_to_itself_loses_nothing(redis_server: PrivateRedis) -> None:
    """Its starts are a little late each, which adds up, and yet they are seldom missed."""
    dice = random.Random(1)
    seen = crowded(Server(redis_server, 500), {"a": 30}, lambda _: dice.randint(1, 10), 600)
    assert seen.rate > 0.97
    assert seen.asked < 2.5


def test_missed_start_is_granted_at_once_where_nobody_else_came(server: Server) -> None:
    """With twice the slack; the start after it stands, and the next one is behind that."""
    first, second = server.start("a"), server.start("a")
    server.clock.advance(150)
    assert server.start("a", first) == Start(150, 150 + 2 * SLACK_MS, T0 + 150, misses=1)
    assert server.ask("a") == second.at_ms + GAP_MS


def test_missed_start_waits_for_its_turn_where_others_came(server: Server) -> None:
    """It would be at the same time as another node's."""
    first, other = server.start("a"), server.start("b")
    server.clock.advance(450)
    assert server.start("a", first).at_ms == other.at_ms + GAP_MS + 2 * SLACK_MS


def test_start_is_not_before_the_host_is_due(server: Server) -> None:
    """Nor is its slack counted from another moment."""
    assert server.start("a", due_ms=300) == Start(300, 300 + SLACK_MS, T0 + 300)


def test_server_has_no_gate_where_it_has_no_gap() -> None:
    """Of IPv6 it is the network's."""
    assert of_server("192.0.2.1", 0).gates == ()
    assert of_server("2001:db8:1:2::9", 500).gates == (("2001:db8:1:2::/64", 500),)
