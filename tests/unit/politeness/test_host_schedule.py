"""Hosts of one process: busy, resting, retired; by a clock that the test owns."""

from __future__ import annotations

import random

import pytest

from bigcrawl.politeness.backoff_policy import BackoffPolicy, DelayPolicy
from bigcrawl.politeness.host_schedule import HostSchedule
from tests.support.running.tables import each

POLICY = DelayPolicy(minimum_ms=1_000, crawl_delay_cap_ms=60_000)


def fetch(rests: HostSchedule, host: str, now_ms: int, *, took_ms: int = 0) -> int:
    """Fetch once; return when the host is due again."""
    rests.record_start(host, now_ms)
    rests.record_end(host, now_ms + took_ms, took_ms)
    rests._check()
    due_ms = rests.due_ms(host)
    assert due_ms is not None
    return due_ms


def test_host_is_busy_then_rests_from_the_end() -> None:
    """Unknown it is due at once; while it is fetched from nobody may; its delay counts from the end."""
    rests = HostSchedule(POLICY)
    assert rests.due_ms("a") == 0
    rests.record_start("a", 5_000)
    assert rests.due_ms("a") is None
    assert rests.due_ms("b") == 0
    rests.record_end("a", 9_000)
    assert rests.due_ms("a") == 10_000


def test_slow_download_lengthens_the_rest() -> None:
    """The operator's factor is applied to what the fetch took."""
    rests = HostSchedule(DelayPolicy(1_000, 60_000, download_factor=10.0))
    assert fetch(rests, "a", 0, took_ms=300) == 300 + 3_000
    assert fetch(rests, "a", 10_000, took_ms=1) == 10_001 + 1_000


def test_crawl_delay_holds_from_the_last_end_and_is_capped() -> None:
    """Told after the robots.txt was fetched, it counts from that fetch; a day is not obeyed."""
    rests = HostSchedule(POLICY)
    fetch(rests, "a", 0)
    rests.ask_delay("a", 7_000)
    assert rests.due_ms("a") == 7_000
    rests.ask_delay("a", 86_400_000)
    assert rests.due_ms("a") == 60_000
    rests.ask_delay("a", None)
    assert rests.due_ms("a") == 60_000  # a rest is never shortened
    assert fetch(rests, "a", 60_000) == 61_000


def test_delay_of_an_unknown_host_is_kept_for_its_first_fetch() -> None:
    """Rules may be known before the host was asked by this middleware; nothing asked leaves no trace."""
    rests = HostSchedule(POLICY)
    rests.ask_delay("a", None)
    assert len(rests) == 0
    rests.ask_delay("a", 5_000)
    assert fetch(rests, "a", 0) == 5_000


def test_connections_share_a_host_with_the_delay_between_starts() -> None:
    """With two connections the next start is a delay behind the last one, and a third must wait for an end."""
    rests = HostSchedule(POLICY, connections=2)
    rests.record_start("a", 0)
    assert rests.due_ms("a") == 1_000
    rests.record_start("a", 1_000)
    assert rests.due_ms("a") is None
    rests.record_end("a", 1_500)
    assert rests.due_ms("a") == 2_000


def test_back_off_doubles_and_an_answer_ends_it() -> None:
    """Ten seconds, twenty, forty; after an answer the next failure is a first one; the rest itself stays."""
    rests = HostSchedule(POLICY)
    waits = [rests.record_failure("a", 0, jitter=0.0) for _ in range(3)]
    assert waits == [10_000, 20_000, 40_000]
    rests.record_answer("a")
    assert rests.due_ms("a") == 40_000
    assert rests.record_failure("a", 40_000, jitter=1.0) == 15_000


def test_server_that_says_how_long_is_believed() -> None:
    """Back-off begins with Retry-After, also where it is shorter, and doubles from there; no rest is shortened."""
    rests = HostSchedule(POLICY)
    assert rests.record_failure("a", 0, 0.0, retry_after_ms=3_000) == 3_000
    assert rests.record_failure("a", 3_000, 0.0, retry_after_ms=3_000) == 6_000
    assert rests.record_failure("a", 4_000, 0.0, retry_after_ms=500) == 5_000
    assert rests.record_failure("b", 0, 0.0, retry_after_ms=9_000_000) == 9_000_000


def test_failures_in_a_row_retire_a_host() -> None:
    """So many as are set, no fewer; an answer that comes after all brings it back; 0 retires none."""
    rests = HostSchedule(POLICY, backoff=BackoffPolicy(failures_max=3))
    for expected in (False, False, True):
        rests.record_failure("a", 0, 0.0)
        assert rests.is_retired("a") is expected
    assert not rests.is_retired("b")
    rests.record_answer("a")
    assert not rests.is_retired("a")
    forgiving = HostSchedule(POLICY, backoff=BackoffPolicy(failures_max=0))
    for _ in range(100):
        forgiving.record_failure("a", 0, 0.0)
    assert not forgiving.is_retired("a")


def test_hosts_are_forgotten_but_never_one_that_rests_or_is_busy() -> None:
    """A million hosts leave as many as are set, and a forgotten one was due anyway."""
    rests = HostSchedule(POLICY, hosts_kept=100)
    rests.rest_until("asleep", 10**9)
    rests.record_start("busy", 0)
    for number in range(5_000):
        fetch(rests, f"h{number}", number * 100)
    assert len(rests) <= 103
    assert rests.due_ms("asleep") == 10**9
    assert rests.due_ms("busy") is None


@pytest.mark.parametrize("connections", [1, 3])
@each("seed", range(20))
def test_no_start_is_early_whatever_happens(seed: int, connections: int) -> None:
    """Random fetches, failures and forgetting: fetches of a host keep its delay and the number of its connections."""
    dice = random.Random(seed)
    rests = HostSchedule(POLICY, connections=connections, hosts_kept=4)
    now_ms, running, last_ms = 0, dict.fromkeys("abcdefgh", 0), dict.fromkeys("abcdefgh", -1_000)
    for _ in range(2_000):
        now_ms += dice.randrange(400)
        host = dice.choice("abcdefgh")
        due_ms = rests.due_ms(host)
        if due_ms is not None and due_ms <= now_ms:
            assert now_ms - last_ms[host] >= 1_000
            assert running[host] < connections
            rests.record_start(host, now_ms)
            running[host] += 1
            last_ms[host] = now_ms
        elif running[host] and dice.random() < 0.7:
            rests.record_end(host, now_ms)
            running[host] -= 1
            if connections == 1:
                last_ms[host] = now_ms
        elif dice.random() < 0.1:
            rests.record_failure(host, now_ms, 0.0, retry_after_ms=dice.randrange(1, 5_000))
        rests._check()
