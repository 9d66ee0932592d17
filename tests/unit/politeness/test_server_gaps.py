"""Gaps between starts at one server, for one process."""

from __future__ import annotations

from bigcrawl.politeness.host_schedule import ServerGaps


def test_starts_at_a_server_are_a_gap_apart() -> None:
    """Who comes early gets a later time, each a later one; other servers are not concerned."""
    gaps = ServerGaps(500)
    assert [gaps.grant("1", 1_000) for _ in range(3)] == [1_000, 1_500, 2_000]
    assert gaps.grant("2", 1_000) == 1_000
    assert gaps.grant("1", 10_000) == 10_000


def test_servers_are_forgotten_when_their_gap_is_over() -> None:
    """A hundred thousand servers, one after the other, leave a handful; a backlog is kept."""
    gaps = ServerGaps(500)
    for _ in range(100):
        gaps.grant("crowded", 0)
    for number in range(20_000):
        gaps.grant(str(number), number)
    assert len(gaps) < 1_100
    assert gaps.grant("crowded", 20_000) == 50_000


def test_a_gap_is_over_when_the_next_fetch_may_start() -> None:
    """The server that may be asked again at this very moment is forgotten."""
    gaps = ServerGaps(500)
    gaps.grant("1", 0)
    gaps.grant("2", 499)
    assert len(gaps) == 2
    gaps.grant("2", 500)
    assert len(gaps) == 1


def test_a_grant_forgets_two_servers() -> None:
    """So what was kept shrinks while each grant brings a new one, and no grant pays for all of it."""
    gaps = ServerGaps(500)
    for number in range(100):
        gaps.grant(str(number), 0)
    for number in range(100, 110):
        gaps.grant(str(number), 500)
    assert len(gaps) == 100 + 10 - 2 * 10


def test_no_gap_is_no_wait() -> None:
    """With a gap of 0 everybody starts now, and nothing is kept."""
    gaps = ServerGaps(0)
    assert [gaps.grant("1", now_ms) for now_ms in (5, 5, 6)] == [5, 5, 6]
    assert len(gaps) <= 1
