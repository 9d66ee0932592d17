"""A start that was missed is asked for again, by few URLs at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.handout.missed_starts import ASKING_MAX
from bigcrawl.scheduler.records.at_gates import GrantedStarts, Start
from tests.unit.scheduler.handout.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path


def test_start_that_was_missed_is_asked_for_again(tmp_path: Path) -> None:
    """It would crowd another node's; the URL then goes before those that have missed none."""
    desk = Desk(tmp_path, server_delay=0.5)
    asked = desk.asked_again
    punctual, late = desk.taken(1, "192.0.2.1"), desk.taken(2, "192.0.2.2")
    desk.clock.advance(10_000)
    punctual.granted, late.granted = (
        GrantedStarts(of_server=Start(9_900, 10_000, 1)),
        GrantedStarts(of_server=Start(9_899, 9_999, 1)),
    )
    desk.handout.admit(punctual)
    desk.handout.admit(late)
    assert [desk.handout.buffer.pop(), desk.handout.buffer.pop()] == [punctual, None]
    assert asked == [late]
    assert late.due_ms == desk.clock.monotonic_ms(), "what is asked for lies ahead"
    desk.clock.advance(2_000)
    other = desk.taken(3, "192.0.2.3")
    desk.handout.admit(other)
    late.granted = GrantedStarts(of_server=Start(12_000, 12_100, 2, misses=1))
    desk.handout.admit(late)
    assert [desk.handout.buffer.pop(), desk.handout.buffer.pop()] == [late, other]
    assert asked == [late]


def test_no_more_missed_starts_are_asked_for_than_can_be_used(tmp_path: Path) -> None:
    """The others wait until one of those has its start, or is sent away."""
    desk = Desk(tmp_path, server_delay=0.5)
    asked = desk.asked_again
    woken: list[int] = []
    desk.handout.wake_engine = lambda: woken.append(len(asked))
    desk.clock.advance(10_000)
    urls = [desk.taken(seq, f"192.0.2.{seq}") for seq in range(1, ASKING_MAX + 3)]
    for held in urls:
        held.granted = GrantedStarts(of_server=Start(9_000, 9_100, 1))
        desk.handout.admit(held)
    assert desk.handout.buffer.pop() is None
    assert asked == urls[:ASKING_MAX]
    woken.clear()
    first, second = asked[:2]
    first.granted = GrantedStarts(of_server=Start(10_000, 10_100, 2, misses=1))
    desk.handout.admit(first)
    punctual = desk.taken(100, "192.0.2.200")
    desk.handout.admit(punctual)
    assert [desk.handout.buffer.pop(), desk.handout.buffer.pop(), desk.handout.buffer.pop()] == [first, punctual, None]
    assert len(asked) == ASKING_MAX + 1
    woken.clear()
    desk.handout.give_back(second, 5_000)
    assert woken == [ASKING_MAX + 1]
    assert desk.handout.buffer.pop() is None
    assert asked == urls


def test_late_start_of_a_server_without_a_gap_is_no_matter(tmp_path: Path) -> None:
    """Nothing has to be asked for again."""
    desk = Desk(tmp_path, server_delay=0)
    held = desk.taken(1, "192.0.2.1")
    desk.clock.advance(60_000)
    desk.handout.admit(held)
    assert desk.handout.buffer.pop() is held
