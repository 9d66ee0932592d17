"""The permits of one node: when a fetch may start, what is asked for, and what bytes cost beyond their charge."""

from __future__ import annotations

import pytest

from bigcrawl.politeness.start_permits import BODY_BYTES_FIRST, KEPT_MS, UNLIMITED, Speed, StartPermits

TEN = Speed(10)


def permits(speed: Speed = TEN) -> StartPermits:
    made = StartPermits()
    made.set_speed(speed)
    return made


def test_without_a_limit_everything_may_start() -> None:
    """No permit is needed where there is no speed."""
    assert permits(UNLIMITED).may_start(0)
    assert not permits().may_start(0)


def test_a_fetch_starts_when_the_time_of_a_permit_has_come() -> None:
    """Each permit is good for one start, from its time on."""
    node = permits()
    node.grant(100, 50, 2)
    assert not node.may_start(99)
    assert node.wait_ms(60) == 40
    assert node.may_start(100)
    node.use_permit()
    assert not node.may_start(149)
    assert node.may_start(170)
    node.use_permit()
    assert node.wait_ms(170) is None


def test_asks_for_what_is_ready_and_not_for_more_than_half_a_second() -> None:
    """A node without work asks for nothing, one with much for what it may start by the horizon."""
    node = permits(Speed(10))
    assert node.wanted_permits(0, 0) == 0
    assert node.wanted_permits(0, 3) == 3
    assert node.wanted_permits(0, 1000) == 6
    node.grant(0, 100, 4)
    assert node.wanted_permits(0, 1000) == 2
    assert permits(Speed(0)).wanted_permits(0, 1000) == 0


def test_what_was_not_used_goes_back() -> None:
    """A permit that is half a second old is somebody else's."""
    node = permits()
    node.grant(0, 100, 3)
    node.wanted_permits(KEPT_MS + 150, 0)
    assert node.take_given_back() == 2
    assert node.take_given_back() == 0
    assert len(node) == 1


def test_another_speed_voids_permits() -> None:
    """What was granted by the old speed is not used under the new one; the same speed changes nothing."""
    node = permits()
    node.grant(0, 1, 5)
    assert not node.set_speed(Speed(10))
    assert node.may_start(0)
    assert node.set_speed(Speed(0))
    assert not node.may_start(10_000)


def test_bytes_beyond_the_charge_are_a_debt() -> None:
    """A fetch is charged with the mean; what it brought more, or less, is told once."""
    node = permits(Speed(body_bytes=1e6))
    assert node.bytes_ms == pytest.approx(20)
    node.record_ended(BODY_BYTES_FIRST + 5_000)
    node.record_ended(0)
    assert node.take_debt_bytes() < 0
    assert node.take_debt_bytes() == 0
    for _ in range(200):
        node.record_ended(50_000)
    assert node.body_bytes == pytest.approx(50_000, rel=0.01)
    assert node.bytes_ms == pytest.approx(50, rel=0.01)


def test_who_could_not_wait_pays_with_the_next_permit() -> None:
    """A hop of a robots.txt's redirect starts at once; a permit that is here, or comes next, pays for it."""
    node = permits()
    node.grant(0, 100, 2)
    node.record_debt()
    assert len(node) == 1
    node.use_permit()
    node.record_debt()
    assert node.wanted_permits(0, 1) == 2
    node.grant(500, 100, 2)
    assert len(node) == 1
    assert node.wait_ms(0) == 600


def test_both_limits_the_slower_sets_the_step() -> None:
    """Pages and bytes: the longer time between two starts holds."""
    assert permits(Speed(100, 1e6)).step_ms == pytest.approx(20)
    assert permits(Speed(10, 1e6)).step_ms == pytest.approx(100)
