"""From admission to acknowledgement: what the scripts of the hot path do, on one server and on a cluster.

The table of a host, which every test here walks a part of (connections 1):

    state            admit                  take            end, URLs waiting   end, none waiting
    nobody waits     ready at max(now,next) -               -                   -
    ready            ready, time unchanged  busy            -                   -
    busy             busy                   not taken       ready at next       nobody waits, next kept
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import OwnershipLostError, RewoundError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.scripts import EndedUrl, Identity
from tests.support.redis_servers.script_world import DELAY_MS, HORIZON_MS, ScriptRunner, ScriptWorld, seq_of

if TYPE_CHECKING:
    from collections.abc import Callable

STRANGER = Identity("stranger", 1)
MANY = 20_000  # far beyond what Lua's stack holds (8,000): a script must not unpack its arguments


@pytest.fixture
def two_wide(runner: ScriptRunner, crawl_name: str) -> ScriptWorld:
    """A partition whose hosts may have two connections."""
    made = ScriptWorld(runner, crawl_name, connections=2)
    made.claim()
    return made


# --- the table, row by row


def test_admitted_host_is_ready_at_once(world: ScriptWorld) -> None:
    """A host nobody waited for is ready now."""
    world.admit("a.example")
    assert world.host_state("a.example") == "ready 0"


def test_admission_leaves_a_ready_host_its_time(world: ScriptWorld) -> None:
    """More URLs make a ready host neither earlier nor later."""
    world.admit("a.example")
    world.advance(300)
    world.admit("a.example")
    assert world.host_state("a.example") == "ready -300"


def test_taken_host_is_busy_and_its_other_urls_wait(world: ScriptWorld) -> None:
    """With one connection a host gives one URL, and nothing until that one has ended."""
    world.admit("a.example", "a.example")
    assert world.take_seqs() == [1]
    assert world.host_state("a.example") == "busy 1"
    assert world.take_seqs() == []
    world.admit("a.example")
    assert world.host_state("a.example") == "busy 1"
    world.check()


def test_ended_host_is_ready_after_its_delay(world: ScriptWorld) -> None:
    """The delay runs from the end of the fetch."""
    world.admit("a.example", "a.example")
    world.take()
    world.advance(5_000)
    assert world.acknowledge(1, delay_ms=1_500) == 1
    assert world.host_state("a.example") == "ready 1500"
    world.advance(1_499)
    assert world.take_seqs() == []
    world.advance(1)
    assert world.take_seqs() == [2]


def test_ended_host_without_urls_keeps_its_time(world: ScriptWorld) -> None:
    """A host whose last URL ended is nowhere, and is not due before its delay when a URL comes."""
    world.admit("a.example")
    world.take()
    world.acknowledge(1, delay_ms=2_000)
    assert world.host_state("a.example") == ""
    world.advance(500)
    world.admit("a.example")
    assert world.host_state("a.example") == "ready 1500"
    world.check()


# --- admit


def test_batches_are_admitted_in_their_order_and_once(world: ScriptWorld) -> None:
    """A repeat changes nothing, a gap is refused, and then the right number is taken."""
    first, second, third = world.urls("a.example"), world.urls("b.example"), world.urls("c.example")
    assert world.admit_as(1, first)
    assert not world.admit_as(1, first)
    with pytest.raises(RewoundError, match="admit batch 3 was refused"):
        world.admit_as(3, third)
    assert world.admit_as(2, second)
    assert not world.admit_as(1, first)
    assert world.admit_as(3, third)
    seen = world.check()
    assert sorted(seen.queued_seqs) == [1, 2, 3]
    assert world.count("admitted") == 3
    assert world.client.hgetall(world.keys.batches) == {b"1": b"1", b"2": b"2", b"3": b"3"}


def test_empty_batch_counts(world: ScriptWorld) -> None:
    """A batch without URLs has its number all the same."""
    assert world.admit()
    assert world.admit("a.example")
    assert world.check().hot == 1


@pytest.mark.parametrize("script", ["admit", "take", "end", "reconcile", "trim"])
def test_only_the_owner_in_its_epoch_changes_a_partition(world: ScriptWorld, script: str) -> None:
    """Another node, and the owner in an epoch that is over, are refused and change nothing."""
    world.admit("a.example", "b.example")
    world.take(1)
    before, mine = world.snapshot(), world.who
    calls: dict[str, Callable[[], object]] = {
        "admit": lambda: world.admit_as(2, world.urls("c.example")),
        "take": world.take,
        "end": lambda: world.acknowledge(1),
        "reconcile": world.reconcile,
        "trim": lambda: world.runner.run(scripts.trim_partition(world.keys, world.who, "9-9", 9, {"seen": 1})),
    }
    for who in (STRANGER, Identity(mine.node, mine.epoch - 1), Identity(mine.node, mine.epoch + 1)):
        world.who = who
        with pytest.raises(OwnershipLostError):
            calls[script]()
    assert world.snapshot() == before
    assert world.count("admitted") == 1


def test_large_batches_do_not_meet_a_limit(world: ScriptWorld) -> None:
    """Tens of thousands of arguments are as good as one."""
    assert world.admit(*(f"h{i % 100}.example" for i in range(MANY)))
    taken = world.take(MANY).urls
    assert len(taken) == 100
    held = [(seq_of(url.member), (url.host, seq_of(url.member), url.member)) for url in taken]
    gone = [(seq, (f"h{(seq - 1) % 100}.example", seq, b"%d:\x00url\n" % seq)) for seq in range(101, MANY // 2)]
    assert world.reconcile(held, gone) == (0, 0, MANY // 2 - 101)
    assert world.check().hot == MANY - 100 - (MANY // 2 - 101)
    assert world.acknowledge(*(seq for seq, _ in held), *range(MANY, 2 * MANY)) == 100


# --- order


def test_urls_leave_a_host_by_priority_and_then_arrival(world: ScriptWorld) -> None:
    """Lower order first: priorities up to the largest that a double holds exactly, then sequence."""
    widest = (1 << 52) - 10
    world.admit("a", ("a", widest), ("a", -widest), "a", ("a", -widest), ("a", 1 - widest))
    order = []
    for _ in range(6):
        [seq] = world.take_seqs()
        world.check()
        world.acknowledge(seq)
        world.advance(DELAY_MS)
        order.append(seq)
    assert order == [3, 5, 6, 1, 4, 2]


@pytest.mark.parametrize("order", [(1 << 52) - 10, -(1 << 52), 10**15 + 1, -(10**14) - 7, 0])
def test_order_survives_being_taken_and_returned(world: ScriptWorld, order: int) -> None:
    """A URL's order is the same number to its last digit after take and return, however large."""
    world.admit(("a.example", order - 1))
    for _ in range(3):
        assert world.take_seqs() == [1]
        [(_, _, kept, _)] = world.snapshot().taken.values()
        assert kept == order
        world.give_back(1)
        assert world.check().queues["a.example"] == {b"1:\x00url\n": order}
        world.advance(DELAY_MS)


def test_hosts_are_taken_earliest_due_first(world: ScriptWorld) -> None:
    """Across hosts the time decides, not the order of URLs; the limit takes the earliest."""
    for host in ("late.example", "middle.example", "early.example"):
        world.admit(host, host)
    world.take()
    for seq, delay_ms in ((1, 900), (3, 600), (5, 300)):
        world.acknowledge(seq, delay_ms=delay_ms)
    world.advance(1_000)
    taken = world.take(2)
    assert [(url.host, url.due_ms - world.now_ms) for url in taken.urls] == [
        ("early.example", -700),
        ("middle.example", -400),
    ]
    assert taken.next_due_ms == world.now_ms - 100


# --- take


def test_take_of_an_empty_partition_gives_nothing(world: ScriptWorld) -> None:
    """Nothing due, nothing taken, and no next due time."""
    taken = world.take()
    assert (taken.now_ms, taken.next_due_ms, taken.urls) == (world.now_ms, -1, [])
    assert world.check().hot == 0


def test_take_reaches_to_the_horizon(world: ScriptWorld) -> None:
    """URLs of hosts due within the horizon come with their due time; later ones only say when."""
    world.admit("a.example", "a.example", "b.example", "b.example")
    world.take()
    world.acknowledge(1, delay_ms=HORIZON_MS)
    world.acknowledge(3, delay_ms=HORIZON_MS + 1)
    taken = world.take(horizon_ms=HORIZON_MS)
    assert [(url.host, url.due_ms) for url in taken.urls] == [("a.example", world.now_ms + HORIZON_MS)]
    assert taken.next_due_ms == world.now_ms + HORIZON_MS + 1
    world.check()


def test_member_is_opaque_bytes(world: ScriptWorld) -> None:
    """NUL, newline and what looks like a record's own parts travel unharmed."""
    member = b"1:\x00\n17\n0\n=\xff%d\n"
    world.admit_as(1, [("a.example", 1, member)])
    assert world.take().urls[0].member == member
    world.give_back(1)
    assert list(world.snapshot().queues["a.example"]) == [member]


# --- end


def test_acknowledged_urls_are_gone_and_counted(world: ScriptWorld) -> None:
    """An acknowledged URL is nowhere; its counter, its bytes and `ended` say that it was."""
    world.admit("a.example", "b.example")
    world.take()
    assert world.end(EndedUrl(1, 0, b"", "status:200", 700), EndedUrl(2, 0, b"", "", 900)) == 2
    seen = world.check()
    assert not seen.queues
    assert not seen.taken
    assert [world.count(field) for field in ("ended", "status:200", "bytes")] == [2, 1, 700]


def test_failed_url_waits_as_its_next_try_at_its_place(world: ScriptWorld) -> None:
    """A failed URL comes back with the new member, before the URLs that were admitted after it."""
    world.admit("a.example", "a.example")
    world.take()
    assert world.end(EndedUrl(1, 4_000, b"1:second", "retried:timeout", 5)) == 1
    assert world.host_state("a.example") == "ready 4000"
    assert world.check().hot == 2
    world.advance(4_000)
    assert world.take().urls[0].member == b"1:second"
    assert [world.count(field) for field in ("ended", "retried:timeout", "bytes")] == [0, 1, 5]


def test_end_said_twice_ends_once(world: ScriptWorld) -> None:
    """A URL that is not taken any more is passed over."""
    world.admit("a.example", "b.example")
    world.take()
    ends = [EndedUrl(1, DELAY_MS, b"", "status:200", 7), EndedUrl(2, DELAY_MS, b"2:next", "retried:timeout", 7)]
    assert world.end(*ends) == 2
    before = world.check()
    assert world.end(*ends) == 0
    assert world.end(EndedUrl(99, 0)) == 0
    assert world.check() == before
    assert [world.count(field) for field in ("ended", "status:200", "bytes")] == [1, 1, 14]


@pytest.mark.parametrize("member", [b"", b"="], ids=["acknowledged", "returned"])
def test_next_time_is_never_earlier_than_said(world: ScriptWorld, member: bytes) -> None:
    """A host told to rest rests, whatever a later end with a short delay says."""
    world.admit("a.example", "a.example", "a.example")
    world.take()
    world.acknowledge(1, delay_ms=HORIZON_MS)
    rests_until = world.now_ms + HORIZON_MS
    assert world.take_seqs(horizon_ms=HORIZON_MS) == [2]
    world.end(EndedUrl(2, 0, member))
    assert world.next_ms("a.example") == rests_until
    assert world.host_state("a.example") == f"ready {HORIZON_MS}"


def test_url_returned_before_its_due_time_is_not_due_earlier(world: ScriptWorld) -> None:
    """What was taken within the horizon and given back at once waits for the time it was taken for."""
    world.admit("a.example", "a.example")
    world.take()
    world.reconcile(delay_ms=DELAY_MS)  # the host is due after its delay now, and no fetch has said so
    world.advance(DELAY_MS - HORIZON_MS)
    assert world.take_seqs(horizon_ms=HORIZON_MS) == [1]
    world.client.delete(world.keys.host + "a.example")
    world.give_back(1, delay_ms=0)
    assert world.host_state("a.example") == f"ready {HORIZON_MS}"


def test_record_outlives_the_next_time(world: ScriptWorld) -> None:
    """A host's record expires after its next allowed time, however short-lived it was before."""
    record = world.keys.host + "a.example"
    world.admit("a.example")
    world.take()
    world.runner.run(scripts.put_robots(world.keys, "a.example", "robots:x", b"rules", 5_000, 9, world.now_ms))
    world.acknowledge(1, delay_ms=600_000)
    assert 600_000 < world.client.pttl(record) <= 720_000
    world.runner.run(scripts.put_robots(world.keys, "a.example", "robots:y", b"rules", 5_000, 9, world.now_ms))
    assert 600_000 < world.client.pttl(record) <= 720_000


def test_long_lived_record_is_not_cut_short(world: ScriptWorld) -> None:
    """Ending a fetch does not shorten the life of the host's robots rules."""
    world.admit("a.example")
    world.take()
    world.runner.run(scripts.put_robots(world.keys, "a.example", "robots:x", b"rules", 86_400_000, 9, world.now_ms))
    world.acknowledge(1)
    assert world.client.pttl(world.keys.host + "a.example") > 86_000_000


# --- more than one connection


def test_second_connection_starts_a_delay_after_the_first(two_wide: ScriptWorld) -> None:
    """A host with two connections gives a second URL after its delay, and no third one."""
    world = two_wide
    world.admit("a.example", "a.example", "a.example")
    assert world.take_seqs() == [1]
    assert world.host_state("a.example") == f"ready {DELAY_MS}, busy 1"
    assert world.take_seqs() == []
    world.advance(DELAY_MS)
    assert world.take_seqs() == [2]
    assert world.host_state("a.example") == "busy 2"
    world.advance(DELAY_MS)
    assert world.take_seqs() == []
    world.acknowledge(1)
    assert world.host_state("a.example") == f"ready {DELAY_MS}, busy 1"
    world.advance(DELAY_MS)
    assert world.take_seqs() == [3]
    world.check()


def test_free_connection_is_found_by_a_late_url(two_wide: ScriptWorld) -> None:
    """A host that is busy with one of two connections becomes ready again by admission."""
    world = two_wide
    world.admit("a.example")
    world.take()
    assert world.host_state("a.example") == "busy 1"
    world.admit("a.example", "a.example")
    assert world.take_seqs() == [2]
    world.acknowledge(1, 2)
    world.advance(DELAY_MS)
    assert world.take_seqs() == [3]
    world.acknowledge(3)
    assert world.host_state("a.example") == ""
    world.check()


def test_fewer_connections_than_before_are_kept_to(two_wide: ScriptWorld) -> None:
    """A node with a lower limit takes nothing of a host until the surplus has ended; nothing is stuck."""
    world = two_wide
    world.admit("a.example", "a.example", "a.example")
    world.take()
    world.advance(DELAY_MS)
    world.take()
    world.connections = 1
    world.acknowledge(1)
    assert world.host_state("a.example") == "busy 1"
    world.acknowledge(2)
    world.advance(DELAY_MS)
    assert world.take_seqs() == [3]
    world.check()


# --- ending and taking in one call


def test_host_that_need_not_rest_is_taken_again_in_the_same_call(world: ScriptWorld) -> None:
    """What ends is ended first: with no delay the host's next URL comes back with the word of the one before."""
    world.admit("a.example", "a.example", "b.example")
    assert world.take_seqs(1) == [1]
    exchanged = world.exchange(10, 0, EndedUrl(1, 0, b"", "status:200", 10))
    assert exchanged.ended == 1
    assert {seq_of(url.member) for url in exchanged.urls} == {2, 3}
    assert world.host_state("a.example") == "busy 1"


def test_host_that_rests_is_not_taken_in_the_same_call(world: ScriptWorld) -> None:
    """Its delay counts from the end; the reply says when it is due."""
    world.admit("a.example", "a.example")
    world.take()
    exchanged = world.exchange(10, HORIZON_MS, EndedUrl(1, DELAY_MS, b"", "status:200", 10))
    assert (exchanged.ended, exchanged.urls) == (1, [])
    assert exchanged.next_due_ms == exchanged.now_ms + DELAY_MS


def test_url_returned_and_taken_in_one_call_is_the_same_url(world: ScriptWorld) -> None:
    """A URL that goes back to its place with no rest for its host is the next one taken."""
    world.admit("a.example", "a.example")
    [url] = world.take().urls
    exchanged = world.exchange(10, 0, EndedUrl(1, 0, b"="))
    assert [again.member for again in exchanged.urls] == [url.member]
    assert exchanged.ended == 1


def test_nothing_is_taken_where_nothing_is_asked_for(world: ScriptWorld) -> None:
    """A node without room still learns when the partition's next host is due."""
    world.admit("a.example")
    exchanged = world.exchange(0, HORIZON_MS)
    assert (exchanged.ended, exchanged.urls) == (0, [])
    assert exchanged.next_due_ms == exchanged.now_ms


# --- URLs that need not be taken


def drop(world: ScriptWorld, *urls: tuple[bytes, bytes], who: Identity | None = None) -> int:
    call = scripts.drop_urls(world.keys, who or world.who, "a.example", "dropped:forbidden", urls)
    return int(world.runner.run(call))


def told(world: ScriptWorld) -> bytes:
    return b"".join(fields[b"o"] for _, fields in world.client.xrange(world.keys.inbox) if b"o" in fields)


def test_dropped_urls_end_where_they_wait(world: ScriptWorld) -> None:
    """They are counted and their outcomes told; one that is taken, or gone, is passed over; a repeat does nothing."""
    world.admit("a.example", "a.example", "a.example", "b.example")
    members = world.client.zrange(world.keys.back + "a.example", 0, -1)
    assert world.take_seqs() == [1, 4]
    rows = [(member, b"%012d" % number) for number, member in enumerate(members)]
    assert drop(world, *rows) == 2
    assert drop(world, *rows) == 0
    assert told(world) == rows[1][1] + rows[2][1]
    assert (world.count("ended"), world.count("dropped:forbidden"), world.count("hot")) == (2, 2, 0)
    world.check()
    world.acknowledge(1)
    world.check()
    assert world.take_seqs() == []


def test_host_whose_urls_are_all_dropped_is_not_ready(world: ScriptWorld) -> None:
    """And its next time stays: one that is admitted later waits for it."""
    world.admit("a.example")
    world.take()
    world.admit("a.example")
    world.acknowledge(1, delay_ms=5_000)
    [member] = world.client.zrange(world.keys.back + "a.example", 0, -1)
    assert drop(world, (member, b"x" * 12)) == 1
    assert world.client.zscore(world.keys.ready, "a.example") is None
    world.check()
    world.admit("a.example")
    assert world.take_seqs() == []
    world.advance(5_000)
    assert world.take_seqs() == [3]


def test_another_owner_drops_nothing(world: ScriptWorld) -> None:
    """Owner and epoch are asked first."""
    world.admit("a.example")
    members = world.client.zrange(world.keys.back + "a.example", 0, -1)
    with pytest.raises(OwnershipLostError):
        drop(world, (members[0], b"x" * 12), who=Identity("b", world.who.epoch))
    assert world.count("hot") == 1
    assert told(world) == b""
