"""The protocol under faults of the network and of Redis' memory: nothing lost, nothing twice but within its bound.

Any command of any pipeline is refused, any reply lost, any request late, any suffix of Redis forgotten, any node
killed or stopped for longer than its lease. What must hold is told in `frontier_trial`: the crawl ends by itself,
every page was fetched, no host was asked too soon or twice at a time, and no page was fetched more often than excused.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.property.frontier_trial import (
    FEW_HOSTS,
    MANY_HOSTS,
    NO_DELAY,
    PAGES,
    SITES,
    SITES_IDS,
    TURN_MS,
    LeapingLoop,
    Sites,
    Trial,
)
from tests.support.redis_servers.unreliable_redis import Fault, Plan
from tests.support.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Awaitable

SETTINGS = settings(max_examples=examples(8), stateful_step_count=12, deadline=None, derandomize=True)
NODES_MAX = 3
REWINDS_MS = (0, 500, 1_000, 2_000, 8_000, 30_000)
_numbers = itertools.count(1)
_faults = st.builds(Plan, st.sampled_from(Fault), st.integers(1, 15))


class UnreliableMachine(RuleBasedStateMachine):
    """Drives a trial."""

    def __init__(self, redis_url: str, sites: Sites = MANY_HOSTS) -> None:
        super().__init__()
        self.loop = LeapingLoop()
        self.directory = Path(tempfile.mkdtemp(prefix="bigcrawl-trial-"))
        self.trial = self.do(_made(self.directory, f"trial{next(_numbers)}", redis_url, sites))

    def do(self, work: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(work)

    def node(self, number: int) -> Any:
        return self.trial.nodes[number % len(self.trial.nodes)]

    @initialize()
    def begin(self) -> None:
        self.do(self.trial.begin())

    # --- work

    @rule(turns=st.integers(1, 6))
    def time_passes(self, turns: int) -> None:
        for _ in range(turns):
            self.do(self.trial.turn_all())

    @precondition(lambda self: self.trial.nodes)
    @rule(number=st.integers(0, NODES_MAX), ends=st.integers(1, 4), again=st.booleans(), turns=st.integers(1, 4))
    def pages_come(self, number: int, ends: int, again: bool, turns: int) -> None:
        for _ in range(turns):
            node = self.node(number)
            for _ in range(ends):
                self.do(self.trial.end_one(node, again=again))
            self.do(self.trial.turn_all())

    # --- faults

    @rule(plans=st.lists(st.none() | _faults, min_size=1, max_size=8))
    def the_network_is_unwell(self, plans: list[Plan | None]) -> None:
        self.trial.network.plans.extend(plans)

    @rule()
    def a_late_request_arrives(self) -> None:
        self.trial.network.deliver()

    @rule(by_ms=st.sampled_from(REWINDS_MS), away_turns=st.just(0) | st.integers(1, 40))
    def redis_forgets(self, by_ms: int, away_turns: int = 0) -> None:
        """It may stay away, longer than a lease or not."""
        self.trial.rewind(by_ms)
        self.trial.network.is_away = True
        self.time_passes(away_turns)
        self.trial.network.is_away = False

    @precondition(lambda self: len(self.trial.nodes) < NODES_MAX)
    @rule()
    def a_node_starts(self) -> None:
        self.do(self.trial.start_node())

    @precondition(lambda self: self.trial.nodes)
    @rule(number=st.integers(0, NODES_MAX))
    def a_node_is_killed(self, number: int) -> None:
        self.do(self.trial.kill(self.node(number)))

    @precondition(lambda self: self.trial.nodes)
    @rule(number=st.integers(0, NODES_MAX), turns=st.integers(1, 40))
    def a_node_is_stopped(self, number: int, turns: int) -> None:
        """SIGSTOP for as long as the others take for so many turns, which may be longer than its lease."""
        node = self.node(number)
        others = [other for other in self.trial.nodes if other is not node]
        for _ in range(turns):
            self.do(self.trial.pass_time(TURN_MS))
            for other in others:
                self.do(self.trial.turn_node(other))
                self.do(self.trial.end_one(other))

    def teardown(self) -> None:
        try:
            self.do(self.trial.settle())
        except AssertionError as error:
            error.add_note("\n".join(self.trial.network.struck))
            raise
        finally:
            self.do(self.trial.close())
            self.loop.close()
            shutil.rmtree(self.directory)


async def _made(directory: Path, crawl: str, redis_url: str, sites: Sites) -> Trial:
    return Trial(directory, crawl, redis_url, sites)


@pytest.mark.parametrize("sites", SITES, ids=SITES_IDS)
def test_nothing_is_lost_and_nothing_comes_twice_but_within_its_bound(redis_url: str, sites: Sites) -> None:
    """Random faults of all kinds."""
    run_state_machine_as_test(partial(UnreliableMachine, redis_url, sites), settings=SETTINGS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "turns",
    [pytest.param(turns, marks=pytest.mark.long("another moment")) if turns % 3 else turns for turns in range(3, 12)],
)
def test_no_host_is_asked_too_soon_when_a_node_dies_and_redis_forgets_its_last_second(
    redis_url: str, turns: int
) -> None:
    """Nobody is left who knows what the node fetched in that second. Each moment of a crawl is tried."""
    machine = UnreliableMachine(redis_url)
    machine.begin()
    machine.pages_come(0, ends=2, again=False, turns=turns)
    machine.a_node_is_killed(0)
    machine.redis_forgets(1_000)
    machine.a_node_starts()
    machine.teardown()


def test_no_host_is_asked_twice_at_a_time_when_redis_forgets_the_claim_of_a_node_that_is_stopped(
    redis_url: str,
) -> None:
    """Only the files know that it owned anything. What it has under way is answered while it stands still."""
    machine = UnreliableMachine(redis_url)
    machine.begin()
    machine.a_node_is_stopped(0, turns=18)
    machine.pages_come(0, ends=4, again=False, turns=1)
    machine.time_passes(4)
    machine.a_node_is_stopped(0, turns=1)
    machine.redis_forgets(8_000)
    machine.a_node_starts()
    machine.redis_forgets(0)
    machine.a_node_is_stopped(0, turns=29)
    machine.teardown()


@pytest.mark.parametrize("is_stopped", [False, True], ids=["runs", "is stopped"])
def test_no_host_is_asked_twice_at_a_time_when_redis_remembers_a_dead_owner_instead_of_the_last(
    redis_url: str, *, is_stopped: bool
) -> None:
    """What it has forgotten is that a node has claimed since, which fetches."""
    machine = UnreliableMachine(redis_url)
    machine.begin()
    machine.a_node_is_killed(0)
    machine.a_node_starts()
    machine.redis_forgets(0)
    machine.time_passes(4)
    machine.a_node_starts()
    machine.redis_forgets(8_000)
    if is_stopped:
        machine.a_node_is_stopped(0, turns=39)
    else:
        machine.a_node_starts()
        machine.pages_come(2, ends=2, again=True, turns=3)
    machine.teardown()


def test_nodes_keep_their_partitions_when_redis_was_away_for_longer_than_a_lease(redis_url: str) -> None:
    """Whoever comes back first seems to be alone, and waits for the others."""
    machine = UnreliableMachine(redis_url)
    machine.begin()
    machine.a_node_starts()
    first, second = machine.trial.nodes
    machine.time_passes(12)
    before = [set(node.ownership.owned) for node in (first, second)]
    assert all(before)
    machine.do(machine.trial.pass_time(60_000))
    for node in (second, second, first):
        machine.do(machine.trial.turn_node(node))
    machine.time_passes(12)
    assert [set(node.ownership.owned) for node in (first, second)] == before
    machine.teardown()


def test_partitions_of_a_node_that_does_not_come_back_are_claimed(redis_url: str) -> None:
    """It was stopped while Redis was away."""
    machine = UnreliableMachine(redis_url)
    machine.begin()
    machine.a_node_starts()
    second = machine.trial.nodes[1]
    machine.time_passes(12)
    machine.do(machine.trial.pass_time(60_000))
    for _ in range(12):
        machine.do(machine.trial.pass_time(TURN_MS))
        machine.do(machine.trial.turn_node(second))
    assert set(second.ownership.owned) == set(range(4))
    machine.teardown()


def begun_with_a_line(redis_url: str, sites: Sites) -> tuple[UnreliableMachine, int]:
    """Two nodes, one of which has URLs of a host that were taken ahead, and wait; and its number."""
    machine = UnreliableMachine(redis_url, sites)
    machine.begin()
    machine.a_node_starts()
    for _ in range(PAGES):
        for number, node in enumerate(machine.trial.nodes):
            if node.handout.lanes.waiting > 1:
                return machine, number
            for _ in range(4):
                machine.do(machine.trial.end_one(node))
        machine.time_passes(1)
    raise AssertionError("no URL is taken ahead")


@pytest.mark.parametrize("sites", [FEW_HOSTS, NO_DELAY], ids=["few hosts", "no delay"])
@pytest.mark.parametrize("fault", ["killed", "stopped", "forgets", "unheard", "refused", "cut short", "late"])
def test_a_line_that_waits_is_lost_and_repeated_as_little_as_any_url(redis_url: str, fault: str, sites: Sites) -> None:
    """Its node dies or stands still until another one has claimed, Redis forgets two seconds, replies are lost."""
    machine, number = begun_with_a_line(redis_url, sites)
    if fault == "killed":
        machine.a_node_is_killed(number)
    elif fault == "stopped":
        machine.a_node_is_stopped(number, turns=40)
    elif fault == "forgets":
        machine.redis_forgets(2_000, away_turns=2)
    else:
        machine.the_network_is_unwell([Plan(Fault(fault)), None] * 8)
        machine.pages_come(number, ends=2, again=False, turns=3)
        machine.a_late_request_arrives()
    machine.teardown()
