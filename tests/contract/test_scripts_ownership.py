"""Who owns a partition, and what happens to it when an owner dies, Redis forgets, or a reply is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import redis

from bigcrawl.exceptions import OwnershipLostError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.scripts import EndedUrl, GrantedClaim, RefusedClaim
from tests.support.redis_servers.script_world import (
    ABORT_MS,
    DEADLINE_MS,
    DELAY_MS,
    HORIZON_MS,
    LEASE_MS,
    T0,
    ScriptRunner,
    ScriptWorld,
    seq_of,
)

if TYPE_CHECKING:
    from bigcrawl.redisdb.scripts import ExchangeReply, PartitionView
    from tests.support.redis_servers.script_world import Url

BUSY_MS = 7_000  # how long the owner in these tests had its URLs when it died


def look(world: ScriptWorld, lease_ms: int = LEASE_MS) -> PartitionView:
    view: PartitionView = world.runner.run(scripts.look_partition(world.keys, world.who, lease_ms, world.now_ms))
    return view


def append(world: ScriptWorld, node: str, number: int, batch: bytes = b"batch", urls: int = 3) -> bool:
    return bool(world.runner.run(scripts.append_batch(world.keys, node, 1, number, batch, urls)))


def trim(world: ScriptWorld, inbox_id: str, number: int, **state: int) -> int:
    return int(world.runner.run(scripts.trim_partition(world.keys, world.who, inbox_id, number, {**state})))


def inbox_ids(world: ScriptWorld) -> list[str]:
    return [entry_id.decode() for entry_id, _ in world.client.xrange(world.keys.inbox)]


def held_rows(taken: ExchangeReply) -> list[tuple[int, Url]]:
    return [(seq_of(url.member), (url.host, seq_of(url.member), url.member)) for url in taken.urls]


@pytest.fixture
def fresh(runner: ScriptRunner, crawl_name: str) -> ScriptWorld:
    """A partition that nobody has owned."""
    return ScriptWorld(runner, crawl_name)


@pytest.fixture
def abandoned(world: ScriptWorld) -> ScriptWorld:
    """Node "a" has held a URL of two hosts for a while; each has one more waiting, and c.example has one."""
    world.admit("a.example", "a.example", "b.example", "b.example")
    world.take()
    world.admit("c.example")
    world.advance(BUSY_MS)
    return world


# --- claim


def test_first_claim_of_a_partition(fresh: ScriptWorld) -> None:
    """Nobody's partition is won at once, above the epoch that the disk knows, and unknown as begun."""
    assert fresh.claim("a", epoch_min=41) == GrantedClaim(42, 0, "0-0", 0, committed=False)


def test_begun_partition_says_so(world: ScriptWorld) -> None:
    """A claim tells the last admitted batch, the last inbox id and that there must be a manifest."""
    world.admit("a.example")
    append(world, "a", 1)
    claim = world.claim("a")
    assert claim == GrantedClaim(2, 1, inbox_ids(world)[0], 0, committed=True)


def test_live_owner_is_refused_to_others(world: ScriptWorld) -> None:
    """Before the lease has run out another node only learns who owns the partition and for how long."""
    mine = world.who
    world.advance(LEASE_MS - 1)
    assert world.claim("b") == RefusedClaim(1, "a", "token-a")
    assert world.claim("b", "token-of-another") == RefusedClaim(1, "a", "token-a")
    assert world.who == mine
    world.admit("a.example")


def test_lease_is_renewed_by_looking(world: ScriptWorld) -> None:
    """The owner's look moves the end of its lease; a stranger's does not."""
    world.advance(LEASE_MS - 1)
    assert look(world).lease_left_ms == 1
    assert look(world).lease_left_ms == LEASE_MS
    world.advance(LEASE_MS - 1)
    view = world.runner.run(scripts.look_partition(world.keys, None, LEASE_MS, world.now_ms))
    assert (view.owned, view.lease_left_ms, view.node) == (False, 1, "a")
    assert isinstance(world.claim("b"), RefusedClaim)
    world.advance(1)
    assert isinstance(world.claim("b"), GrantedClaim)


def renew(worlds: list[ScriptWorld], node: str = "a", now_ms: int | None = None) -> list[int]:
    """Renew the leases of the owners that the worlds know, in one call where they may share one. Return the lost."""
    runner, now_ms = worlds[0].runner, worlds[0].now_ms if now_ms is None else now_ms
    at_once = 1 if isinstance(runner.client, redis.RedisCluster) else len(worlds)
    lost: list[int] = []
    for start in range(0, len(worlds), at_once):
        some = worlds[start : start + at_once]
        keys, epochs = [world.keys for world in some], [world.who.epoch for world in some]
        lost += [start + place for place in runner.run(scripts.renew_leases(keys, node, epochs, LEASE_MS, now_ms))]
    return lost


def left_ms(world: ScriptWorld, now_ms: int) -> int:
    """How much of the lease is left, as a stranger sees it."""
    view: PartitionView = world.runner.run(scripts.look_partition(world.keys, None, 0, now_ms))
    return view.lease_left_ms


@pytest.fixture
def four(runner: ScriptRunner, crawl_name: str) -> list[ScriptWorld]:
    """Partitions of node "a"."""
    worlds = [ScriptWorld(runner, crawl_name, partition) for partition in range(4)]
    for world in worlds:
        world.claim()
    return worlds


def test_leases_of_many_are_renewed_and_lost_ones_are_named(four: list[ScriptWorld]) -> None:
    """One has another owner now, and one was released: nothing of these changes."""
    mine = [world.who for world in four]
    then_ms = four[0].now_ms + LEASE_MS - 1
    four[1].advance(LEASE_MS)
    assert isinstance(four[1].claim("b"), GrantedClaim)
    four[1].who = mine[1]
    four[2].runner.run(scripts.release_partition(four[2].keys, four[2].who))
    before = [world.client.hgetall(world.keys.owner) for world in four]
    assert renew(four, now_ms=then_ms) == [1, 2]
    assert [left_ms(world, then_ms) for world in (four[0], four[3])] == [LEASE_MS, LEASE_MS]
    assert [world.client.hgetall(world.keys.owner) for world in four[1:3]] == before[1:3]


def test_lease_is_renewed_only_for_its_owner_in_its_epoch(four: list[ScriptWorld], crawl_name: str) -> None:
    """A stranger renews none, nor an owner before it claimed again; a partition that nobody owned stays so."""
    then_ms = four[0].now_ms + LEASE_MS - 1
    assert renew(four, "b", then_ms) == [0, 1, 2, 3]
    before = four[0].who
    four[0].claim()
    claimed, four[0].who = four[0].who, before
    assert claimed.epoch > before.epoch
    assert renew(four[:1], now_ms=then_ms) == [0]
    assert [left_ms(world, then_ms) for world in four] == [1, 1, 1, 1]
    nobodys = ScriptWorld(four[0].runner, crawl_name, 9)
    assert renew([nobodys]) == [0]
    assert not nobodys.client.exists(nobodys.keys.owner)


def test_renewal_repeated_or_late_makes_no_lease_shorter_nor_longer(four: list[ScriptWorld]) -> None:
    """It counts from when it was sent. So that of a node that has died since gives it less than one lease more."""
    sent_ms = four[0].now_ms + LEASE_MS // 2
    assert renew(four, now_ms=sent_ms) == renew(four, now_ms=sent_ms) == []
    assert [left_ms(world, sent_ms) for world in four] == [LEASE_MS] * 4
    assert renew(four, now_ms=sent_ms + 1_000) == []
    assert renew(four, now_ms=sent_ms) == []
    assert [left_ms(world, sent_ms) for world in four] == [LEASE_MS + 1_000] * 4


def test_epochs_only_rise(world: ScriptWorld) -> None:
    """Each claim gets an epoch above Redis' and the disk's, over release and takeover alike."""
    epochs = [world.who.epoch]
    world.runner.run(scripts.release_partition(world.keys, world.who))
    for node, epoch_min in (("b", 0), ("b", 9), ("b", 3)):
        world.claim(node, epoch_min=epoch_min)
        epochs.append(world.who.epoch)
    assert epochs == [1, 2, 10, 11]


@pytest.mark.parametrize(
    ("dead_token", "wait_ms", "rest_ms"),
    [("", LEASE_MS - BUSY_MS, ABORT_MS + DELAY_MS), ("token-a", 0, DELAY_MS)],
    ids=["lease-run-out", "known-dead"],
)
def test_takeover_returns_urls_and_lets_hosts_rest(
    abandoned: ScriptWorld, dead_token: str, wait_ms: int, rest_ms: int
) -> None:
    """Taken URLs are the first of their queues again. Their hosts wait for the delay once the owner has given its
    fetches up, soon after the end of its lease; only for the delay when it is known to be dead.
    """
    world = abandoned
    world.advance(wait_ms)
    claim = world.claim("b", dead_token)
    assert isinstance(claim, GrantedClaim)
    assert claim.returned == 2
    assert world.host_state("a.example") == world.host_state("b.example") == f"ready {rest_ms}"
    assert world.check().hot == 5
    assert world.take_seqs() == [5], "a host that was not busy does not wait"
    world.advance(rest_ms)
    assert world.take_seqs() == [1, 3]
    world.check()


def test_hosts_wait_no_longer_than_for_the_deadline_of_their_fetch(abandoned: ScriptWorld) -> None:
    """A fetch that was begun long before the end of the lease is over sooner than the owner has to give it up."""
    world = abandoned
    for _ in range(2):  # the owner renews its lease for longer than a fetch may take
        world.advance(LEASE_MS - 1)
        assert look(world).owned
    world.advance(LEASE_MS)
    world.claim("b")
    assert world.host_state("a.example") == f"ready {max(0, DEADLINE_MS + DELAY_MS - BUSY_MS - 3 * LEASE_MS + 2)}"


def test_hosts_of_an_owner_that_cannot_give_up_its_fetches_wait_for_the_deadline(abandoned: ScriptWorld) -> None:
    """Its process is stopped on this machine, as the next owner knows, and says with a long `abort_ms`."""
    world = abandoned
    world.advance(LEASE_MS - BUSY_MS)
    world.claim("b", abort_ms=DEADLINE_MS)
    assert world.host_state("a.example") == f"ready {DEADLINE_MS + DELAY_MS - LEASE_MS}"


def test_owner_that_lost_its_partition_is_refused(abandoned: ScriptWorld) -> None:
    """After a takeover the old owner ends nothing and takes nothing."""
    world = abandoned
    old = world.who
    world.claim("b", "token-a")
    world.who, new = old, world.who
    with pytest.raises(OwnershipLostError):
        world.acknowledge(1)
    with pytest.raises(OwnershipLostError):
        world.take()
    assert not look(world).owned
    world.who = new
    assert world.check().hot == 5


def test_claim_repeated_makes_one_more_epoch_and_nothing_else(abandoned: ScriptWorld) -> None:
    """A claim whose reply was lost is claimed again."""
    world = abandoned
    first = world.claim("b", "token-a")
    before = world.check()
    second = world.claim("b", "token-a")
    assert isinstance(first, GrantedClaim)
    assert isinstance(second, GrantedClaim)
    assert (second.epoch, second.returned) == (first.epoch + 1, 0)
    assert world.check() == before


def test_takeover_makes_no_host_earlier(world: ScriptWorld) -> None:
    """A host taken for a time that still lies ahead waits its delay from that time."""
    world.admit("a.example", "a.example")
    world.take()
    world.acknowledge(1, delay_ms=HORIZON_MS)
    assert world.take_seqs(horizon_ms=HORIZON_MS) == [2]
    world.claim("b", "token-a")
    assert world.host_state("a.example") == f"ready {HORIZON_MS + DELAY_MS}"


# --- release


def test_release_waits_for_taken_urls(world: ScriptWorld) -> None:
    """A partition with URLs taken is not released; a drained one is, once, and is free at once."""
    world.admit("a.example")
    world.take()
    mine = world.who
    assert world.runner.run(scripts.release_partition(world.keys, mine)) == -1
    assert look(world).owned
    world.acknowledge(1)
    assert world.runner.run(scripts.release_partition(world.keys, mine)) == 1
    assert world.runner.run(scripts.release_partition(world.keys, mine)) == 0
    assert look(world).node == ""
    assert world.claim("b") == GrantedClaim(2, 1, "0-0", 0, committed=True)


# --- reconcile


def test_lost_reply_of_take_gives_the_urls_back(world: ScriptWorld) -> None:
    """What the owner never heard of returns to its place; nobody has fetched it, and so no host waits for it."""
    world.admit("a.example", "b.example", "c.example")
    heard = world.take(1)
    world.take(1)
    assert world.reconcile(held_rows(heard)) == (1, 0, 0)
    assert set(world.check().taken) == {1}
    assert world.host_state("b.example") == world.host_state("c.example") == "ready 0"
    assert world.reconcile(held_rows(heard)) == (0, 0, 0)


def test_reconciling_changes_nothing_when_both_sides_agree(world: ScriptWorld) -> None:
    """Taken URLs stay as they are, with the time they were taken for."""
    world.admit("a.example", "b.example")
    taken = world.take()
    world.advance(4_000)
    before = world.check()
    assert world.reconcile(held_rows(taken)) == (0, 0, 0)
    assert world.check() == before


def test_lost_reply_of_an_acknowledgement(world: ScriptWorld) -> None:
    """An ended URL that the owner still holds is taken again, until the end is repeated."""
    world.admit("a.example", "a.example")
    taken = world.take()
    world.acknowledge(1)
    assert world.reconcile(held_rows(taken)) == (0, 1, 0)
    world.check()
    assert world.acknowledge(1) == 1
    assert world.check().hot == 1
    assert world.host_state("a.example") == f"ready {DELAY_MS}"


@pytest.mark.parametrize("member", [b"=", b"1:second"], ids=["returned", "failed"])
def test_lost_reply_of_a_return(world: ScriptWorld, member: bytes) -> None:
    """A returned URL that the owner still holds leaves its queue again, whatever it is called there."""
    world.admit("a.example", "a.example")
    taken = world.take()
    world.end(EndedUrl(1, 0, member))
    assert world.reconcile(held_rows(taken)) == (0, 1, 0)
    assert world.check().hot == 1
    assert world.end(EndedUrl(1, 0, member)) == 1
    assert world.check().hot == 2
    world.advance(DELAY_MS)
    assert world.take_seqs() == [1]


def test_reconcile_after_redis_forgot(world: ScriptWorld) -> None:
    """After a rewind held URLs are taken and URLs ended lately are gone, in whatever state Redis has them."""
    world.admit("a.example", "b.example", "c.example", "d.example")
    before = world.take()
    rows = held_rows(before)
    world.give_back(3)
    world.claim("a")
    assert world.reconcile(rows[:1], rows[1:3], delay_ms=DELAY_MS) == (0, 1, 2)
    seen = world.check()
    assert set(seen.taken) == {1}
    assert seen.queued_seqs == [4]
    assert world.count("ended") == 2
    for host in ("b.example", "c.example"):
        assert world.next_ms(host) == world.now_ms + DELAY_MS, "its last fetch may have been forgotten"


def test_forgotten_end_does_not_leave_its_host_behind(world: ScriptWorld) -> None:
    """A host whose URL ended unknown to Redis is ready for its next URL after its delay."""
    world.admit("a.example", "a.example")
    taken = world.take()
    assert world.reconcile([], held_rows(taken), delay_ms=DELAY_MS) == (0, 0, 1)
    world.check()
    assert world.host_state("a.example") == f"ready {DELAY_MS}"


def test_forgotten_retry_is_not_queued_beside_its_next_try(world: ScriptWorld) -> None:
    """A URL held in its second try is the same URL as the first try that Redis came back with."""
    world.admit("a.example", "a.example")
    assert world.reconcile([(1, ("a.example", 1, b"1:second"))]) == (0, 1, 0)
    seen = world.check()
    assert seen.taken[1][3] == b"1:second"
    assert seen.queued_seqs == [2]


def test_url_that_is_held_at_another_place_is_not_queued_at_its_old_one(world: ScriptWorld) -> None:
    """It was put off and taken again within what Redis forgot: its member and its order are others by now."""
    world.admit("a.example", "a.example")
    behind = 1 << 40
    assert world.reconcile([(1, ("a.example", behind, b"1:moved"))], places=[("a.example", 1)]) == (0, 1, 0)
    seen = world.check()
    assert seen.taken[1][3] == b"1:moved"
    assert seen.queued_seqs == [2]


def test_forgotten_rest_is_kept(world: ScriptWorld) -> None:
    """A host told to rest for longer than the delay rests, whether it waits, is held, or is nowhere."""
    world.admit("waits.example", "held.example", "held.example", "taken.example")
    taken = held_rows(world.take())
    world.give_back(1, delay_ms=0)
    rests = dict.fromkeys(("waits.example", "held.example", "taken.example", "nowhere.example"), 8_000)
    held = [row for row in taken if row[1][0] == "held.example"]
    world.reconcile(held, [], rests)
    world.check()
    assert world.host_state("waits.example") == world.host_state("taken.example") == "ready 8000"
    world.end(EndedUrl(2, 0, b""))
    assert world.host_state("held.example") == "ready 8000"
    world.admit("nowhere.example")
    assert world.host_state("nowhere.example") == "ready 8000"


def test_reconcile_with_nothing_held_on_either_side(world: ScriptWorld) -> None:
    """Waiting hosts get their full delay, longer rests stay."""
    world.admit("a.example", "b.example", "b.example")
    world.take(1)
    world.acknowledge(1, delay_ms=0)
    world.admit("a.example")
    world.take_seqs()
    world.acknowledge(2, 4, delay_ms=90_000)
    assert world.reconcile() == (0, 0, 0)
    assert world.host_state("b.example") == "ready 90000"
    world.check()


# --- inbox


def test_batch_of_a_number_is_appended_once(world: ScriptWorld) -> None:
    """A repeat is recognised by node and number, and nothing is counted for it."""
    assert append(world, "a", 1, b"one")
    assert not append(world, "a", 1, b"one")
    assert append(world, "b", 1, b"two")
    assert append(world, "a", 2, b"three")
    assert not append(world, "a", 1, b"one")
    assert [fields[b"b"] for _, fields in world.client.xrange(world.keys.inbox)] == [b"one", b"two", b"three"]
    assert (world.client.xlen(world.keys.inbox), world.count("appended_urls")) == (3, 9)
    assert 86_000 < world.client.ttl(world.keys.sender + "a") <= 86_400


def test_edges_come_with_their_batch(world: ScriptWorld) -> None:
    """In a field of their own, if there are any."""
    for number, edges in enumerate([b"", b"edges"], 1):
        assert world.runner.run(scripts.append_batch(world.keys, "a", 1, number, b"batch", 1, edges))
    assert [fields for _, fields in world.client.xrange(world.keys.inbox)] == [
        {b"b": b"batch"},
        {b"b": b"batch", b"e": b"edges"},
    ]


def test_observed_rows_come_with_a_batch_or_alone(world: ScriptWorld) -> None:
    """In a field of their own beside what else there is; alone they are no URLs, and have a number like any batch."""
    for number, (batch, urls, edges) in enumerate([(b"batch", 2, b""), (b"batch", 1, b"edges"), (b"", 0, b"")], 1):
        call = scripts.append_batch(world.keys, "a", 1, number, batch, urls, edges, b"rows")
        assert world.runner.run(call)
        assert world.runner.run(call) == ""
    entries = [fields for _, fields in world.client.xrange(world.keys.inbox)]
    assert [{name: value for name, value in fields.items() if value} for fields in entries] == [
        {b"b": b"batch", b"c": b"rows"},
        {b"b": b"batch", b"e": b"edges", b"c": b"rows"},
        {b"c": b"rows"},
    ]
    assert world.count("appended_urls") == 3


def sent(world: ScriptWorld, session: int, number: int) -> str | None:
    """What Redis says to a batch of the session."""
    batch = f"{session}.{number}".encode()
    answer: str | None = world.runner.run(scripts.append_batch(world.keys, "a", session, number, batch, 1))
    return answer


def test_batch_is_appended_only_after_the_one_before(world: ScriptWorld) -> None:
    """Its number alone says so: what is missing may have been refused, and comes again."""
    assert sent(world, 1, 2) is None
    assert sent(world, 1, 1)
    assert sent(world, 1, 3) is None
    assert sent(world, 1, 2)
    assert sent(world, 1, 3)
    assert [fields[b"b"] for _, fields in world.client.xrange(world.keys.inbox)] == [b"1.1", b"1.2", b"1.3"]
    assert (world.client.xlen(world.keys.inbox), world.count("appended_urls")) == (3, 3)


def test_later_session_shuts_out_what_is_late(world: ScriptWorld) -> None:
    """It begins with 1, whatever is known of those before; nothing of them is taken after that."""
    assert sent(world, 1, 1)
    assert sent(world, 3, 2) is None
    assert sent(world, 3, 1)
    assert [sent(world, *late) for late in ((1, 1), (1, 2), (2, 1), (3, 1))] == [""] * 4
    assert sent(world, 3, 2)
    assert [fields[b"b"] for _, fields in world.client.xrange(world.keys.inbox)] == [b"1.1", b"3.1", b"3.2"]


def test_trim_removes_what_is_durable_and_nothing_above(world: ScriptWorld) -> None:
    """Entries up to the id and batches up to the number go; the owner's counts are published."""
    for number in (1, 2, 3):
        append(world, "a", number)
        world.admit("a.example")
    first, second, third = inbox_ids(world)
    assert trim(world, second, 2, waiting=8) == 2
    assert inbox_ids(world) == [third]
    assert world.client.hkeys(world.keys.batches) == [b"3"]
    assert trim(world, second, 2, waiting=8) == 0
    assert trim(world, first, 1, waiting=9) == 0
    assert trim(world, "0-0", 0) == 0
    assert inbox_ids(world) == [third]
    assert (world.count("waiting"), world.count("admitted")) == (9, 3)
    view = look(world)
    assert (view.inbox_id, view.count("waiting"), view.count("never-raised")) == (third, 9, 0)


def test_trim_without_an_inbox(world: ScriptWorld) -> None:
    """A partition that never got a batch is trimmed all the same."""
    assert trim(world, "5-3", 1, seen=4) == 0
    assert world.count("seen") == 4


@pytest.mark.parametrize("present", [True, False], ids=["entries", "forgotten"])
def test_new_entries_get_ids_above_what_was_folded(world: ScriptWorld, present: bool) -> None:
    """After a rewind no new entry hides below the folded id; entries that are there stay."""
    if present:
        append(world, "a", 1)
    before = inbox_ids(world)
    folded = f"{T0 * 2}-18014398509481980"
    assert world.runner.run(scripts.advance_inbox(world.keys, folded)) is True
    assert world.runner.run(scripts.advance_inbox(world.keys, folded)) is False
    assert look(world).inbox_id == folded
    assert inbox_ids(world) == before
    append(world, "b", 1)
    new = world.client.xrange(world.keys.inbox, min="(" + folded)
    assert len(new) == 1


def test_inbox_is_not_advanced_backwards(world: ScriptWorld) -> None:
    """An id at or below the last one changes nothing; nothing folded needs nothing."""
    append(world, "a", 1)
    [last] = inbox_ids(world)
    for inbox_id in (last, "1-1", "0-0"):
        assert world.runner.run(scripts.advance_inbox(world.keys, inbox_id)) is False
    assert look(world).inbox_id == last


# --- look


def test_look_counts_hosts_by_state(world: ScriptWorld) -> None:
    """Due, not yet due and busy hosts, the next due time and the taken URLs, read in one call."""
    world.admit("a.example", "a.example", "b.example", "c.example")
    world.take(2)
    world.acknowledge(1, delay_ms=900)
    view = look(world)
    assert (view.hosts_ready, view.hosts_waiting, view.hosts_busy, view.taken) == (1, 1, 1, 1)
    assert (view.now_ms, view.next_due_ms) == (world.now_ms, world.now_ms)
    assert (view.owned, view.node, view.epoch) == (True, "a", 1)
    world.take()
    assert look(world).next_due_ms == world.now_ms + 900
    assert view.count("hot") == 2


def test_brief_look_renews_the_lease_and_tells_what_an_owner_needs_every_second(world: ScriptWorld) -> None:
    """The inbox, the next due time and four fields, as a look at all does; no numbers of hosts."""
    world.admit("a.example", "b.example")
    world.take()
    append(world, "b", 1, urls=7)
    trim(world, "0-0", 0, folded_urls=2, waiting=5)
    world.client.hset(world.keys.state, mapping={"folded": "5-1", "snoozes": 3})
    world.advance(LEASE_MS // 2)
    brief = world.runner.run(scripts.look_partition(world.keys, world.who, LEASE_MS, world.now_ms, is_brief=True))
    whole = look(world)
    assert brief.lease_left_ms == LEASE_MS // 2
    assert whole.lease_left_ms == LEASE_MS
    for name in ("now_ms", "owned", "node", "epoch", "next_due_ms", "inbox_id", "last_folded_entry"):
        assert getattr(brief, name) == getattr(whole, name)
    assert brief.state == {"folded": "5-1", "appended_urls": "7", "folded_urls": "2", "snoozes": "3"}
    assert brief.state.items() < whole.state.items()
    assert (brief.hosts_ready, brief.hosts_waiting, brief.hosts_busy, brief.taken) == (0, 0, 0, 0)
    assert (brief.hosts_snoozed, brief.hosts_retired) == (0, 0)


def test_look_at_a_partition_nobody_has_begun(fresh: ScriptWorld) -> None:
    """Nothing is there, and looking does not change that."""
    view = fresh.runner.run(scripts.look_partition(fresh.keys, None, 0, T0))
    assert (view.owned, view.node, view.epoch, view.next_due_ms, view.inbox_id) == (False, "", 0, -1, "0-0")
    assert (view.hosts_ready, view.hosts_waiting, view.hosts_busy, view.taken, view.state) == (0, 0, 0, 0, {})
    assert not list(fresh.client.scan_iter(match=fresh.keys.owner.removesuffix("owner") + "*"))


def test_without_a_clock_of_its_own_a_call_uses_the_servers(fresh: ScriptWorld) -> None:
    """now_ms 0 means the server's time."""
    before, after = (
        fresh.runner.run(scripts.look_partition(fresh.keys)).now_ms for _ in range(2)
    )  # fmt: skip
    assert T0 < before <= after
