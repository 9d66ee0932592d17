"""The limit on fetches at a time tells hosts that are slow from a link or CPU that is full.

A row is a simulated crawl. Its right value follows from LEDBAT (RFC 6817, 2.1: what a queue of ours delays is a crowd,
and a delay of the other side is none) and from 002 §2.3 (a crawl is as fast as its connections are many).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from bigcrawl.politeness.fetch_limit import ALIVE_MS, FIRST, LATE_MS, PATIENCE_MS, SIGNS_MIN, FetchLimit
from tests.support.worlds.crowd_world import CrowdWorld, quick

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

WIDE = 1e6


def hosts(ms: int, spread: float = 0.2) -> Callable[[Random], int]:
    """Hosts that take about so long."""
    return lambda dice: round(ms * dice.lognormvariate(0, spread))


class Row(NamedTuple):
    """A crawl: it begins with hosts and a link, and goes on with others."""

    most: int
    connecting: float  # share of new connections
    first_ms: int
    then_ms: int
    first_link: float  # pages a second
    then_link: float
    is_crowd: bool


SLOW = [
    # From the start: all fetches soon, whatever the hosts take.
    *(Row(256, 1.0, ms, ms, WIDE, WIDE, is_crowd=False) for ms in (1_000, 2_000, 3_000, 5_000, 8_000, 12_000, 20_000)),
    *(Row(64, 0.5, ms, ms, WIDE, WIDE, is_crowd=False) for ms in (2_000, 8_000, 15_000)),
    # They become slow.
    *(Row(256, share, 300, 8_000, WIDE, WIDE, is_crowd=False) for share in (0.0, 0.05, 0.2, 0.5, 1.0)),
    *(
        Row(256, 0.3, first, then, WIDE, WIDE, is_crowd=False)
        for first, then in ((50, 2_000), (100, 4_000), (1_000, 9_000))
    ),
    # A wide link carries what slow hosts send.
    *(Row(64, share, 300, 6_000, 150, 150, is_crowd=False) for share in (0.1, 0.5)),
]
CROWDED = [
    # The link becomes narrow: some connections are new, all or none.
    *(Row(64, share, 300, 300, 150, link, is_crowd=True) for share in (0.0, 0.1, 0.3, 1.0) for link in (20, 30)),
    *(Row(256, share, 300, 300, 700, 60, is_crowd=True) for share in (0.0, 0.2, 1.0)),
    *(Row(64, 0.3, 100, 100, 150, 20, is_crowd=True), Row(128, 0.3, 50, 50, 600, 50, is_crowd=True)),
]


@pytest.mark.parametrize("row", [*SLOW, *CROWDED], ids=str)
def test_slow_hosts_keep_all_fetches_and_a_crowd_is_thinned(row: Row) -> None:
    """Slow: nothing is cut. A crowd: at most half the fetches, and as many pages."""
    limit = FetchLimit(4, row.most)
    world, fixed = CrowdWorld(limit, row.first_link), CrowdWorld(row.most, row.first_link)
    for each in (world, fixed):
        each.connecting, each.host_ms = row.connecting, hosts(row.first_ms)
    rising_s = 20 + row.first_ms // 1_000
    world.run(rising_s)
    fixed.run(rising_s)
    assert limit.limit == row.most, "it has risen"
    lowest = row.most
    pages = [0, 0]
    for each in (world, fixed):
        each.link, each.host_ms = row.then_link, hosts(row.then_ms)
    for _ in range(20):
        pages[0] += world.run(2).pages
        pages[1] += fixed.run(2).pages
        lowest = min(lowest, limit.limit)
    assert pages[0] > 0.9 * pages[1]
    if row.is_crowd:
        assert lowest <= row.most / 2
        assert limit.is_crowded
    else:
        assert lowest == row.most


def test_thousand_fetches_of_slow_hosts_are_there_in_a_quarter_of_a_minute() -> None:
    """Hosts that take 8 s: doubling with each answer would take a minute."""
    limit = FetchLimit(4, 1_000)
    world = CrowdWorld(limit)
    world.connecting, world.host_ms = 1.0, hosts(8_000)
    world.run(16)
    assert limit.limit == 1_000


def test_limit_does_not_rise_in_silence_if_no_host_is_reached() -> None:
    """Connections that were opened once tell nothing for longer than `ALIVE_MS`."""
    limit = FetchLimit(4, 1 << 20)
    for number in range(SIGNS_MIN):
        limit.record_connected(str(number), 20, 0)
    for now_ms in range(0, 10 * ALIVE_MS, 200):
        limit.adjust(now_ms, limit.limit)
    assert FIRST < limit.limit <= FIRST << (ALIVE_MS // 1_000)


def test_limit_does_not_rise_in_silence_while_pages_come() -> None:
    """Large pages over a narrow link: answers have begun, and more fetches would make them slower."""
    limit = FetchLimit(4, 64)
    for now_ms in range(0, ALIVE_MS, 200):
        limit.record_connected(str(now_ms), 20, now_ms)
        limit.record_response_head()
        limit.adjust(now_ms, limit.limit)
    assert limit.limit == FIRST


@pytest.mark.parametrize(
    ("connect_ms", "look_ms", "is_cut"),
    [(20, 200, False), (900, 200, True), (3_000, 200, True), (20, LATE_MS + 100, True), (None, 200, True)],
)
def test_connections_that_open_late_or_a_late_loop_mean_a_crowd(
    connect_ms: int | None, look_ms: int, *, is_cut: bool
) -> None:
    """Answers take 3 s instead of 0.1 s; whether that is a crowd depends on all else."""
    limit = FetchLimit(4, 64)
    lowest = 64
    for now_ms in range(0, 90_000, look_ms):
        is_late = now_ms > 30_000
        for host in range(40):
            limit.record_answer(str(host), 3_000 if is_late else 100, now_ms)
            server = f"{host} {now_ms}"
            if connect_ms is not None and (not is_late or limit.ask_for_connection()):
                limit.record_connected(server, connect_ms if is_late else 20, now_ms)
        limit.adjust(now_ms, 60)
        if is_late:
            lowest = min(lowest, limit.limit)
    assert (lowest < 64) == is_cut


def test_new_connections_are_asked_for_only_while_hosts_seem_slow() -> None:
    """One request in eight opens one, and none while all is well."""
    limit = FetchLimit(4, 64)
    world = CrowdWorld(limit)
    world.host_ms = quick
    world.run(20)
    assert not any(limit.ask_for_connection() for _ in range(100))
    world.host_ms = hosts(8_000)
    world.run(20 + PATIENCE_MS // 1_000)
    assert sum(limit.ask_for_connection() for _ in range(80)) == 10
