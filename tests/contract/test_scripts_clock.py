"""The time of the crawls on a Redis whose clock is set, and of nodes whose clocks stand still."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CLOCK
from tests.support.redis_servers.script_world import T0, ScriptRunner

if TYPE_CHECKING:
    from collections.abc import Iterator

HOUR_MS = 3_600_000
STEP_MS = 1_000


@pytest.fixture
def clock(runner: ScriptRunner) -> Iterator[ScriptRunner]:
    """A clock that nobody has asked; it stands above all crawls, so it is removed before and after."""
    runner.client.delete(CLOCK)
    yield runner
    runner.client.delete(CLOCK)


def tell(
    runner: ScriptRunner, wall_ms: int, estimate_ms: int = 0, node: str = "a", *, correct: bool = True
) -> tuple[int, int]:
    call = scripts.tell_time(estimate_ms, STEP_MS, node, correct=correct, now_ms=wall_ms)
    answer: tuple[int, int] = runner.run(call)
    return answer


def test_first_who_asks_hears_the_servers_clock(clock: ScriptRunner) -> None:
    """Who has no estimate is told, and leaves nothing behind."""
    assert tell(clock, T0) == (T0, 0)
    assert not clock.client.exists(CLOCK)


@pytest.mark.parametrize("difference_ms", [-STEP_MS, -3, 0, 700, STEP_MS])
def test_small_difference_is_the_nodes_to_follow(clock: ScriptRunner, difference_ms: int) -> None:
    """Drift, or an answer that was slow: the server's clock is right."""
    assert tell(clock, T0, T0 + difference_ms) == (T0, 0)


@pytest.mark.parametrize("jump_ms", [HOUR_MS, -HOUR_MS, 2_000, -2_000])
def test_clock_that_was_set_is_seen_through(clock: ScriptRunner, jump_ms: int) -> None:
    """The time goes on evenly for who saw the jump, for who comes later, and when the clock is set back."""
    tell(clock, T0, T0)
    assert tell(clock, T0 + 1_000 + jump_ms, T0 + 1_000) == (T0 + 1_000, jump_ms)
    assert tell(clock, T0 + 1_500 + jump_ms, 0, "b") == (T0 + 1_500, 0)
    assert tell(clock, T0 + 2_000 + jump_ms, T0 + 2_000) == (T0 + 2_000, 0)
    assert tell(clock, T0 + 3_000, T0 + 3_000) == (T0 + 3_000, -jump_ms)


@pytest.mark.parametrize("jump_ms", [HOUR_MS, -HOUR_MS])
def test_two_nodes_see_one_jump(clock: ScriptRunner, jump_ms: int) -> None:
    """The first to ask puts it right, and the other finds nothing wrong."""
    tell(clock, T0, T0, "a")
    tell(clock, T0 + 500, T0 + 500, "b")
    assert tell(clock, T0 + 1_000 + jump_ms, T0 + 1_000, "a") == (T0 + 1_000, jump_ms)
    assert tell(clock, T0 + 1_500 + jump_ms, T0 + 1_500, "b") == (T0 + 1_500, 0)


def test_node_whose_clock_stood_still_takes_the_time_of_the_others(clock: ScriptRunner) -> None:
    """Another was told within the last seconds, and agreed: it is the one who asks who is wrong."""
    tell(clock, T0, T0, "a")
    tell(clock, T0 + 60_000, T0 + 60_000, "b")
    assert tell(clock, T0 + 61_000, T0 + 1_000, "a") == (T0 + 61_000, 0)
    assert tell(clock, T0 + 62_000, T0 + 62_000, "b") == (T0 + 62_000, 0)


def test_look_corrects_nothing(clock: ScriptRunner) -> None:
    """Who only looks hears what the time would be, and decides whether its answer was just slow."""
    tell(clock, T0, T0)
    before = clock.client.hgetall(CLOCK)
    assert tell(clock, T0 + HOUR_MS, T0 + 1_000, correct=False) == (T0 + HOUR_MS, 0)
    assert clock.client.hgetall(CLOCK) == before


def test_repeated_question_changes_nothing_more(clock: ScriptRunner) -> None:
    """A lost reply: the second asks as the first did."""
    tell(clock, T0, T0)
    assert tell(clock, T0 + HOUR_MS, T0 + 100) == (T0 + 100, HOUR_MS - 100)
    before = clock.client.hgetall(CLOCK)
    assert tell(clock, T0 + HOUR_MS, T0 + 100) == (T0 + 100, 0)
    assert clock.client.hgetall(CLOCK) == before


@pytest.mark.parametrize("back_ms", [HOUR_MS, 300])
def test_time_goes_on_where_it_was_when_the_clock_was_set_back_while_nobody_asked(
    clock: ScriptRunner, back_ms: int
) -> None:
    """All nodes had left: the first to come hears the time that was told last, and from then on it goes on evenly."""
    tell(clock, T0, T0)
    assert tell(clock, T0 - back_ms) == (T0, 0)
    set_ms = -back_ms if back_ms > STEP_MS else 0
    assert tell(clock, T0 - back_ms, T0, "b") == (T0, set_ms)
    assert tell(clock, T0 - back_ms + 400, T0 + 400, "b") == (T0 + 400, 0)
    assert tell(clock, T0 - back_ms + 500, T0 + 500, "c") == (T0 + 500, 0)


def test_two_nodes_that_start_at_once_after_the_clock_was_set_back_agree(clock: ScriptRunner) -> None:
    """Both hear the same first time; who asks second goes by what the first was told."""
    tell(clock, T0, T0)
    wall_ms = T0 - HOUR_MS
    assert [tell(clock, wall_ms), tell(clock, wall_ms + 300)] == [(T0, 0), (T0, 0)]
    assert tell(clock, wall_ms + 1_000, T0 + 1_000, "b") == (T0 + 1_000, -HOUR_MS)
    assert tell(clock, wall_ms + 1_300, T0 + 1_000, "c") == (T0 + 1_300, 0)


def test_question_that_was_under_way_for_a_minute_turns_nothing_back(clock: ScriptRunner) -> None:
    """The same node has been told of later times since: what it thought a minute ago corrects nothing."""
    tell(clock, T0, T0)
    tell(clock, T0 + 60_000, T0 + 60_000)
    before = clock.client.hgetall(CLOCK)
    assert tell(clock, T0 + 60_500, T0 + 500) == (T0 + 60_500, 0)
    assert tell(clock, T0 + 61_000, 0) == (T0 + 61_000, 0)
    assert int(clock.client.hget(CLOCK, "adjust") or 0) == int(before.get(b"adjust", 0))


def test_node_that_slept_turns_nothing_back_when_the_others_are_gone(clock: ScriptRunner) -> None:
    """An hour's sleep, meanwhile another node was told of the time and left: the sleeper's clock stood still."""
    tell(clock, T0, T0, "a")
    tell(clock, T0 + HOUR_MS, T0 + HOUR_MS, "b")
    assert tell(clock, T0 + HOUR_MS + 10_000, T0 + 1_000, "a") == (T0 + HOUR_MS + 10_000, 0)
