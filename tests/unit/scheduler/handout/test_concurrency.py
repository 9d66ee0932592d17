"""A node's fetches at a time: who has a place, who gives it up, and what is said of it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.politeness.fetch_limit import FIRST, HANGING_MS, HOSTS_MIN
from bigcrawl.scheduler.handout.concurrency import UNLIMITED, ConcurrencyLimit
from tests.support.logs import of_bigcrawl
from tests.unit.scheduler.handout.desk import Desk
from tests.unit.scheduler.records.test_held_urls import held_url
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.records.held import HeldUrl


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, fetches_min=4)


def started(desk: Desk, count: int) -> int:
    """How many of so many more URLs are handed out."""
    for seq in range(1000, 1000 + count):
        desk.handout.admit(desk.taken(seq + len(desk.handout.held)))
    return sum(1 for _ in iter(desk.handout.buffer.pop, None))


def under_way(clock: ManualClock, count: int) -> list[HeldUrl]:
    """So many URLs that are being fetched."""
    urls = [held_url(seq) for seq in range(count)]
    for held in urls:
        held.fetching_since_ms = clock.monotonic_ms()
    return urls


def look(desk: Desk) -> bool:
    return desk.handout.crowd.adjust(desk.handout.held)


def test_pages_at_a_time_are_bounded_until_one_is_answered(desk: Desk) -> None:
    """At the limit nothing is handed out; each answer, or end, makes room for one, and an answer's end for no other."""
    assert started(desk, 20) == FIRST
    held = next(each for each in desk.handout.held if each.fetching_since_ms >= 0)
    desk.handout.fetches.record_answered(held)
    assert [desk.handout.buffer.pop() is None for _ in range(2)] == [False, True]
    desk.handout.fetches.end(held)
    assert desk.handout.buffer.pop() is None
    desk.handout.give_up(next(each for each in desk.handout.held if each.fetching_since_ms >= 0), "undecodable")
    assert [desk.handout.buffer.pop() is None for _ in range(2)] == [False, True]


def test_fetches_that_hang_leave_their_places_to_others(desk: Desk) -> None:
    """Two seconds without an answer: others are fetched beside them, CONCURRENT_REQUESTS in all; told once."""
    assert started(desk, 30) == FIRST
    assert not look(desk)
    desk.clock.advance(HANGING_MS + 1)
    desk.handout.lease.ends_ms = desk.clock.monotonic_ms() + 1_000_000
    assert look(desk)
    assert not look(desk)
    assert started(desk, 0) == 16 - FIRST
    assert desk.handout.crowd.limit == FIRST


def test_without_adaptation_scrapys_limit_is_the_only_one(tmp_path: Path) -> None:
    """BIGCRAWL_FETCHES_MIN 0: nothing is bounded here, and nothing remembered."""
    desk = Desk(tmp_path, fetches_min=0)
    crowd = desk.handout.crowd
    assert crowd.fetches_max == UNLIMITED
    assert started(desk, 30) == 30
    crowd.record_answer("a.example", 5)
    assert not look(desk)
    assert not crowd._limit._took_ms
    assert str(crowd) == "16 of 16 fetches at a time"


def test_crowd_is_told_at_its_beginning_and_its_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One line each, whatever the limit does between; who wants to know hears of each limit."""
    clock = ManualClock()
    limits: list[int] = []
    crowd = ConcurrencyLimit(make_config(tmp_path, "crawl", fetches_min=2).pace, clock, limits.append)

    def crawl(seconds: int, free_ms: int, link_ms: int) -> None:
        """Answers take a time of their own and, each fetch at a time, of the link."""
        for _ in range(seconds * 4):
            clock.advance(250)
            took_ms = free_ms + link_ms * crowd.limit
            for number in range(HOSTS_MIN):
                crowd.record_answer(f"{number}.example", took_ms)
            crowd.adjust(under_way(clock, crowd.limit))

    with caplog.at_level(logging.INFO):
        crawl(30, 100, 0)
        assert crowd.limit == 16
        crawl(60, 100, 200)
        assert crowd.is_crowded
        assert crowd.limit_for_slow_hosts == crowd.limit < 8
        crawl(60, 100, 0)
    assert crowd.limit == crowd.limit_for_slow_hosts == 16
    assert limits[-1] == 16
    assert min(limits) < 8
    lines = [record.getMessage() for record in of_bigcrawl(caplog)]
    assert len(lines) == 2
    assert lines[0].startswith("answers take long over all hosts: ")
    assert lines[1] == "the crowd is over: 16 of 16 fetches at a time"
