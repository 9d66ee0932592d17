"""Failures of hosts, counted by `exchange_urls`: back-off for all nodes, recovery, and hosts that are retired."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.config import read_config
from bigcrawl.exceptions import OwnershipLostError
from bigcrawl.politeness.backoff_policy import BackoffPolicy, backoff_of_failure
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.scripts import (
    RETIRED_MS,
    EndedUrl,
    GrantedClaim,
    HostEffect,
    Identity,
    effect_of_answer,
    effect_of_failure,
    effect_of_move,
)
from tests.support.redis_servers.script_world import DELAY_MS, ScriptWorld

if TYPE_CHECKING:
    from tests.support.redis_servers.script_world import ScriptRunner

HOST = "a.example"
FIRST_MS, LONGEST_MS = 10_000, 3_600_000
DAY_MS = 86_400_000
SNOOZED_MAX = 2048  # as in exchange_urls.lua


def failure(
    why: str = "error:timeout", *, longer: int = 0, failures_max: int = 0, order: int | None = None
) -> HostEffect:
    return effect_of_failure(why, (FIRST_MS, LONGEST_MS, longer, failures_max), order)


def fail(world: ScriptWorld, effect: HostEffect, delay_ms: int = DELAY_MS) -> int:
    """Let time pass until the host is due, take its first URL, and let it fail; the rest that follows, in ms."""
    world.now_ms = max(world.now_ms, world.next_ms(HOST))
    [seq] = world.take_seqs()
    assert world.end(EndedUrl(seq, delay_ms, b"%d:again" % seq, "retried:x", 0, effect)) == 1
    return world.next_ms(HOST) - world.now_ms


def record(world: ScriptWorld, host: str = HOST) -> dict[str, str]:
    return {k.decode(): v.decode() for k, v in world.client.hgetall(world.keys.host + host).items()}


def snoozed(world: ScriptWorld) -> dict[str, int]:
    return {
        host.decode(): int(score) for host, score in world.client.zrange(world.keys.snoozed, 0, -1, withscores=True)
    }


def test_back_off_is_four_times_as_long_with_each_failure_in_a_row(world: ScriptWorld) -> None:
    """10, 40, 160 ... seconds, whichever URL it was; never longer than the longest."""
    world.admit(HOST, HOST)
    waits = [fail(world, failure(order=100 + i)) for i in range(11)]
    assert waits[:4] == [10_000, 40_000, 160_000, 640_000]
    assert waits[4:6] == [2_560_000, 3_600_000]
    assert set(waits[6:]) == {3_600_000}
    assert record(world)["failures"] == "11"
    assert record(world)["why"] == "error:timeout"
    world.check()


def test_jitter_lengthens_and_what_is_asked_is_the_least(world: ScriptWorld) -> None:
    """Thousandths are added to the back-off; a longer delay of the node's own wins."""
    world.admit(HOST)
    assert fail(world, failure(longer=500)) == 15_000
    assert fail(world, failure(longer=250)) == 50_000
    assert fail(world, failure(), delay_ms=200_000) == 200_000


def test_answer_ends_the_back_off(world: ScriptWorld) -> None:
    """The next failure after an answer is the first again; nothing of the old ones is left."""
    world.admit(HOST, HOST)
    fail(world, failure())
    fail(world, failure())
    world.advance(4 * FIRST_MS)
    [seq] = world.take_seqs()
    world.end(EndedUrl(seq, DELAY_MS, b"", "status:200", 10, effect_of_answer()))
    assert not {"failures", "why", "failed"} & record(world).keys()
    assert world.host_state(HOST) == f"ready {DELAY_MS}"
    assert fail(world, failure()) == FIRST_MS


def test_silence_on_the_host_changes_nothing(world: ScriptWorld) -> None:
    """A URL that was never fetched neither adds to the failures nor ends them."""
    world.admit(HOST)
    fail(world, failure())
    world.advance(FIRST_MS)
    [seq] = world.take_seqs()
    world.give_back(seq)
    assert record(world)["failures"] == "1"


def test_failures_are_kept_for_the_next_owner(world: ScriptWorld) -> None:
    """A host's record outlives its node and its next time, by four times the back-off, without any URL of it."""
    world.admit(HOST)
    [seq] = world.take_seqs()
    world.end(EndedUrl(seq, 0, b"", "error:refused", 0, failure("error:refused")))
    assert 5 * FIRST_MS + 110_000 < world.client.pttl(world.keys.host + HOST) <= 5 * FIRST_MS + 120_000
    assert isinstance(world.claim("b", "token-a"), GrantedClaim)
    world.admit_as(2, world.urls(HOST))
    assert world.host_state(HOST) == f"ready {FIRST_MS}"
    assert fail(world, failure()) == 4 * FIRST_MS


def test_failed_url_goes_where_it_is_told(world: ScriptWorld) -> None:
    """With an order the next try waits behind the others, without one at its old place."""
    world.admit(HOST, HOST)
    fail(world, failure(order=1 << 33))
    world.advance(FIRST_MS)
    assert world.take_seqs() == [2]
    world.end(EndedUrl(2, 0, b"2:again", "", 0, failure()))
    world.advance(4 * FIRST_MS)
    assert world.take_seqs() == [2]
    world.check()


def test_fetches_that_fail_together_count_once(runner: ScriptRunner, crawl_name: str) -> None:
    """With several connections a host that goes down fails them all; the back-off is that of one failure."""
    world = ScriptWorld(runner, crawl_name, connections=3)
    world.claim()
    world.admit(HOST, HOST, HOST)
    seqs = []
    for _ in range(3):
        seqs += world.take_seqs()
        world.advance(DELAY_MS)
    world.end(*(EndedUrl(seq, 0, b"=", "", 0, failure()) for seq in seqs))
    assert record(world)["failures"] == "1"
    assert world.next_ms(HOST) == world.now_ms + FIRST_MS
    world.check()


def test_repeat_counts_no_failure_twice(world: ScriptWorld) -> None:
    """The reply may be lost: the same end once more changes nothing."""
    world.admit(HOST)
    world.take()
    end = EndedUrl(1, 0, b"=", "", 0, failure())
    world.end(end)
    before = record(world)
    world.advance(500)
    world.end(end)
    assert record(world) == before


def test_long_back_off_is_told_to_the_owner(world: ScriptWorld) -> None:
    """From a minute on a host is snoozed, and the counter that its owner watches has moved; an answer ends that too."""
    world.admit(HOST)
    for _ in range(2):
        fail(world, failure())
    assert (snoozed(world), world.count("snoozes")) == ({}, 0)
    fail(world, failure())
    assert snoozed(world) == {HOST: world.now_ms + 160_000}
    assert world.count("snoozes") == 1
    world.advance(160_000)
    [seq] = world.take_seqs()
    world.end(EndedUrl(seq, 0, b"=", "", 0, effect_of_answer()))
    assert (snoozed(world), world.count("snoozes")) == ({}, 2)


def test_host_that_fails_and_is_put_off_for_long_is_snoozed(world: ScriptWorld) -> None:
    """Its URLs need no room in Redis meanwhile, and its failures are not forgotten before the next try."""
    world.admit(HOST)
    fail(world, failure())
    world.now_ms = world.next_ms(HOST)
    assert world.give_back(*world.take_seqs(), delay_ms=59_999) == 1
    assert snoozed(world) == {}
    world.now_ms = world.next_ms(HOST)
    world.give_back(*world.take_seqs(), delay_ms=150_000)
    assert snoozed(world) == {HOST: world.now_ms + 150_000}
    assert world.count("snoozes") == 1
    assert world.client.pttl(world.keys.host + HOST) > 4 * 150_000
    assert record(world)["failures"] == "1"
    world.check()


def test_returned_url_goes_where_it_is_told_and_says_nothing_of_its_host(world: ScriptWorld) -> None:
    """It waits behind the others, and the host's failures stay as they are."""
    world.admit(HOST, HOST)
    fail(world, failure())
    world.now_ms = world.next_ms(HOST)
    [first] = world.take_seqs()
    behind = 1 << 40
    world.end(EndedUrl(first, 0, b"%d:moved" % first, "put_off", 0, effect_of_move(behind)))
    assert record(world)["failures"] == "1"
    [second] = world.take_seqs()
    assert second != first
    world.end(EndedUrl(second, 0, b"", "status:200"))
    assert world.take_seqs() == [first]
    taken = world.client.hget(world.keys.taken, str(first))
    assert taken is not None
    assert int(taken.split(b"\n")[2]) == behind
    world.check()


def test_host_that_answers_is_not_snoozed_when_it_rests(world: ScriptWorld) -> None:
    """A long delay is no failure."""
    world.admit(HOST)
    world.give_back(*world.take_seqs(), delay_ms=150_000)
    assert (snoozed(world), world.count("snoozes")) == ({}, 0)


def retire(world: ScriptWorld, failures_max: int = 3) -> None:
    for _ in range(failures_max):
        fail(world, failure(failures_max=failures_max))


def test_host_is_retired_after_so_many_failures(world: ScriptWorld) -> None:
    """It is never due, its URL is where it was, and its record stays; the scripts that come by leave it at that."""
    world.admit(HOST)
    retire(world)
    assert snoozed(world)[HOST] >= RETIRED_MS
    world.advance(400 * DAY_MS)
    assert world.take_seqs() == []
    assert isinstance(world.claim("b", "token-a"), GrantedClaim)
    world.reconcile()
    world.admit_as(2, world.urls(HOST))
    assert world.take_seqs(horizon_ms=500) == []
    assert world.client.pttl(world.keys.host + HOST) > 1000 * DAY_MS
    assert len(world.check().queued_seqs) == 2


def test_host_that_is_gone_is_asked_a_handful_of_times_in_a_day(world: ScriptWorld) -> None:
    """With the defaults, eight times, ever more rarely; then it is retired."""
    chosen = read_config({"BIGCRAWL_CRAWL": "test"}).politeness
    policy = BackoffPolicy(
        chosen.backoff_first_ms, chosen.backoff_longest_ms, chosen.retry_after_max_ms, chosen.host_failures_max
    )
    world.admit(HOST)
    waits = [fail(world, effect_of_failure("error:timeout", backoff_of_failure(policy, 0.0))) for _ in range(8)]
    assert waits[:-1] == sorted(waits[:-1])
    assert DAY_MS / 2 <= sum(waits[:-1]) <= DAY_MS
    assert snoozed(world)[HOST] >= RETIRED_MS


def test_answer_brings_a_retired_host_back(runner: ScriptRunner, crawl_name: str) -> None:
    """Of several connections the last may be answered after all."""
    world = ScriptWorld(runner, crawl_name, connections=2)
    world.claim()
    world.admit(HOST, HOST, HOST)
    first = world.take_seqs()
    world.advance(DELAY_MS)
    second = world.take_seqs()
    world.end(EndedUrl(first[0], 0, b"=", "", 0, failure(failures_max=1)))
    world.advance(60_000)
    assert world.take_seqs() == []
    world.end(EndedUrl(second[0], DELAY_MS, b"", "status:200", 1, effect_of_answer()))
    assert snoozed(world) == {}
    assert world.host_state(HOST) == f"ready {DELAY_MS}"
    world.check()


def test_snoozed_hosts_are_bounded(world: ScriptWorld) -> None:
    """Beyond the bound the one retired first is forgotten: due at once, with no failure to its name."""
    hosts = [f"h{number}.example" for number in range(SNOOZED_MAX + 2)]
    world.admit(*hosts)
    for _ in hosts:
        [url] = world.take(1).urls
        seq = int(url.member.partition(b":")[0])
        world.end(EndedUrl(seq, 0, b"=", "", 0, failure(failures_max=1)))
        world.advance(1)
    assert len(snoozed(world)) == SNOOZED_MAX
    assert "failures" not in record(world, hosts[0])
    assert {url.host for url in world.take().urls} == set(hosts[:2])
    world.check()


@pytest.mark.parametrize("urls_max", [0, 5])
def test_retired_partition_is_not_asked_again(world: ScriptWorld, urls_max: int) -> None:
    """The next due time that the owner hears lies beyond any day."""
    world.admit(HOST)
    retire(world, 1)
    assert world.exchange(urls_max, 0).next_due_ms >= RETIRED_MS
    assert world.runner.run(scripts.look_partition(world.keys, now_ms=world.now_ms)).next_due_ms >= RETIRED_MS


def test_snoozed_hosts_that_failed_so_often_are_retired(world: ScriptWorld) -> None:
    """Those alone: with fewer failures a host stays snoozed; all keep their URLs; repeated, nothing changes."""
    world.admit(HOST)
    for _ in range(4):
        fail(world, failure())
    world.admit("b.example")
    [seq] = world.take_seqs()
    world.end(EndedUrl(seq, 0, b"=", "", 0, effect_of_failure("status:503", (90_000, LONGEST_MS, 0, 0))))
    before = snoozed(world)
    assert before.keys() == {HOST, "b.example"}
    assert retire_snoozed(world, 5) == 0
    assert snoozed(world) == before
    counted = world.count("snoozes")
    assert retire_snoozed(world, 4) == 1
    assert retire_snoozed(world, 4) == 0
    assert world.count("snoozes") == counted + 1
    after = snoozed(world)
    assert after[HOST] >= RETIRED_MS
    assert after["b.example"] == before["b.example"]
    world.advance(400 * DAY_MS)
    assert [url.host for url in world.take().urls] == ["b.example"]
    assert world.client.pttl(world.keys.host + HOST) > 1000 * DAY_MS
    world.check()


def test_host_that_is_asked_while_it_is_retired_comes_back_with_its_answer(world: ScriptWorld) -> None:
    """Its next try is under way: the answer counts."""
    world.admit(HOST, HOST)
    for _ in range(4):
        fail(world, failure())
    world.now_ms = world.next_ms(HOST)
    [seq] = world.take_seqs()
    assert retire_snoozed(world, 4) == 1
    world.end(EndedUrl(seq, DELAY_MS, b"", "status:200", 1, effect_of_answer()))
    assert snoozed(world) == {}
    assert world.host_state(HOST) == f"ready {DELAY_MS}"
    world.check()


def test_another_owner_retires_nothing(world: ScriptWorld) -> None:
    """Who owns the partition no more must not touch its hosts."""
    world.admit(HOST)
    for _ in range(4):
        fail(world, failure())
    assert isinstance(world.claim("b", "token-a"), GrantedClaim)
    with pytest.raises(OwnershipLostError):
        retire_snoozed(world, 1, node="a")
    assert snoozed(world)[HOST] < RETIRED_MS


def retire_snoozed(world: ScriptWorld, failures_max: int, node: str = "a") -> int:
    return world.runner.run(scripts.retire_hosts(world.keys, Identity(node, 1, 1), failures_max, now_ms=world.now_ms))


def test_answer_may_give_the_next_try_another_place(world: ScriptWorld) -> None:
    """A page that is broken on a host that answers: it goes behind the others, and the host's failures are over."""
    world.admit(HOST, HOST)
    fail(world, failure(order=5))
    assert record(world)["failures"] == "1"
    fail(world, effect_of_answer(1 << 33))
    assert not {"failures", "why", "failed"} & record(world).keys()
    world.advance(DELAY_MS)
    [other] = world.take_seqs()
    world.end(EndedUrl(other, 0, b"", "status:200", 10, effect_of_answer()))
    [last] = world.take_seqs()
    assert last != other
    world.check()
