"""Gaps at hosts as a node measures them: from the end of a fetch to the next start, robots.txt included."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.scheduler.gates.delays import HostDelays
from bigcrawl.scheduler.gates.interfaces import Closed
from bigcrawl.scheduler.handout.host_gaps import HOSTS_REMEMBERED, HostGaps
from bigcrawl.scheduler.handout.start_gaps import StartGaps
from tests.unit.scheduler.handout.desk import Desk
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from pathlib import Path

Gap = tuple[str, str, int, int]


def made(tmp_path: Path, connections: int = 1) -> tuple[HostGaps, list[Gap], ManualClock]:
    clock, told = ManualClock(), list[Gap]()
    paces = HostDelays(make_config(tmp_path, "crawl", host_delay=2))
    gaps = HostGaps(clock, paces, connections, lambda *gap: told.append(gap))
    return gaps, told, clock


def test_a_gap_is_from_the_end_of_a_fetch_to_the_next_start(tmp_path: Path) -> None:
    gaps, told, _ = made(tmp_path)
    gaps.record_start("a.example", 1_000)
    gaps.record_end("a.example", 4_000, 2_000)
    gaps.record_start("b.example", 4_100)
    gaps.record_start("a.example", 6_500)
    gaps.record_start("a.example", 6_600)  # the gap before was measured already
    assert told == [("host", "a.example", 2_500, 2_000)]


@pytest.mark.parametrize("error", [None, Closed(retry_ms=0)])
def test_a_robots_txt_is_a_fetch_like_any_other(tmp_path: Path, error: Exception | None) -> None:
    """The rest after it is at least the host's delay; what its rules ask for is longer. It counts if given up, too."""
    gaps, told, clock = made(tmp_path)
    gaps.record_end("a.example", clock.monotonic_ms(), 2_000)
    clock.advance(2_500)
    with nullcontext() if error is None else pytest.raises(Closed), gaps.fetching_from("a.example"):
        if error is not None:
            raise error
    clock.advance(1_900)
    gaps.record_start("a.example", clock.monotonic_ms())
    assert told == [("host", "a.example", 2_500, 2_000), ("host", "a.example", 1_900, 2_000)]


def test_nothing_is_measured_with_several_connections(tmp_path: Path) -> None:
    gaps, told, _ = made(tmp_path, connections=2)
    gaps.record_end("a.example", 0, 2_000)
    gaps.record_start("a.example", 1)
    assert told == []


def test_hosts_that_rest_are_bounded(tmp_path: Path) -> None:
    gaps, told, _ = made(tmp_path)
    for number in range(HOSTS_REMEMBERED + 1):
        gaps.record_end(f"{number}.example", 0, 2_000)
    gaps.record_start("0.example", 5_000)
    gaps.record_start("1.example", 5_000)
    assert [name for _, name, *_ in told] == ["1.example"]


def test_starts_at_servers_and_in_spaces_are_measured_apart() -> None:
    """Only what was sent counts; a fetch that has to wait is not sent yet."""
    clock, told = ManualClock(), list[Gap]()
    starts = StartGaps(clock, record_gap=lambda *gap: told.append(gap))
    gaps = (("192.0.2.1", 500), ("pld a.example", 1_000))
    waits = []
    for after_ms in (0, 400, 800):
        clock.advance(after_ms)
        waits.append(starts.try_send(gaps))
    assert waits == [0, 600_000, 0]
    assert told == [("server", "192.0.2.1", 1_200, 500), ("space", "pld a.example", 1_200, 1_000)]


def test_the_gap_of_a_page_begins_when_it_was_answered_not_when_it_was_parsed(tmp_path: Path) -> None:
    """Its host's rest begins later, when its pipelines are done, so the gap is never too short for that."""
    desk = Desk(tmp_path, host_delay=1)
    first = desk.started(1)
    desk.clock.advance(300)
    desk.handout.fetches.record_answered(first)
    desk.clock.advance(700)
    first.record_download("status:200")
    desk.handout.fetches.end(first)
    desk.clock.advance(1_000)
    desk.started(2)
    assert desk.gaps == [("host", "a.example", 1_700, 1_000)]


def test_a_gap_begins_with_the_answer_and_ends_with_the_request(tmp_path: Path) -> None:
    """Not when a busy loop notices the answer, nor when the engine gets the next request, which may wait to be sent."""
    desk = Desk(tmp_path, host_delay=1)
    first = desk.started(1)
    desk.clock.advance(10)
    answered_us = desk.clock.monotonic_us()
    desk.clock.advance(30)
    desk.handout.fetches.record_answered(first, answered_us)
    first.record_download("status:200")
    desk.handout.fetches.end(first)
    desk.clock.advance(900)
    second = desk.taken(2)
    desk.handout.admit(second)
    assert desk.handout.buffer.pop() is second
    desk.clock.advance(70)
    assert not desk.handout.try_send((), second)
    assert desk.gaps == [("host", "a.example", 1_000, 1_000)]


def test_a_url_that_is_refused_is_no_fetch(tmp_path: Path) -> None:
    """It goes through the engine for its errback only."""
    desk = Desk(tmp_path)
    desk.fetched_in(1, 0, "a.example")
    refused = desk.taken(2)
    desk.handout.fail(refused, "error:dns")
    assert desk.handout.buffer.pop() is refused
    refused.record_download("error:dns")
    desk.handout.fetches.end(refused)
    assert desk.gaps == []
