"""Hosts by their time: the one due for longest first, busy ones set aside, none looked at before its time."""

from __future__ import annotations

import random

import pytest

from bigcrawl.politeness.due_order import DueOrder


def anyone(_: str) -> bool:
    return True


def test_hosts_come_in_the_order_of_their_times() -> None:
    """Who was due first comes first; among equals who was added first."""
    due = {"late": 9, "b": 5, "a": 5, "first": 1}
    order = DueOrder(due.get)
    for host in due:
        order.add(host)
        order.add(host)
    assert order.next_ms == 0
    assert order.first_due(0, anyone) is None
    assert order.next_ms == 1
    found = []
    while (chosen := order.first_due(100, anyone)) is not None:
        found.append(chosen)
        order.remove(chosen)
    assert found == ["first", "b", "a", "late"]
    assert len(order) == 0


def test_hosts_due_at_once_come_as_they_were_added() -> None:
    """None has been looked at before, and all are due."""
    order = DueOrder(lambda _: 0)
    for host in "ba":
        order.add(host)
    assert order.first_due(0, anyone) == "b"


def test_busy_host_is_set_aside_until_its_fetch_has_ended() -> None:
    """It has no time meanwhile; once it has, it stands under that one."""
    due: dict[str, int | None] = {"a": None}
    order = DueOrder(due.get)
    order.add("a")
    assert order.first_due(10, anyone) is None
    assert not order._ordered
    due["a"] = 30
    assert order.first_due(20, anyone) is None
    assert order.next_ms == 30
    assert order.first_due(30, anyone) == "a"


def test_host_with_a_request_under_way_is_not_chosen() -> None:
    """Handed out and not fetched yet, its time has come and it is taken all the same."""
    order = DueOrder(lambda _: 0)
    order.add("a")
    assert order.first_due(10, lambda _: False) is None
    assert order.first_due(10, anyone) == "a"


def test_host_with_a_request_under_way_stays_aside() -> None:
    """It is looked at again when the request ends, and not when its time comes."""
    order = DueOrder(lambda _: 30)
    order.add("a")
    assert order.first_due(30, lambda _: False) is None
    assert order.first_due(20, lambda _: False) is None
    assert order.next_ms is None


def test_looking_costs_no_look_at_hosts_that_rest() -> None:
    """Of 50,000 hosts of which one is due, one is asked about."""
    asked: list[str] = []

    def due_ms(host: str) -> int:
        asked.append(host)
        return 0 if host == "7" else 1_000

    order = DueOrder(due_ms)
    for number in range(50_000):
        order.add(str(number))
    assert order.first_due(10, anyone) == "7"
    asked.clear()
    for _ in range(100):
        assert order.first_due(10, anyone) == "7"
    assert asked == ["7"] * 100


@pytest.mark.parametrize("seed", range(10))
def test_no_host_is_lost_or_early_whatever_happens(seed: int) -> None:
    """Random additions, fetches and rests against a plain dict of times."""
    dice = random.Random(seed)
    due: dict[str, int | None] = {}
    order = DueOrder(due.__getitem__)
    waiting: set[str] = set()
    now_ms = 0
    for _ in range(3_000):
        now_ms += dice.randrange(3)
        host = str(dice.randrange(20))
        if host not in due or dice.random() < 0.3:
            due.setdefault(host, 0)
            order.add(host)
            waiting.add(host)
        elif due[host] is None and dice.random() < 0.7:
            due[host] = now_ms + dice.randrange(50)
        chosen = order.first_due(now_ms, anyone)
        ready = {name for name in waiting if (at := due[name]) is not None and at <= now_ms}
        assert (chosen is None) == (not ready)
        if chosen is not None:
            assert chosen in ready
            due[chosen] = None
            if dice.random() < 0.5:
                order.remove(chosen)
                waiting.discard(chosen)
        order._check()
        assert len(order) == len(waiting)
