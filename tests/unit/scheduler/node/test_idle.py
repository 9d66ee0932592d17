"""A node that waits looks at what has something to do, however many partitions it owns (steps 4 to 8)."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.keys import CRAWLS, CrawlKeys
from bigcrawl.scheduler.node.control import CHECKPOINT, WATCHED
from bigcrawl.scheduler.node.loops.beat import BEAT_ASLEEP_S, BEAT_FED_S, BEAT_S, Beat
from bigcrawl.scheduler.node.loops.loop import HASTY_ROUNDS
from bigcrawl.scheduler.node.loops.pump import PUMP_PATIENCE_MS, Pump
from bigcrawl.scheduler.node.loops.steer import Steer
from bigcrawl.scheduler.node.loops.watch import Watch
from bigcrawl.scheduler.owner.claiming.looks import SLOW_LOOK_MS
from bigcrawl.scheduler.owner.durability import Durability
from bigcrawl.scheduler.owner.hot.hot_set import AwayHosts
from bigcrawl.scheduler.owner.step_schedule import StepSchedule
from tests.support.running.stepped_time import run_stepped
from tests.unit.scheduler.world import queued, world_of_one_clock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from bigcrawl.scheduler.node.loops.loop import Loop
    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.held import HeldUrl
    from tests.unit.scheduler.world import World

ASKED = (
    (StepSchedule, "wants_step"),
    (StepSchedule, "wants_outcomes"),
    (StepSchedule, "next_check_ms"),
    (Durability, "due_ms"),
    (AwayHosts, "should_poll"),
)
WAITS = {"host_delay": 900, "in_process_max": 4}
WATCHED_S = 60
TRIPS_MAX = 2.5  # a second
NEAR_WHOLE = {*range(990, 1000), *range(10)}  # ms of a second
BEATEN_MS = 5_000  # a heartbeat comes sooner


def count_questions(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what partitions are asked, and how often Redis is asked about one."""
    asked: Counter[str] = Counter()

    def counted(name: str, function: Any) -> Any:
        def ask(*args: Any, **named: Any) -> Any:
            asked[name] += 1
            return function(*args, **named)

        return ask

    for owner, name in ASKED:
        monkeypatch.setattr(owner, name, counted(name, getattr(owner, name)))
    monkeypatch.setattr(scripts, "look_partition", counted("look_partition", scripts.look_partition))
    return asked


async def fetched(w: World, node: Node, seconds: float) -> list[HeldUrl]:
    """What is due within a time, fetched."""
    found = []
    for _ in range(round(1000 * seconds / PUMP_PATIENCE_MS)):
        while (held := node.handout.buffer.pop()) is not None:
            found.append(held)
            w.end(node, held)
        await asyncio.sleep(PUMP_PATIENCE_MS / 1000)
    return found


@pytest.mark.parametrize("partitions", [16, 256])
def test_node_that_waits_for_a_host_asks_no_partition_without_a_reason(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    """Not as often as it has partitions; each is looked at now and then, in case nobody was told of something."""
    clock = ManualClock()

    async def scenario() -> tuple[int, Counter[str]]:
        settings = {**WAITS, "partitions": partitions}
        async with world_of_one_clock(clock, tmp_path, crawl_name, redis_url, **settings) as w:
            node = w.new_node()
            await node.start()
            for url in queued("http://a.example/1", "http://a.example/2"):
                node.offer(url)
            begun = len(await fetched(w, node, 120))
            asked = count_questions(monkeypatch)
            await asyncio.sleep(WATCHED_S)
            await node.runner.stop()
            return begun, asked

    begun, asked = run_stepped(clock, scenario())
    assert begun == 1, "its host rests"
    looks = asked.pop("look_partition", 0)
    assert looks <= partitions * WATCHED_S * 1000 / SLOW_LOOK_MS + partitions // 16 + WATCHED_S
    assert all(count <= 2 * WATCHED_S + looks for count in asked.values()), asked


def test_node_that_waits_makes_few_round_trips_and_obeys_within_a_second(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """It reports every few seconds, and reads orders and arrivals in one round trip a second."""
    clock = ManualClock()

    async def scenario() -> tuple[int, list[int]]:
        async with world_of_one_clock(clock, tmp_path, crawl_name, redis_url, **WAITS, partitions=16) as w:
            node = w.new_node()
            await node.start()
            for url in queued("http://a.example/1", "http://a.example/2"):
                node.offer(url)
            await fetched(w, node, 120)
            before = node.parts.crawl.client.round_trips
            await asyncio.sleep(WATCHED_S)
            trips = node.parts.crawl.client.round_trips - before
            key, waits_ms = CrawlKeys(crawl_name).control, []
            for number in range(1, 6):
                await asyncio.sleep(0.3)
                await w.client.command("HSET", key, CHECKPOINT, number)
                since_ms = clock.monotonic_ms()
                while node.parts.control.checkpoint != number:  # noqa: ASYNC110 - what is read sets no event
                    await asyncio.sleep(0.05)
                waits_ms.append(clock.monotonic_ms() - since_ms)
            await node.runner.stop()
            return trips, waits_ms

    trips, waits_ms = run_stepped(clock, scenario())
    assert trips <= TRIPS_MAX * WATCHED_S
    assert max(waits_ms) <= 1_000


def test_loops_of_a_node_that_waits_wake_with_whole_seconds(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the process and Redis wake once for all of them."""
    clock = ManualClock()
    turns_ms: list[int] = []
    loops: tuple[type[Loop], ...] = (Beat, Steer, Watch)
    for loop in loops:
        monkeypatch.setattr(loop, "turn", _recorded(loop.turn, clock, turns_ms))

    async def scenario() -> None:
        async with world_of_one_clock(clock, tmp_path, crawl_name, redis_url, **WAITS, partitions=16) as w:
            node = w.new_node()
            await node.start()
            for url in queued("http://a.example/1", "http://a.example/2"):
                node.offer(url)
            await fetched(w, node, 120)
            turns_ms.clear()
            await asyncio.sleep(WATCHED_S)
            await node.runner.stop()

    run_stepped(clock, scenario())
    assert len(turns_ms) >= 2 * WATCHED_S
    assert {turn_ms % 1000 for turn_ms in turns_ms[5:]} <= NEAR_WHOLE


def _recorded(turn: Callable[[Any], Awaitable[float]], clock: ManualClock, turns_ms: list[int]) -> Any:
    async def recorded(self: object) -> float:
        turns_ms.append(clock.monotonic_ms())
        return await turn(self)

    return recorded


def test_node_that_waits_sends_as_few_commands_for_many_partitions_as_for_few(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One command renews all leases, and no partition is written or read alone. A survey is shared by its readers."""
    clock, partitions = ManualClock(), 256
    sent: Counter[str] = Counter()
    pipeline, renew, sums = RedisClient._pipeline, scripts.renew_leases, scripts.sum_partitions
    renew_blocks = scripts.renew_block_leases

    async def counted(client: RedisClient, rows: Sequence[Any], *, raise_errors: bool) -> list[Any]:
        sent["commands"] += len(rows)
        return await pipeline(client, rows, raise_errors=raise_errors)

    def renewed(keys: Any, *rest: Any) -> Any:
        sent["partitions"] += len(keys)
        return renew(keys, *rest)

    def blocks_renewed(*args: Any) -> Any:
        sent["renewals"] += 1
        return renew_blocks(*args)

    def summed(keys: Any) -> Any:
        sent["partitions"] += len(keys)
        return sums(keys)

    async def scenario() -> None:
        async with world_of_one_clock(clock, tmp_path, crawl_name, redis_url, **WAITS, partitions=partitions) as w:
            node = w.new_node()
            await node.start()
            for url in queued("http://a.example/1", "http://a.example/2"):
                node.offer(url)
            await fetched(w, node, 120)
            monkeypatch.setattr(RedisClient, "_pipeline", counted)
            monkeypatch.setattr(scripts, "renew_leases", renewed)
            monkeypatch.setattr(scripts, "renew_block_leases", blocks_renewed)
            monkeypatch.setattr(scripts, "sum_partitions", summed)
            until_ms = clock.monotonic_ms() + 1_000 * WATCHED_S
            while clock.monotonic_ms() < until_ms:
                await node.progress.survey_lately()  # as the line of progress does
                await asyncio.sleep(10)
            await node.runner.stop()

    run_stepped(clock, scenario())
    assert sent["commands"] <= 5 * WATCHED_S
    assert 2 <= sent["renewals"] <= WATCHED_S // 5
    assert sent["partitions"] <= partitions


def test_node_whose_crawl_has_used_up_its_speed_sleeps(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether pages wait for the next start, or a robots.txt does: then its page is in nobody's buffer."""
    clock = ManualClock()
    turns_ms: list[int] = []
    monkeypatch.setattr(Pump, "turn", _recorded(Pump.turn, clock, turns_ms))

    async def scenario() -> int:
        settings = {"speed": "0.05/s", "robots": "obey", "partitions": 4}
        async with world_of_one_clock(clock, tmp_path, crawl_name, redis_url, **settings) as w:
            node = w.new_node()
            await node.start()
            for url in queued(*(f"http://h{number}.example/{page}" for number in range(6) for page in range(2))):
                node.offer(url)
            begun = len(await fetched(w, node, 60))
            turns_ms.clear()
            begun += len(await fetched(w, node, 10 * WATCHED_S))
            await node.runner.stop()
            assert len(w.web.asked) > 1
            return begun

    assert run_stepped(clock, scenario()) > 1
    assert len(turns_ms) <= 3 * 10 * WATCHED_S


def test_leases_that_end_at_different_times_are_renewed_together(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Redis pays for each second in which it writes. Where it writes a report, they are renewed sooner."""

    async def scenario() -> list[int]:
        async with world_of_one_clock(ManualClock(), tmp_path, crawl_name, redis_url, partitions=3) as w:
            node = await w.joined()
            looks, now_ms = node.ownership.looks, w.clock.monotonic_ms()
            await looks.poll_and_renew(now_ms, holds_urls=False, sees_all=True)
            for partition, later_ms in ((1, 5_000), (2, 10_000)):
                looks._renewed.record_now([node.ownership.owned[partition]], now_ms + later_ms)
            await looks.poll_and_renew(now_ms + 12_000, holds_urls=False, sees_all=False)
            assert looks.renewed_ms == now_ms
            await looks.poll_and_renew(now_ms + 13_000, holds_urls=False, sees_all=False)
            renewed = [looks._renewed._times[owned] - now_ms for _, owned in sorted(node.ownership.owned.items())]
            await looks.poll_and_renew(now_ms + 19_000, holds_urls=False, sees_all=False, has_written=True)
            assert looks.renewed_ms == now_ms + 13_000
            await looks.poll_and_renew(now_ms + 20_000, holds_urls=False, sees_all=False, has_written=True)
            assert looks.renewed_ms == now_ms + 20_000
            return renewed

    assert asyncio.run(scenario()) == [13_000, 13_000, 13_000]


def test_partitions_that_are_read_each_second_keep_their_leases(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """A look at a partition renews no lease; the block's is renewed as often as that of a partition at rest."""
    clock = ManualClock()

    async def scenario() -> list[int]:
        async with world_of_one_clock(clock, tmp_path, crawl_name, redis_url, partitions=3) as w:
            node = await w.joined()
            looks, owned = node.ownership.looks, list(node.ownership.owned.values())
            left_ms: list[int] = []
            for _ in range(90):
                clock.advance(1_000)
                node.ownership.table.pending.to_look.update(owned)
                found = await looks.poll_and_renew(clock.monotonic_ms(), holds_urls=True, sees_all=False)
                assert len(found) == len(owned)
                views = await w.client.run([scripts.look_partition(each.keys) for each in owned])
                left_ms += [view.lease_left_ms for view in views]
            return left_ms

    assert min(run_stepped(clock, scenario())) >= 3 / 4 * 30_000 - 1_000


def test_nodes_with_nothing_to_do_report_seldom_and_in_the_same_seconds(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """As often as their leases allow with a wide margin: Redis pays for each second in which it writes."""
    clock = ManualClock()

    async def scenario() -> list[list[int]]:
        settings = {**WAITS, "partitions": 16, "close": "forever"}  # others soon end
        async with world_of_one_clock(clock, tmp_path, crawl_name, redis_url, **settings) as w:
            nodes = w.new_node(), w.new_node()
            for node in nodes:
                await node.start()
                await asyncio.sleep(1.3)
            clocks = [node.parts.crawl.client._crawl_clock for node in nodes]
            clocks[1]._offset_ms = clocks[0]._offset_ms  # Redis' own clock went on between their questions
            await asyncio.sleep(120)
            reports: list[list[int]] = [[], []]
            for _ in range(10 * WATCHED_S):
                await asyncio.sleep(0.1)
                for node, times in zip(nodes, reports, strict=True):
                    times.append(node.membership._beats)
            for node in nodes:
                await node.runner.stop()
            return reports

    reports = run_stepped(clock, scenario())
    changes = [[at for at, (before, now) in enumerate(pairwise(times)) if before != now] for times in reports]
    assert changes[0] == changes[1]
    gaps = [(after - before) / 10 for before, after in pairwise(changes[0])]
    assert sum(gaps) / len(gaps) > BEAT_FED_S
    assert max(gaps) <= BEAT_ASLEEP_S + BEAT_S


def test_node_that_gave_away_partitions_with_due_hosts_sleeps(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another node fetches those; this one has nothing due any more."""
    clock = ManualClock()
    turns_ms: list[int] = []

    async def scenario() -> int:
        settings = {"host_delay": 1, "in_process_max": 4, "partitions": 16, "close": "forever"}
        async with world_of_one_clock(clock, tmp_path, crawl_name, redis_url, **settings) as w:
            first = w.new_node()
            await first.start()
            for url in queued(*(f"http://h{number}.example/" for number in range(40))):
                first.offer(url)
            await asyncio.sleep(5)
            second = w.new_node()
            await second.start()
            begun = 0
            for _ in range(120):
                begun += len(await fetched(w, first, 0.4)) + len(await fetched(w, second, 0.4))
            assert len(first.ownership.owned) == len(second.ownership.owned) == 8
            monkeypatch.setattr(Pump, "turn", _recorded(Pump.turn, clock, turns_ms))
            await asyncio.sleep(WATCHED_S)
            for node in (first, second):
                await node.runner.stop()
            return begun

    assert run_stepped(clock, scenario()) == 40
    assert len(turns_ms) <= 2 * 1.2 * WATCHED_S, "each of the two looks once a second"


@pytest.mark.parametrize("event", ["a node comes", "somebody watches"])
def test_a_node_that_sleeps_reports_at_once_to_others(
    tmp_path: Path, crawl_name: str, redis_url: str, event: str
) -> None:
    """To a node that joins, of this crawl or another, and to somebody who begins to watch."""

    async def scenario() -> int:
        async with world_of_one_clock(ManualClock(), tmp_path, crawl_name, redis_url, partitions=1) as w:
            node = await w.joined()
            for _ in range(HASTY_ROUNDS + 1):
                await w.turn(node, 1)
            await node.steer.turn()
            await node.beat.turn()
            if event == "a node comes":
                await w.client.command("HSET", CRAWLS, "another/node", f"{10**14} 0 0 0 another")
            else:
                await w.client.command("HSET", CrawlKeys(crawl_name).control, WATCHED, 10**14)
            before = node.membership._beats
            w.clock.advance(1_000)
            await node.steer.turn()
            await node.beat.turn()
            return node.membership._beats - before

    assert asyncio.run(scenario()) == 1


def test_all_is_looked_at_when_a_node_has_gone(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """It may have died after it had put URLs into a partition, and before it gave notice."""

    async def scenario() -> tuple[bool, bool]:
        async with world_of_one_clock(ManualClock(), tmp_path, crawl_name, redis_url, partitions=1) as w:
            owner, other = await w.joined(), w.new_node()
            await other.membership.beat(other.parts.crawl.client, {})
            await owner.beat.turn()
            await owner.ownership.folding.step_due(starved=True)
            await owner.beat.turn()
            other.outbox.offer(queued("http://a.example/")[0], 0)
            await other.outbox.flush(other.parts.crawl.client)
            w.clock.advance(BEATEN_MS)
            await owner.beat.turn()
            before = owner.ownership.owned[0].inbox.has_urls
            await other.membership.leave(other.parts.crawl.client)
            w.clock.advance(BEATEN_MS)
            await owner.beat.turn()
            return before, owner.ownership.owned[0].inbox.has_urls

    assert asyncio.run(scenario()) == (False, True)


def test_an_order_wakes_the_loops_that_sleep(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Once; the fold makes the files durable, and the pump sees that the node is to end."""

    async def scenario() -> list[bool]:
        async with world_of_one_clock(ManualClock(), tmp_path, crawl_name, redis_url, partitions=1) as w:
            node = await w.joined()
            event, woken = node.ownership.table.pending.event, []
            for number in (0, 1, 1):
                await w.client.command("HSET", CrawlKeys(crawl_name).control, CHECKPOINT, number)
                w.clock.advance(1_000)
                event.clear()
                await node.steer.turn()
                woken.append(event.is_set())
            return woken

    assert asyncio.run(scenario()) == [True, True, False]
