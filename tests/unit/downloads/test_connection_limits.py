"""How long a connection is used: the count by host and port, and its clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.downloads import connections
from bigcrawl.downloads.connections import ConnectionLimits

if TYPE_CHECKING:
    import pytest


class Counted:
    """A `ConnectionLimits` whose clock the test turns, and what limits it met."""

    def __init__(self, requests_max: int = 3, age_max_s: float = 60) -> None:
        self.met: list[str] = []
        self.now_s = 0.0
        self.limits = ConnectionLimits(requests_max, age_max_s, self.met.append, lambda: self.now_s)

    def request(self, netloc: str, *, is_new: bool = False) -> bool:
        """Make a request; whether it was the last of its connection."""
        is_last = self.limits.is_last(netloc)
        self.limits.record_use(netloc, is_last=is_last, is_new=is_new)
        return is_last


def test_every_third_request_is_the_last_of_its_connection() -> None:
    """Each server has its own count."""
    counted = Counted()
    lasts = [counted.request("a.example", is_new=number % 3 == 0) for number in range(6)]
    assert lasts == [False, False, True] * 2
    assert not counted.request("b.example", is_new=True)
    assert counted.met == ["connection-requests"] * 2


def test_connection_that_the_server_closed_begins_a_new_count() -> None:
    """libcurl says when it opened one."""
    counted = Counted()
    assert [counted.request("a.example", is_new=True) for _ in range(5)] == [False] * 5
    assert not counted.met


def test_one_request_a_connection() -> None:
    """The least there is."""
    counted = Counted(requests_max=1)
    assert [counted.request("a.example", is_new=True) for _ in range(2)] == [True, True]


def test_old_connection_that_gave_way_is_counted() -> None:
    """The new one is young, and a server that was quiet for a while is none that was too old."""
    counted = Counted(requests_max=100)
    counted.request("a.example", is_new=True)
    counted.now_s = 61
    counted.request("a.example", is_new=True)
    counted.now_s = 100
    counted.request("a.example", is_new=True)
    assert counted.met == ["connection-age"]


def test_servers_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one asked longest ago first."""
    monkeypatch.setattr(connections, "SERVERS_MAX", 2)
    counted = Counted(requests_max=2)
    for netloc in ("a.example", "b.example", "c.example"):
        counted.request(netloc, is_new=True)
    assert [counted.limits.is_last(name) for name in ("a.example", "b.example", "c.example")] == [False, True, True]
