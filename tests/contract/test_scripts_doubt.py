"""What is compared after a doubt: in portions, in little time, and so that nothing sent before counts after."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.exceptions import OwnershipLostError, StaleCallError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.scripts import EndedUrl, GrantedClaim, HostEffect, effect_of_answer, effect_of_failure
from tests.support.redis_servers.script_world import ABORT_MS, DELAY_MS, LEASE_MS, T0, ScriptRunner, ScriptWorld, seq_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.redisdb.scripts import ReconcileReply
    from tests.support.redis_servers.script_world import Url

HOST = "a.example"
MANY = 20_000
READS = ("cmdstat_zrange", "cmdstat_zscan")  # commands that read through a sorted set


def portion(
    world: ScriptWorld, number: int, held: Sequence[tuple[int, Url]], *earlier: int, is_last: bool = True
) -> ReconcileReply:
    """One portion in the generation that the world has counted."""
    who = replace(world.who, generation=world.generation)
    call = scripts.reconcile_partition(
        world.keys,
        who,
        number,
        0,
        [(seq, *url) for seq, url in held],
        [(seq,) for seq in earlier],
        (),
        (),
        (),
        {},
        is_last=is_last,
        now_ms=world.now_ms,
    )
    reply: ReconcileReply = world.runner.run(call)
    world.who = who
    return reply


def taken_rows(world: ScriptWorld, *hosts: str) -> list[tuple[int, Url]]:
    """Admit a URL of each host and take them all."""
    world.admit(*hosts)
    urls = world.take().urls
    return [(seq_of(url.member), (url.host, seq_of(url.member), url.member)) for url in urls]


@pytest.mark.parametrize("script", ["exchange", "drop", "park", "set aside", "trim", "retire", "release"])
def test_call_of_an_earlier_generation_is_refused_and_changes_nothing(world: ScriptWorld, script: str) -> None:
    """It was sent before both sides were compared; the owner is not taken for another one."""
    [(seq, (_, _, member))] = taken_rows(world, HOST)
    world.admit(HOST)
    queued = b"2:\x00url\n"
    calls: dict[str, Any] = {
        "exchange": scripts.exchange_urls(world.keys, world.who, 1, 9, 0, 0, [EndedUrl(seq, 0)], world.now_ms),
        "drop": scripts.drop_urls(world.keys, world.who, HOST, "dropped:forbidden", [(queued, b"x" * 12)]),
        "park": scripts.park_urls(world.keys, world.who, HOST, b"batch", [queued]),
        "set aside": scripts.set_aside_urls(world.keys, world.who, 1, [(seq, b"batch")], world.now_ms),
        "trim": scripts.trim_partition(world.keys, world.who, "9-9", 9, {"waiting": 1}),
        "retire": scripts.retire_hosts(world.keys, world.who, 1, world.now_ms),
    }
    release = scripts.release_partition(world.keys, world.who)
    world.reconcile([(seq, (HOST, seq, member))])
    before = world.snapshot(), world.client.hgetall(world.keys.state)
    if script == "release":
        assert world.runner.run(release) == -3
    else:
        with pytest.raises(StaleCallError):
            world.runner.run(calls[script])
    assert (world.snapshot(), world.client.hgetall(world.keys.state)) == before
    assert world.acknowledge(seq) == 1


def test_comparison_raises_the_generation_or_is_refused(world: ScriptWorld) -> None:
    """One that comes late, or twice, changes nothing; nor does that of another owner."""
    rows = taken_rows(world, HOST, "b.example")
    world.reconcile(rows)
    with pytest.raises(StaleCallError):
        portion(world, 1, [])
    world.generation -= 1
    with pytest.raises(StaleCallError):
        portion(world, 1, [])
    assert len(world.check().taken) == 2
    world.who = replace(world.who, epoch=9)
    with pytest.raises(OwnershipLostError):
        world.reconcile()


def test_claim_by_the_owner_is_taken_once(world: ScriptWorld) -> None:
    """A claim that arrives after the node has claimed again, or compared, does not take its URLs away."""
    [row] = taken_rows(world, HOST)
    world.reconcile([row])
    world.generation -= 1
    assert not isinstance(world.claim("a"), GrantedClaim)
    assert list(world.check().taken) == [1]
    world.generation += 1
    assert isinstance(world.claim("a"), GrantedClaim)


def test_portions_come_to_the_same_as_one_call(world: ScriptWorld) -> None:
    """What is held is taken, the rest goes back with the last portion; between them every URL has one place."""
    rows = taken_rows(world, *(f"h{i}.example" for i in range(6)))
    world.acknowledge(1)
    world.give_back(3, delay_ms=0)
    world.generation += 1
    first = portion(world, 1, rows[:2], is_last=False)
    world.check()
    assert (first.given_back, first.taken_again, first.queued) == (0, 1, {})
    last = portion(world, 2, rows[2:4], 1, 2)
    assert (last.given_back, last.taken_again, last.admitted) == (2, 1, 1)
    assert last.queued == {"h4.example": 1, "h5.example": 1}
    assert set(world.check().taken) == {1, 2, 3, 4}


def test_second_portion_needs_the_first(world: ScriptWorld) -> None:
    """A portion whose first one was lost, or given up for another comparison, is refused."""
    rows = taken_rows(world, HOST)
    world.generation += 1
    with pytest.raises(StaleCallError):
        portion(world, 2, rows)
    world.reconcile(rows)
    world.generation -= 1
    with pytest.raises(StaleCallError):
        portion(world, 2, [])


@pytest.mark.parametrize("member", [b"", b"=", b"1:next"], ids=["acknowledged", "returned", "next try"])
def test_end_that_was_carried_out_unheard_is_told_of(world: ScriptWorld, member: bytes) -> None:
    """It is not taken again, and so not ended, nor counted, twice; one that did not arrive is still to be told."""
    taken_rows(world, HOST, "b.example")
    world.end(EndedUrl(1, DELAY_MS, member, "status:200"))
    before = world.check()
    world.generation += 1
    who = replace(world.who, generation=world.generation)
    call = scripts.reconcile_partition(world.keys, who, 1, 0, (), (), [(1,), (2,)], (), (), {}, now_ms=world.now_ms)
    reply = world.runner.run(call)
    assert (reply.ended, reply.given_back, reply.taken_again) == ([1], 0, 0)
    assert world.check() == before
    assert list(before.taken) == [2]


@pytest.mark.parametrize("revisits", [b"", b"revisits"])
def test_url_that_ended_leaves_its_queue_in_the_call_that_tells_its_end(world: ScriptWorld, revisits: bytes) -> None:
    """If the node dies after this call, nobody else knows how it ended."""
    [(seq, (_, order, _))] = taken_rows(world, HOST)
    world.claim("a")
    assert set(world.check().queued_seqs) == {seq}
    who = replace(world.who, generation=world.generation + 1)
    call = scripts.reconcile_partition(
        world.keys,
        who,
        1,
        DELAY_MS,
        (),
        (),
        (),
        [(seq, HOST, order)],
        (),
        {},
        outcomes=b"outcomes",
        timed=revisits,
        now_ms=world.now_ms,
    )
    assert world.runner.run(call).removed == 1
    assert not world.check().queued_seqs
    [(_, fields)] = world.client.xrange(world.keys.inbox)
    assert fields == {b"o": b"outcomes"} | ({b"v": revisits} if revisits else {})


def test_hot_urls_are_counted(world: ScriptWorld) -> None:
    """The reply says what waits in Redis of each host, and the partition's own count is put right."""
    rows = taken_rows(world, HOST, HOST, HOST, "b.example")
    world.client.hset(world.keys.state, "hot", 99)
    world.generation += 1
    assert portion(world, 1, rows).queued == {HOST: 2}
    assert world.check().hot == 2


def test_comparing_much_of_one_host_takes_little_time(runner: ScriptRunner, crawl_name: str) -> None:
    """It costs what is held and has ended, however long the queue of their host is: counted in Redis' commands."""
    wide = ScriptWorld(runner, crawl_name, connections=100)
    wide.claim()
    wide.admit(*[HOST] * MANY)
    rows = []
    for _ in range(100):
        [url] = wide.take(1).urls
        rows.append((seq_of(url.member), (HOST, seq_of(url.member), url.member)))
        wide.advance(DELAY_MS)
    wide.acknowledge(*range(1, 51))
    before, reads_before = calls_of(wide), calls_of(wide, READS)
    wide.reconcile(rows[50:], rows[:50], delay_ms=DELAY_MS)
    assert calls_of(wide, READS) - reads_before <= 2, "ready hosts are read, and no queue is"
    assert wide.check().hot == MANY - 100
    assert calls_of(wide) - before < 1_000


def calls_of(world: ScriptWorld, prefixes: tuple[str, ...] = ("cmdstat_z",)) -> int:
    """Commands that scripts called on the server, all masters together."""
    everywhere = {"target_nodes": "primaries"} if hasattr(world.client, "get_primaries") else {}
    stats = world.client.execute_command("INFO", "commandstats", **everywhere)
    answers = stats.values() if everywhere and "cmdstat_info" not in stats else [stats]
    return sum(row["calls"] for answer in answers for name, row in answer.items() if name.startswith(prefixes))


# --- how long hosts rest whose owner died in mid-fetch


@pytest.mark.parametrize(
    "effect", [effect_of_answer(), effect_of_failure("status:503", (30_000, 60_000, 0, 0))], ids=["delay", "back-off"]
)
def test_host_whose_owner_died_rests_as_long_as_the_last_time(world: ScriptWorld, effect: HostEffect) -> None:
    """Its Crawl-delay, its rule, or its back-off: not the delay of hosts of which nothing is known."""
    rest_ms = 30_000 if effect != effect_of_answer() else 10_000
    world.admit(HOST, HOST, "b.example", "b.example")
    world.take()
    world.end(
        EndedUrl(1, 10_000, b"", "status:200", 0, effect, 700),
        EndedUrl(3, DELAY_MS, b"", "status:200", 0, effect_of_answer()),
    )
    world.advance(rest_ms)
    assert sorted(world.take_seqs()) == [2, 4]
    world.advance(200)
    world.claim("b", "token-a")
    assert world.host_state(HOST) == f"ready {rest_ms}"
    assert world.host_state("b.example") == f"ready {DELAY_MS}"
    assert world.next_ms(HOST) == world.now_ms + rest_ms, "also when it has nothing waiting for a while"


def test_host_whose_owner_may_fetch_still_rests_when_that_is_over(world: ScriptWorld) -> None:
    """And its own delay beyond it."""
    world.admit(HOST, HOST)
    world.take()
    world.end(EndedUrl(1, 10_000, b"", "status:200", 0, effect_of_answer()))
    world.advance(10_000)
    assert world.take_seqs() == [2]
    world.advance(LEASE_MS)
    world.claim("b")
    assert world.next_ms(HOST) == T0 + LEASE_MS + ABORT_MS + 10_000


def test_longer_delay_is_remembered_while_a_url_is_in_process(world: ScriptWorld) -> None:
    """For an hour at least; and forgotten once the host is asked as others are."""
    record = world.keys.host + HOST
    world.admit(HOST, HOST, HOST)
    world.take()
    world.end(EndedUrl(1, 10_000, b"", "status:200", 0, effect_of_answer()))
    assert world.client.hget(record, "delay") == b"10000"
    world.advance(10_000)
    world.take()
    assert world.client.pttl(record) > 3_500_000
    world.end(EndedUrl(2, DELAY_MS, b"", "status:200", 0, effect_of_answer()))
    assert world.client.hget(record, "delay") is None


@pytest.mark.parametrize("end", [EndedUrl(1, 90_000, b"="), EndedUrl(1, 0, b"", "dropped:forbidden")])
def test_what_was_not_fetched_says_nothing_of_the_delay(world: ScriptWorld, end: EndedUrl) -> None:
    """A URL that was put off, or dropped, leaves the host's delay as it was."""
    world.admit(HOST)
    world.take()
    world.end(end)
    assert world.client.hget(world.keys.host + HOST, "delay") is None
