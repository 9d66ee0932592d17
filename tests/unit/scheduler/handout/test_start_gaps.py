"""A node keeps the gaps between its own starts, whenever they come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.scheduler.handout import start_gaps
from bigcrawl.scheduler.handout.start_gaps import StartGaps
from bigcrawl.scheduler.records.at_gates import MISSED
from tests.unit.scheduler.handout.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path


def test_starts_at_one_server_keep_their_gap(tmp_path: Path) -> None:
    """A URL whose server was just asked comes back when the gap is over; others are not held up."""
    desk = Desk(tmp_path, server_delay=0.5)
    desk.clock.advance(10_000)
    first, second, other = desk.taken(1, "192.0.2.1"), desk.taken(2, "192.0.2.1"), desk.taken(3, "192.0.2.2")
    for held in (first, second, other):
        desk.handout.admit(held)
    assert [desk.handout.buffer.pop(), desk.handout.buffer.pop(), desk.handout.buffer.pop()] == [first, other, None]
    [(delay_s, call, held)] = desk.timers
    assert (delay_s, held) == (0.5, second)
    desk.clock.advance(500)
    call(held)
    assert desk.handout.buffer.pop() is second


def test_starts_that_are_not_handed_out_keep_the_same_gaps(tmp_path: Path) -> None:
    """A robots.txt and a page of one server: whichever comes first, the other waits for the gap after it."""
    desk = Desk(tmp_path, server_delay=0.5)
    desk.clock.advance(1_000)
    gap = (("192.0.2.1", 500),)
    assert desk.handout.start_gaps.try_start_until(gap, 1_000) == 0
    desk.handout.admit(desk.taken(1, "192.0.2.1"))
    desk.clock.advance(200)
    assert desk.handout.buffer.pop() is None
    [(delay_s, admit, held)] = desk.timers
    assert delay_s == pytest.approx(0.3)
    desk.clock.advance(300)
    admit(held)
    assert desk.handout.buffer.pop() is held
    desk.clock.advance(100)
    assert desk.handout.start_gaps.try_start_until(gap, 2_000) == 400
    desk.clock.advance(400)
    assert (
        desk.handout.start_gaps.try_start_until(gap, 1_999)
        == desk.handout.start_gaps.try_start_until((), 1_999)
        == MISSED
    )
    assert desk.handout.start_gaps.try_start_until(gap, 2_000) == 0
    assert desk.handout.start_gaps.try_start_until((), 2_000) == 0


def test_fetch_of_many_gates_keeps_the_longest_gap() -> None:
    """It waits for all; while it waits it has started at none."""
    gaps = StartGaps(ManualClock())
    assert gaps.try_start((("near", 100),), 0) == 0
    assert gaps.try_start((("near", 100), ("far", 500)), 40) == 60
    assert gaps.try_start((("far", 500),), 50) == 0
    assert gaps.try_start((("near", 100), ("far", 500)), 60) == 490
    assert gaps.try_start((), 60) == 0


def test_gates_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch at one that was forgotten starts at once."""
    monkeypatch.setattr(start_gaps, "GATES_REMEMBERED", 2)
    gaps = StartGaps(ManualClock())
    assert [gaps.try_start(((name, 100),), 0) for name in "abc"] == [0, 0, 0]
    assert [gaps.try_start(((name, 100),), 0) for name in "cb"] == [100, 100]
    assert gaps.try_start((("a", 100),), 0) == 0


def test_gaps_are_kept_to_the_microsecond_where_fetches_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole milliseconds would let the second fetch come 0.9 ms too early."""
    clock, now_us = ManualClock(), [10_000_900]
    monkeypatch.setattr(clock, "monotonic_us", lambda: now_us[0])
    monkeypatch.setattr(clock, "monotonic_ms", lambda: now_us[0] // 1_000)
    gaps = StartGaps(clock)
    assert gaps.try_send((("192.0.2.1", 500),)) == 0
    now_us[0] += 499_100
    assert gaps.try_send((("192.0.2.1", 500),)) == 900
    now_us[0] += 900
    assert gaps.try_send((("192.0.2.1", 500),)) == 0


def test_gap_begins_when_a_connection_is_there() -> None:
    """A new one may take longer than the gap."""
    clock = ManualClock()
    gaps = StartGaps(clock)
    assert gaps.try_send((("192.0.2.1", 500),)) == 0
    clock.advance(400)
    gaps.record_sent((("192.0.2.1", 500),))
    clock.advance(100)
    assert gaps.try_send((("192.0.2.1", 500),)) == 400_000
