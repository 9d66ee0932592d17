"""The crawl's speed in Redis: what nodes are granted together, whoever asks; on a clock of the test's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.politeness.start_permits import ASK_MS, HORIZON_MS
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys

if TYPE_CHECKING:
    from bigcrawl.redisdb.scripts import StartTimes
    from tests.support.redis_servers.script_world import ScriptRunner

T0_MS = 1_700_000_000_000


class Gate:
    """The speed of one crawl, asked at moments after T0."""

    def __init__(self, runner: ScriptRunner, crawl: str) -> None:
        self._runner = runner
        self._keys = CrawlKeys(crawl)
        self.page_us = 100_000
        self.bytes_us = 0

    def ask(self, at_ms: int, wanted: int, *, share: int = 1_000, debt_us: int = 0, given_back: int = 0) -> StartTimes:
        call = scripts.grant_starts(
            self._keys,
            page_us=self.page_us,
            bytes_us=self.bytes_us,
            debt_us=debt_us,
            wanted=wanted,
            share=share,
            given_back=given_back,
            horizon_ms=HORIZON_MS,
            now_ms=T0_MS + at_ms,
        )
        starts: StartTimes = self._runner.run(call)
        return starts

    def times(self, at_ms: int, wanted: int, **options: int) -> list[int]:
        """The granted times, ms after T0."""
        starts = self.ask(at_ms, wanted, **options)
        return [round((starts.first_us + starts.step_us * n) / 1000) - T0_MS for n in range(starts.granted)]


@pytest.fixture
def gate(runner: ScriptRunner, crawl_name: str) -> Gate:
    return Gate(runner, crawl_name)


def test_starts_follow_each_other_by_the_step_over_all_askers(gate: Gate) -> None:
    """Ten a second: whoever asks gets the next ones, none is given twice."""
    assert gate.times(0, 2) == [0, 100]
    assert gate.times(0, 2) == [200, 300]
    assert gate.times(150, 1) == [400]


def test_no_start_lies_further_ahead_than_the_horizon(gate: Gate) -> None:
    """A change of speed finds little that was granted by the old one."""
    assert gate.times(0, 1_000) == [0, 100, 200, 300, 400, 500]
    assert gate.times(99, 1_000) == []
    assert gate.times(100, 1_000) == [600]


def test_a_node_gets_its_share_and_what_others_left(gate: Gate) -> None:
    """A share an asking; what nobody had used by now goes to who wants it."""
    assert gate.times(0, 1_000, share=1) == [0]
    assert gate.times(250, 1_000, share=1) == [100, 200]


def test_what_was_long_not_used_is_not_made_up_for(gate: Gate) -> None:
    """After an hour of nothing, half a second's starts come at once and no more."""
    gate.times(0, 1)
    assert gate.times(3_600_000, 6) == [3_599_500 + 100 * n for n in range(6)]


def test_starts_that_were_not_used_come_back(gate: Gate) -> None:
    """Given back, the same time is granted again."""
    assert gate.times(0, 4) == [0, 100, 200, 300]
    assert gate.times(300, 2, given_back=2) == [200, 300]


def test_bytes_hold_back_whoever_asks(gate: Gate) -> None:
    """The slower limit sets the step, and bytes beyond the charge delay the next start."""
    gate.bytes_us = 200_000
    assert gate.times(0, 2) == [0, 200]
    assert gate.times(300, 1, debt_us=100_000) == [500]
    assert gate.times(600, 1) == [700]


def test_a_huge_body_stops_a_crawl_for_a_minute_at_most(gate: Gate) -> None:
    """What a body brought beyond a minute's bytes is let go."""
    gate.page_us, gate.bytes_us = 0, 1_000
    assert gate.times(0, 1) == [0]
    assert gate.times(0, 1, debt_us=3_600_000_000) == []
    assert gate.times(59_400, 1) == []
    assert gate.times(59_600, 1) == [60_000]


def test_bytes_that_did_not_come_are_no_credit_for_later(gate: Gate) -> None:
    """Fetches that brought nothing give back their charge, half a second's at most."""
    gate.page_us, gate.bytes_us = 0, 100_000
    assert gate.times(0, 1) == [0]
    assert gate.times(0, 10, debt_us=-3_600_000_000)[0] == -500


def test_two_crawls_have_a_speed_each(runner: ScriptRunner, crawl_name: str) -> None:
    """A crawl's speed is its own."""
    first, second = Gate(runner, crawl_name), Gate(runner, crawl_name + "-b")
    assert first.times(0, 1) == second.times(0, 1) == [0]
    runner.delete(CrawlKeys(crawl_name + "-b").speed)


@pytest.mark.parametrize("rate", [0.4, 7, 180, 2_000])
@pytest.mark.parametrize("nodes", [1, 3])
def test_a_minute_has_what_was_asked_for(gate: Gate, rate: float, nodes: int) -> None:
    """Nodes that ask with jitter, one of them without work for half the time, start what was asked within 5 %."""
    gate.page_us = round(1e6 / rate)
    share = -(-round(rate * ASK_MS) // 1000 // nodes) or 1
    granted: list[int] = []
    step = 0
    for at_ms in range(0, 60_000, ASK_MS // nodes):
        step += 1
        node = step % nodes
        if nodes > 1 and node == 0 and at_ms < 30_000:
            continue
        granted += gate.times(at_ms + (step * 37) % 50, 2 * share + 1, share=share)
    minute = [start for start in granted if start < 60_000]
    assert len(minute) == pytest.approx(60 * rate, rel=0.05, abs=1)
    assert len(set(granted)) == len(granted) or rate > 1_000 / 2
