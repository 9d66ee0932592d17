"""How many URLs of a partition are hot, how many more may be, and when hosts that are away are looked at."""

from __future__ import annotations

import pytest

from bigcrawl.redisdb.scripts import ReconcileReply
from bigcrawl.scheduler.owner.hot.hot_set import HOT_URLS_MIN, LOOK_MS, AwayHosts, HotSet
from bigcrawl.scheduler.partition.admit_batch import AdmitBatch
from bigcrawl.scheduler.partition.partition import ADMIT_URLS_MAX
from tests.unit.scheduler.world import queued


def batch(number: int, *hosts: str) -> AdmitBatch:
    return AdmitBatch(number, 0, queued(*(f"http://{host}/{i}" for i, host in enumerate(hosts))))


def test_urls_are_counted_as_they_come_and_go() -> None:
    """Admitted, ended and parked ones; what was never counted changes nothing."""
    hot = HotSet(100, AwayHosts(), {"a": 2})
    hot.record_offered(batch(1, "a", "b", "b"), admitted=0)
    assert (hot.urls, hot.by_host) == (5, {"a": 3, "b": 2})
    hot.record_ended("b")
    hot.record_ended("b")
    hot.record_ended("b")
    hot.record_ended("nobody")
    hot.record_parked("a", 2)
    assert (hot.urls, hot.by_host) == (1, {"a": 1})
    hot.record_parked("a", 1)
    assert (hot.urls, hot.by_host) == (0, {})


@pytest.mark.parametrize(
    ("urls_max", "urls", "divisor", "room", "extra_room"),
    [
        (100, 0, 1, 100, 100),
        (100, 30, 4, 70, 0),
        (100, 20, 4, 80, 5),
        (100, 130, 1, 0, 0),
        (1, 0, 1, HOT_URLS_MIN, HOT_URLS_MIN),
        (9_000, 0, 2, ADMIT_URLS_MAX, ADMIT_URLS_MAX),
    ],
)
def test_room_is_what_is_left_of_the_hot_set(
    urls_max: int, urls: int, divisor: int, room: int, extra_room: int
) -> None:
    """No more than a batch; extra URLs have their part of it."""
    hot = HotSet(urls_max, AwayHosts(), {"a": urls})
    hot.set_extra_limit(divisor)
    assert (hot.room, hot.extra_room) == (room, extra_room)


def test_next_tries_of_hosts_that_are_away_take_no_room() -> None:
    """One URL of each such host that has any."""
    away = AwayHosts()
    hot = HotSet(100, away, {"a": 3, "b": 1, "c": 1})
    away.replace_hosts({"a": 1, "b": 1, "absent": 1})
    hot.count_next_tries()
    assert (hot.urls, hot.urls_of_others, hot.room) == (5, 3, 97)
    assert hot.are_all(lambda host: host == "c")
    assert not hot.are_all(lambda host: False)


def test_after_a_comparison_only_what_redis_has_not_confirmed_is_added() -> None:
    """What is taken and what is queued, and the URLs of batches that are still to be admitted."""
    hot = HotSet(100, AwayHosts(), {"gone": 9})
    for number, host in enumerate(("old", "in", "under-way"), 1):
        hot.record_offered(batch(number, host), admitted=0)
    reply = ReconcileReply(0, 0, 0, admitted=2, ended=[], queued={"in": 1, "a": 4})
    hot.restart_count(reply, ["a", "b"])
    assert (hot.urls, hot.by_host) == (8, {"a": 5, "b": 1, "in": 1, "under-way": 1})


def test_batches_that_are_confirmed_are_not_kept() -> None:
    """Of those offered, the ones up to the last that Redis has are dropped with the next."""
    hot = HotSet(100, AwayHosts())
    for number in range(1, 9):
        hot.record_offered(batch(number, "a"), admitted=number - 1)
    assert [number for number, _ in hot._offered] == [8]


def test_hosts_that_are_away_are_read_when_their_count_changes_and_now_and_then() -> None:
    """At first, after a change, after a minute while there are any, and when somebody asks for it."""
    away = AwayHosts()
    assert away.should_poll(0)
    away.record_poll(away.change_count, 0)
    assert not away.should_poll(10 * LOOK_MS), "nobody is away"
    away.record_changes(3)
    assert away.should_poll(0)
    away.replace_hosts({"a": 1, "given-up": 0})
    away.record_poll(3, 1_000)
    assert not away.should_poll(1_000 + LOOK_MS - 1)
    assert away.should_poll(1_000 + LOOK_MS)
    away.poll_again()
    assert away.should_poll(1_000)


def test_a_change_during_a_look_is_not_lost() -> None:
    """What was known when the look began is done; what came since wants another one."""
    away = AwayHosts()
    away.record_changes(1)
    known = away.change_count
    away.record_changes(2)
    away.record_poll(known, 0)
    assert away.should_poll(0)


def test_hosts_that_may_have_no_url_are_given_up() -> None:
    """The crawl waits for the others."""
    away, found = AwayHosts(), []
    for hot_max in ({}, {"a": 1, "b": 0}, {"b": 0}):
        away.replace_hosts(hot_max)
        found.append((set(away.given_up), away.are_awaited))
    assert found == [(set(), False), ({"b"}, True), ({"b"}, False)]
