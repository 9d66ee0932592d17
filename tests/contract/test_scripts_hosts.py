"""Host records, lending, servers' gates, nodes and start requests: the scripts that ask for no owner."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys, gate_prefix
from tests.support.redis_servers.script_world import DEADLINE_MS, DELAY_MS, LEASE_MS, ScriptRunner, ScriptWorld

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bigcrawl.redisdb.scripts import Call

ADDRESS = "192.0.2.7"
GAP_MS, LATE_MS = 500, 100
HOST = "a.example"
AHEAD_MS = 10_000
PAUSE_MS = 3_000  # as in borrow_host.lua


def put(world: ScriptWorld, host: str, records_max: int = 3, rules: bytes = b"rules") -> int:
    call = scripts.put_robots(world.keys, host, "robots:https", rules, 86_400_000, records_max, world.now_ms)
    return int(world.runner.run(call))


def records(world: ScriptWorld) -> set[str]:
    return {key.decode().removeprefix(world.keys.host) for key in world.client.scan_iter(match=world.keys.host + "*")}


def borrow(world: ScriptWorld, ticket: str = "t1") -> tuple[bool, int]:
    call = scripts.borrow_host(world.keys, HOST, ticket, AHEAD_MS, DEADLINE_MS, world.now_ms)
    answer: tuple[bool, int] = world.runner.run(call)
    return answer


def give_back(world: ScriptWorld, ticket: str = "t1", delay_ms: int = DELAY_MS) -> bool:
    return bool(world.runner.run(scripts.return_host(world.keys, HOST, ticket, delay_ms, world.now_ms)))


@pytest.fixture
def gate(runner: ScriptRunner) -> Iterator[str]:
    """A server's gate that is open; gates stand above all crawls, so it is removed before and after."""
    runner.client.delete(gate_prefix(ADDRESS) + ADDRESS)
    yield ADDRESS
    runner.client.delete(gate_prefix(ADDRESS) + ADDRESS)


@pytest.fixture
def crawl(crawl_name: str) -> CrawlKeys:
    return CrawlKeys(crawl_name)


# --- host records


def test_robots_rules_are_kept_per_authority_until_they_expire(world: ScriptWorld) -> None:
    """Rules are stored byte by byte in their field, with the host record's expiry."""
    put(world, HOST, rules=b"\x00\n=rules\xff")
    until = f"{world.now_ms + 86_400_000}\n".encode()
    assert world.client.hgetall(world.keys.host + HOST) == {b"robots:https": until + b"\x00\n=rules\xff"}
    assert 86_000_000 < world.client.pttl(world.keys.host + HOST) <= 86_400_000


def test_rules_are_kept_beyond_their_time_each_with_its_own(world: ScriptWorld) -> None:
    """Another authority's rules do not make these look younger; the record outlives both."""
    for field, expiry_ms in (("robots:a", 1_000), ("robots:b", 5_000)):
        world.runner.run(
            scripts.put_robots(world.keys, HOST, field, b"rules", expiry_ms, 3, world.now_ms, stale_ms=60_000)
        )
    stored = world.client.hgetall(world.keys.host + HOST)
    assert {name: int(value.split(b"\n")[0]) - world.now_ms for name, value in stored.items()} == {
        b"robots:a": 1_000,
        b"robots:b": 5_000,
    }
    assert 60_000 < world.client.pttl(world.keys.host + HOST) <= 65_000


def test_bytes_of_rules_are_bounded_and_counted_exactly(world: ScriptWorld) -> None:
    """The oldest records go when the rules are too many bytes; a longer or shorter file is counted as it is."""
    bytes_max = 3_000
    for number in range(40):
        world.now_ms += 1
        rules = bytes(200 * (1 + number % 7))
        call = scripts.put_robots(
            world.keys, f"h{number % 9}", "robots:x", rules, 9_000, 99, world.now_ms, bytes_max=bytes_max
        )
        world.runner.run(call)
        sizes = {name: int(value) for name, value in world.client.hgetall(world.keys.rules).items()}
        total = sizes.pop(b"")
        held = {host: world.client.hstrlen(world.keys.host + host, "robots:x") for host in records(world)}
        assert total == sum(sizes.values()) == sum(held.values()) <= bytes_max
    assert f"h{39 % 9}" in held


def test_record_in_use_loses_its_rules_only(world: ScriptWorld) -> None:
    """A host that may not be asked yet keeps its next time, however little room there is for rules."""
    world.client.hset(world.keys.host + "busy", mapping={"next": world.now_ms + 9_000, "robots:y": "1\nrules"})
    call = scripts.put_robots(world.keys, "busy", "robots:x", bytes(500), 9_000, 9, world.now_ms, bytes_max=100)
    assert world.runner.run(call) == 1
    assert set(world.client.hgetall(world.keys.host + "busy")) == {b"next"}
    assert world.client.hgetall(world.keys.rules) == {b"": b"0"}


def test_least_recently_written_records_are_evicted(world: ScriptWorld) -> None:
    """Above the cap the oldest goes; one that was written again is young."""
    for host in ("1.example", "2.example", "3.example"):
        assert put(world, host) == 0
        world.advance(1)
    assert put(world, "1.example") == 0
    world.advance(1)
    assert put(world, "4.example") == 1
    assert records(world) == {"1.example", "3.example", "4.example"}


def test_records_in_use_are_not_evicted(world: ScriptWorld) -> None:
    """A host that is ready, busy, or whose next time lies ahead keeps its record; the cap gives way."""
    world.admit("ready.example", "busy.example", "resting.example")
    for host in ("ready.example", "busy.example", "resting.example"):
        put(world, host)
        world.advance(1)
    world.take()
    world.give_back(1)
    world.acknowledge(3, delay_ms=50_000)
    assert put(world, "new.example") == 0
    assert records(world) == {"ready.example", "busy.example", "resting.example", "new.example"}
    world.advance(50_001)
    assert put(world, "newer.example") == 2
    assert records(world) == {"ready.example", "busy.example", "newer.example"}


def test_cap_is_kept_after_records_expired_by_themselves(world: ScriptWorld) -> None:
    """Records that are gone leave the list of records when their turn comes."""
    for number in range(3):
        put(world, f"{number}.example")
        world.client.delete(f"{world.keys.host}{number}.example")
        world.advance(1)
    for number in range(3, 30):
        put(world, f"{number}.example")
        world.advance(1)
    assert records(world) == {f"{number}.example" for number in (27, 28, 29)}
    assert world.client.zcard(world.keys.records) == 3


# --- lending


def test_lent_host_is_given_to_nobody_else(world: ScriptWorld) -> None:
    """While a host is lent the owner takes nothing of it another ticket waits; then it has its delay."""
    world.admit(HOST)
    assert borrow(world) == (True, 0)
    assert world.take_seqs() == []
    assert borrow(world, "t2") == (False, DEADLINE_MS)
    world.advance(3_000)
    assert give_back(world)
    assert world.host_state(HOST) == f"ready {DELAY_MS}"
    world.advance(DELAY_MS)
    assert world.take_seqs() == [1]
    world.check()


def test_host_without_urls_can_be_borrowed(world: ScriptWorld) -> None:
    """A host nobody waits for is lent too; a URL that comes meanwhile waits, and after it for the delay."""
    assert borrow(world) == (True, 0)
    world.admit(HOST)
    assert world.host_state(HOST) == f"ready {DEADLINE_MS}"
    world.advance(1_000)
    assert give_back(world)
    assert world.host_state(HOST) == f"ready {DELAY_MS}"
    assert world.next_ms(HOST) == world.now_ms + DELAY_MS


def test_returned_host_without_urls_keeps_its_delay(world: ScriptWorld) -> None:
    """A URL that comes after the return waits for what is left of the delay."""
    borrow(world)
    give_back(world)
    world.advance(400)
    world.admit(HOST)
    assert world.host_state(HOST) == f"ready {DELAY_MS - 400}"


@pytest.mark.parametrize("waiting", [True, False], ids=["urls-waiting", "none-waiting"])
def test_resting_host_is_lent_for_when_its_time_has_come(world: ScriptWorld, waiting: bool) -> None:
    """The start is the host's next time; given back before it, the host is due then as before."""
    world.admit(HOST)
    world.take()
    (world.give_back if waiting else world.acknowledge)(1, delay_ms=9_000)
    assert borrow(world) == (True, 9_000)
    world.advance(2_000)
    assert borrow(world) == (True, 7_000)
    assert borrow(world, "t2") == (False, 7_000 + DEADLINE_MS)
    assert world.take_seqs(horizon_ms=9_000) == []
    assert give_back(world)
    assert world.next_ms(HOST) == world.now_ms + 7_000
    assert world.host_state(HOST) == ("ready 7000" if waiting else "")


def test_host_that_rests_for_long_is_not_lent(world: ScriptWorld) -> None:
    """A start beyond what the borrower waits for is told, and nothing is changed."""
    world.admit(HOST)
    world.take()
    world.give_back(1, delay_ms=AHEAD_MS + 1)
    before = world.check()
    assert borrow(world) == (False, AHEAD_MS + 1)
    assert world.check() == before


def test_busy_host_pauses_for_who_asked(world: ScriptWorld) -> None:
    """However soon the owner takes a host again, a borrower that asks each second gets it after the fetch."""
    world.admit(HOST, HOST)
    world.take()
    assert borrow(world) == (False, 1_000)
    world.advance(900)
    world.acknowledge(1, delay_ms=0)
    assert world.take_seqs(horizon_ms=500) == []
    world.advance(100)
    assert borrow(world) == (True, PAUSE_MS - 1_000)
    world.advance(PAUSE_MS)
    assert give_back(world)
    world.advance(DELAY_MS)
    assert world.take_seqs() == [2]
    world.check()


def test_who_asked_and_never_came_back_costs_one_pause(world: ScriptWorld) -> None:
    """A host that paused for nobody goes on by itself."""
    world.admit(HOST, HOST)
    world.take()
    borrow(world)
    world.acknowledge(1, delay_ms=0)
    world.advance(PAUSE_MS)
    assert world.take_seqs() == [2]


def test_second_connection_is_not_lent_beside_the_first(runner: ScriptRunner, crawl_name: str) -> None:
    """With two connections too a host is lent alone, and starts nothing new while someone asks."""
    world = ScriptWorld(runner, crawl_name, connections=2)
    world.claim()
    world.admit(HOST, HOST)
    world.take()
    assert borrow(world) == (False, 1_000)
    world.advance(DELAY_MS)
    assert world.take_seqs() == []
    world.acknowledge(1, delay_ms=20 * DELAY_MS)
    assert world.host_state(HOST) == f"ready {20 * DELAY_MS}"
    world.check()


def test_lost_replies_of_borrow_and_return(world: ScriptWorld) -> None:
    """The same ticket gets the same answer, and changes nothing more."""
    world.admit(HOST)
    assert borrow(world) == (True, 0)
    before = world.check()
    world.advance(100)
    assert borrow(world) == (True, 0)
    assert world.check() == before
    assert give_back(world)
    before = world.check()
    world.advance(100)
    assert not give_back(world)
    assert world.check() == before
    assert not give_back(world, "never-borrowed")


def test_borrower_that_died_blocks_nothing_for_ever(world: ScriptWorld) -> None:
    """After the deadline the host is due again by itself, and the partition can be released meanwhile."""
    world.admit(HOST)
    borrow(world)
    assert world.runner.run(scripts.release_partition(world.keys, world.who)) == 1
    world.claim("b")
    world.advance(DEADLINE_MS - 1)
    assert world.take_seqs() == []
    world.advance(1)
    assert world.take_seqs() == [1]
    assert give_back(world), "a late return is still heard"
    assert world.host_state(HOST) == "busy 1"
    world.acknowledge(1, delay_ms=0)
    assert world.next_ms(HOST) == world.now_ms + DELAY_MS
    world.check()


def test_lent_host_stays_lent_over_claim_and_reconcile(world: ScriptWorld) -> None:
    """A takeover of the partition does not end the borrower's one connection."""
    world.admit(HOST, "b.example")
    borrow(world)
    world.reconcile()
    world.claim("b", "token-a")
    assert world.host_state(HOST) == f"ready {DEADLINE_MS}"
    assert give_back(world)
    assert world.host_state(HOST) == f"ready {DELAY_MS}"


def test_lent_hosts_record_is_kept(world: ScriptWorld) -> None:
    """Neither expiry nor eviction forgets that a host is lent."""
    put(world, HOST)
    world.client.pexpire(world.keys.host + HOST, 5_000)
    borrow(world)
    assert world.client.pttl(world.keys.host + HOST) > DEADLINE_MS
    world.advance(1)
    assert put(world, "b.example", records_max=1) == 0
    assert HOST in records(world)


# --- gates


def test_gate_grants_starts_a_gap_apart(runner: ScriptRunner, gate: str) -> None:
    """The first starts at once, the next ones a gap apart, one after a pause at once again."""
    granted = [runner.run(passing(gate, "a", now)) for now in (5_000, 5_000, 5_100, 9_000)]
    assert granted == [(5_000, True), (5_500, True), (6_000, True), (9_000, True)]


def test_gate_grants_no_start_before_the_one_wanted(runner: ScriptRunner, gate: str) -> None:
    """A start wanted for later is granted for then, and the gap counts from there."""
    assert runner.run(passing(gate, "a", 5_000, earliest=5_400)) == (5_400, True)
    assert runner.run(passing(gate, "a", 5_000)) == (5_900, True)


def test_another_node_keeps_clear_of_late_starts(runner: ScriptRunner, gate: str) -> None:
    """Whoever was granted the last start may have the next one after the gap; others when that may not be late."""
    asked = [("a", 5_000), ("a", 5_000), ("b", 5_000), ("b", 5_000), ("a", 5_000)]
    granted = [runner.run(passing(gate, node, now))[0] for node, now in asked]
    assert granted == [5_000, 5_500, 6_000 + LATE_MS, 6_500 + LATE_MS, 7_000 + 2 * LATE_MS]


def test_long_delay_of_a_start_is_kept_clear_of(runner: ScriptRunner, gate: str) -> None:
    """A start that may be very late is not forgotten over the next one of the same node."""
    runner.run(passing(gate, "a", 5_000, late=9_000))
    assert runner.run(passing(gate, "a", 5_000))[0] == 5_500
    assert runner.run(passing(gate, "b", 5_000))[0] == 5_000 + GAP_MS + 9_000


def test_missed_start_is_granted_at_once_where_nobody_else_came(runner: ScriptRunner, gate: str) -> None:
    """Those that the node was granted after it stand; new ones, and others, keep clear of it."""
    for _ in range(3):
        runner.run(passing(gate, "a", 5_000))
    assert runner.run(passing(gate, "a", 6_200, missed=5_000))[0] == 6_200
    assert runner.run(passing(gate, "a", 6_200))[0] == 6_700
    assert runner.run(passing(gate, "b", 6_200))[0] == 7_200 + LATE_MS
    assert runner.run(passing(gate, "a", 6_200, missed=6_700))[0] == 7_700 + 2 * LATE_MS, "b has come since"


def test_missed_start_of_a_forgotten_gate_is_granted_at_once(runner: ScriptRunner, gate: str) -> None:
    """As anybody's."""
    assert runner.run(passing(gate, "a", 6_200, missed=5_000))[0] == 6_200


def test_gate_is_forgotten_when_it_is_past(runner: ScriptRunner, gate: str) -> None:
    """A gate that delays nobody any more takes no memory."""
    runner.run(passing(gate, "a", 0))
    assert 0 < runner.client.pttl(gate_prefix(gate) + gate) <= GAP_MS + LATE_MS + 1_000


def test_longer_of_two_gaps_counts(runner: ScriptRunner, gate: str) -> None:
    """Whoever starts last, and also for a turn; each keeps its own gap to its own starts."""
    long_ms = 3 * GAP_MS

    def wide(now: int, ahead: int = 100_000) -> tuple[int, bool]:
        return runner.run(passing(gate, "wide", now, gates=[(gate, long_ms)], ahead=ahead))

    assert wide(5_000) == (5_000, True)
    assert runner.run(passing(gate, "b", 5_100)) == (5_000 + long_ms + LATE_MS, True)
    assert runner.run(passing(gate, "b", 6_700)) == (6_600 + GAP_MS, True)
    assert wide(7_200) == (7_100 + long_ms + LATE_MS, True)
    assert wide(9_000) == (8_700 + long_ms, True)
    runner.client.delete(gate_prefix(gate) + gate)
    assert runner.run(passing(gate, "b", 5_000)) == (5_000, True)
    assert wide(5_100, ahead=500) == (5_000 + long_ms + LATE_MS, False)
    assert runner.run(passing(gate, "b", 5_600, ahead=500, had_turn=True)) == (5_600, True), "a turn takes no start"


def test_start_is_remembered_for_the_gap_of_others(runner: ScriptRunner, gate: str) -> None:
    """One that another crawl must keep clear of for long."""
    since_s = time.monotonic()
    runner.run(passing(gate, "a", 0, kept=60_000))
    left_ms = runner.client.pttl(gate_prefix(gate) + gate)
    passed_ms = 1_000 * (time.monotonic() - since_s)  # a second and more, on a busy machine
    assert 60_000 - passed_ms < left_ms <= 61_000


def test_many_askers_at_once_get_distinct_starts(runner: ScriptRunner, gate: str) -> None:
    """However many ask together, every start is granted once, exactly a gap apart: none is lost."""
    askers, each = 8, 25
    calls = [passing(gate, "a", 5_000)] * each
    with ThreadPoolExecutor(askers) as pool:
        answers = [answer for part in pool.map(runner.run_all, [calls] * askers) for answer in part]
    starts = sorted(start for start, _ in answers)
    assert starts == [5_000 + GAP_MS * number for number in range(askers * each)]


def test_start_far_ahead_is_not_granted(runner: ScriptRunner, gate: str) -> None:
    """Who wants it gets a turn, a gap after the one before; the start stays free until then."""
    near = [runner.run(passing(gate, "a", 5_000, ahead=600)) for _ in range(4)]
    assert near == [(5_000, True), (5_500, True), (6_000, False), (6_500, False)]
    assert runner.run(passing(gate, "a", 5_900, ahead=600, had_turn=True)) == (6_000, True)


def test_nobody_goes_before_those_in_line(runner: ScriptRunner, gate: str) -> None:
    """But for who had a turn; the line ends when its last turn is past."""
    for _ in range(3):
        runner.run(passing(gate, "a", 5_000, ahead=0))
    assert runner.run(passing(gate, "a", 5_600, ahead=0)) == (6_500, False)
    assert runner.run(passing(gate, "a", 5_700, ahead=0, had_turn=True)) == (5_700, True)
    assert runner.run(passing(gate, "a", 6_700, ahead=0)) == (7_000, False)
    assert runner.run(passing(gate, "a", 7_500, ahead=0)) == (7_500, True)


def test_turn_that_comes_too_early_is_put_off(runner: ScriptRunner, gate: str) -> None:
    """To the end of the line, where turns of different nodes are further apart."""
    turns = [runner.run(passing(gate, node, 5_000, ahead=0)) for node in ("a", "a", "b", "b")]
    assert turns == [(5_000, True), (5_500, False), (6_000 + LATE_MS, False), (6_500 + LATE_MS, False)]
    assert runner.run(passing(gate, "a", 5_400, ahead=0, had_turn=True)) == (7_000 + 2 * LATE_MS, False)


def test_turns_that_nobody_comes_for_are_not_waited_for(runner: ScriptRunner, gate: str) -> None:
    """Nodes forget them when they end: a server that was idle for a gap is anybody's."""
    for _ in range(10):
        runner.run(passing(gate, "a", 5_000, ahead=0))
    idle_ms = 5_000 + 2 * GAP_MS + LATE_MS
    assert runner.run(passing(gate, "b", idle_ms - 1, ahead=0))[1] is False
    assert runner.run(passing(gate, "b", idle_ms, ahead=0)) == (idle_ms, True)
    assert runner.run(passing(gate, "b", idle_ms, ahead=0))[1] is False


@pytest.mark.parametrize(("node", "start"), [("a", 5_500), ("b", 5_500 + LATE_MS)])
def test_turns_of_all_nodes_lead_to_starts_alike(runner: ScriptRunner, gate: str, node: str, start: int) -> None:
    """What is near is when the server is free, though others than its last node must wait longer then."""
    runner.run(passing(gate, "a", 5_000, ahead=0))
    assert runner.run(passing(gate, node, 5_450, ahead=49, had_turn=True))[1] is False
    assert runner.run(passing(gate, node, 5_450, ahead=50, had_turn=True)) == (start, True)


def test_start_keeps_the_gaps_of_all_its_gates(runner: ScriptRunner, crawl: CrawlKeys) -> None:
    """The latest of them counts, and moves all of them on."""
    pld, group = ("pld example.com", 1_000), ("group wiki", 300)

    def granted(*gates: tuple[str, int]) -> tuple[int, bool]:
        return runner.run(passing("", "a", 5_000, prefix=crawl.space, gates=gates))

    assert (granted(pld), granted(group)) == ((5_000, True), (5_000, True))
    assert granted(pld, group) == (6_000, True)
    assert granted(group) == (6_300, True)
    assert granted(pld) == (7_000, True)
    assert granted(("pld example.org", 1_000)) == (5_000, True)


def test_who_must_wait_for_one_gate_takes_no_start_of_another(runner: ScriptRunner, crawl: CrawlKeys) -> None:
    """It stands in line at the one that is busy alone."""
    pld, group = ("pld example.com", 2_000), ("group wiki", 300)

    def passed(now: int, *gates: tuple[str, int], had_turn: bool = False) -> tuple[int, bool]:
        return runner.run(passing("", "a", now, prefix=crawl.space, gates=gates, ahead=100, had_turn=had_turn))

    assert passed(5_000, pld) == (5_000, True)
    assert passed(5_000, pld, group) == (7_000, False)
    assert [passed(at_ms, group) for at_ms in (5_000, 5_300)] == [(5_000, True), (5_300, True)]
    assert passed(5_000, pld) == (9_000, False), "there is one in line"
    assert passed(7_000, pld, group, had_turn=True) == (7_000, True)
    assert passed(7_000, group)[1] is False


def test_turn_at_one_gate_is_no_longer_for_another_that_is_busy(runner: ScriptRunner, crawl: CrawlKeys) -> None:
    """Else one URL of a crowded domain would send all others of its small group to the end of the domain's line."""
    pld, group = ("pld example.com", 1_000), ("group wiki", 1_000)

    def passed(*gates: tuple[str, int]) -> tuple[int, bool]:
        return runner.run(passing("", "a", 5_000, prefix=crawl.space, gates=gates, ahead=100))

    assert (passed(pld), passed(group)) == ((5_000, True), (5_000, True))
    assert [passed(pld)[0] for _ in range(30)][-1] == 35_000
    assert passed(pld, group) == (36_000, False)
    assert passed(group) == (7_000, False)


def test_start_that_is_given_up_at_several_gates_is_free_again(runner: ScriptRunner, crawl: CrawlKeys) -> None:
    """Unless another node came to one of them."""
    gates = (("pld example.com", 1_000), ("group wiki", 300))

    def passed(node: str, earliest: int, missed: int = 0) -> tuple[int, bool]:
        return runner.run(passing("", node, 5_000, prefix=crawl.space, gates=gates, earliest=earliest, missed=missed))

    assert passed("a", 5_000) == (5_000, True)
    assert passed("a", 5_400, missed=5_000) == (5_400, True)
    assert runner.run(passing("", "b", 5_000, prefix=crawl.space, gates=gates[1:])) == (5_700 + LATE_MS, True)
    assert passed("a", 5_500, missed=5_400) == (6_400, True)


def passing(
    gate: str,
    node: str,
    now: int,
    *,
    prefix: str = "",
    gates: Sequence[tuple[str, int]] = (),
    earliest: int = 0,
    late: int = LATE_MS,
    missed: int = 0,
    ahead: int = 100_000,
    had_turn: bool = False,
    kept: int = 0,
) -> Call[tuple[int, bool]]:
    return scripts.pass_gates(
        prefix or gate_prefix(gate),
        gates or [(gate, GAP_MS)],
        earliest,
        node,
        late_ms=late,
        ahead_ms=ahead,
        missed_ms=missed,
        had_turn=had_turn,
        kept_ms=kept,
        now_ms=now,
    )


# --- nodes


def test_nodes_learn_of_each_other(runner: ScriptRunner, crawl: CrawlKeys) -> None:
    """A beat brings the reports of all that live; silence of a lease hides a node, ten leases forget it."""

    def beat(node: str, now_ms: int, **options: Any) -> dict[str, str]:
        report = json.dumps({"pages": now_ms})
        call = scripts.beat_node(crawl, node, report, LEASE_MS, now_ms=now_ms, **options)
        told: dict[str, str] = runner.run(call).reports
        return told

    assert beat("a", 1_000_000) == {"a": '{"pages": 1000000}'}
    assert set(beat("b", 1_000_001)) == {"a", "b"}
    assert set(beat("b", 1_000_000 + LEASE_MS)) == {"a", "b"}
    assert set(beat("b", 1_000_001 + LEASE_MS)) == {"b"}
    assert runner.client.hlen(crawl.nodes) == 2
    assert set(beat("b", 1_000_000 + 10 * LEASE_MS)) == {"b"}
    assert runner.client.hkeys(crawl.nodes) == runner.client.zrange(crawl.beats, 0, -1) == [b"b"]
    assert beat("b", 1_000_000 + 10 * LEASE_MS, leave=True) == {}
    assert not runner.client.exists(crawl.nodes)


# --- start requests


def claim_start(runner: ScriptRunner, crawl: CrawlKeys, node: str, now_ms: int, **options: bool) -> int:
    call = scripts.claim_start(crawl, node, "digest", LEASE_MS, now_ms=now_ms, **options)
    return int(runner.run(call))


def test_one_node_at_a_time_runs_the_start(runner: ScriptRunner, crawl: CrawlKeys) -> None:
    """A start is another's until its lease has run out; a renewal keeps it; who lost it cannot end it."""
    assert claim_start(runner, crawl, "a", 1_000) == 1
    assert claim_start(runner, crawl, "b", 1_000) == 0
    assert claim_start(runner, crawl, "a", 1_000 + LEASE_MS - 1) == 1
    assert claim_start(runner, crawl, "b", 1_000 + LEASE_MS) == 0
    assert claim_start(runner, crawl, "b", 1_000 + 2 * LEASE_MS) == 1
    assert claim_start(runner, crawl, "a", 1_001 + 2 * LEASE_MS, done=True) == 0
    assert claim_start(runner, crawl, "a", 1_001 + 2 * LEASE_MS, undone=True) == 0
    assert claim_start(runner, crawl, "b", 1_002 + 2 * LEASE_MS, done=True) == 2


def test_done_start_is_never_run_again(runner: ScriptRunner, crawl: CrawlKeys) -> None:
    """Done stays done for every node, and leaves the word that the crawl is finished alone."""
    claim_start(runner, crawl, "a", 1_000)
    assert claim_start(runner, crawl, "a", 1_001, done=True) == 2
    runner.client.hset(crawl.crawl, "finished", "1")
    for node in ("a", "b"):
        assert claim_start(runner, crawl, node, 9_000_000) == 2
        assert claim_start(runner, crawl, node, 9_000_000, undone=True) == 2
    assert runner.client.hget(crawl.crawl, "finished") == b"1"


def test_starts_of_many_runs_do_not_pile_up(runner: ScriptRunner, crawl: CrawlKeys) -> None:
    """The latest that are done are remembered, those of dead nodes are not, and one that runs stays."""

    def claim(digest: str, node: str, now_ms: int, **options: bool) -> int:
        return int(runner.run(scripts.claim_start(crawl, node, digest, LEASE_MS, now_ms=now_ms, **options)))

    claim("dead", "x", 1_000)
    for number in range(100):
        now_ms = 10 * LEASE_MS + number
        claim("runs", "y", now_ms)
        claim(f"d{number}", "a", now_ms)
        assert claim(f"d{number}", "a", now_ms, done=True) == 2
    starts = {name.decode() for name in runner.client.hkeys(crawl.crawl)}
    assert starts == {"start:runs", *(f"start:d{number}" for number in range(35, 100))}


def test_start_given_up_is_free_at_once(runner: ScriptRunner, crawl: CrawlKeys) -> None:
    """A node that closes in the middle of its start leaves it to the next one."""
    claim_start(runner, crawl, "a", 1_000)
    assert claim_start(runner, crawl, "a", 1_001, undone=True) == 0
    assert claim_start(runner, crawl, "b", 1_001) == 1


def test_new_start_takes_back_that_the_crawl_is_finished(runner: ScriptRunner, crawl: CrawlKeys) -> None:
    """A start never done before means there is something to crawl again."""
    runner.client.hset(crawl.crawl, "finished", "1")
    assert claim_start(runner, crawl, "a", 1_000) == 1
    assert not runner.client.hexists(crawl.crawl, "finished")
