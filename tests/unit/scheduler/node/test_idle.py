"""A node that waits looks at what has something to do, however many partitions it owns (steps 4 to 8)."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.node.control import CHECKPOINT
from bigcrawl.scheduler.node.loops.pump import PUMP_PATIENCE_MS
from bigcrawl.scheduler.owner.claiming.looks import SLOW_LOOK_MS
from bigcrawl.scheduler.owner.durability import Durability
from bigcrawl.scheduler.owner.hot.hot_set import AwayHosts
from bigcrawl.scheduler.owner.step_schedule import StepSchedule
from tests.support.running.stepped_time import run_stepped
from tests.unit.scheduler.world import queued, world_of_one_clock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.held import HeldUrl
    from tests.unit.scheduler.world import World

ASKED = (
    (StepSchedule, "wants_step"),
    (StepSchedule, "wants_outcomes"),
    (StepSchedule, "next_look_ms"),
    (Durability, "due_ms"),
    (AwayHosts, "wants_look"),
)
WAITS = {"host_delay": 900, "in_process_max": 4}
WATCHED_S = 60
TRIPS_MAX = 3  # a second
READ_MAX = 10  # times that each partition is read, or its lease renewed, in `WATCHED_S`


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
    """It reports every two seconds, and reads orders and arrivals in one round trip every 0.8 s."""
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


def test_node_that_waits_sends_as_few_commands_for_many_partitions_as_for_few(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One command renews all leases, and no partition is read for itself alone. A survey is shared by its readers."""
    clock, partitions = ManualClock(), 256
    sent: Counter[str] = Counter()
    pipeline, renew, sums = RedisClient._pipeline, scripts.renew_leases, scripts.sum_partitions

    async def counted(client: RedisClient, rows: Sequence[Any], *, raise_errors: bool) -> list[Any]:
        sent["commands"] += len(rows)
        return await pipeline(client, rows, raise_errors=raise_errors)

    def renewed(keys: Any, *rest: Any) -> Any:
        sent["partitions"] += len(keys)
        return renew(keys, *rest)

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
            monkeypatch.setattr(scripts, "sum_partitions", summed)
            until_ms = clock.monotonic_ms() + 1_000 * WATCHED_S
            while clock.monotonic_ms() < until_ms:
                await node.progress.survey_lately()  # as the line of progress does
                await asyncio.sleep(10)
            await node.runner.stop()

    run_stepped(clock, scenario())
    assert sent["commands"] <= 5 * WATCHED_S
    assert partitions <= sent["partitions"] <= READ_MAX * partitions


def test_all_is_looked_at_when_a_node_has_gone(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """It may have died after it had put URLs into a partition, and before it gave notice."""

    async def scenario() -> tuple[bool, bool]:
        async with world_of_one_clock(ManualClock(), tmp_path, crawl_name, redis_url, partitions=1) as w:
            owner, other = await w.joined(), w.new_node()
            await other.membership.beat(other.parts.crawl.client, {}, (), 0, ())
            await owner.beat.turn()
            await owner.ownership.folding.step_due(starved=True)
            await owner.beat.turn()
            other.outbox.offer(queued("http://a.example/")[0], 0)
            await other.outbox.flush(other.parts.crawl.client)
            w.clock.advance(2_000)
            await owner.beat.turn()
            before = owner.ownership.owned[0].inbox.has_urls
            await other.membership.leave(other.parts.crawl.client)
            w.clock.advance(2_000)
            await owner.beat.turn()
            return before, owner.ownership.owned[0].inbox.has_urls

    assert asyncio.run(scenario()) == (False, True)


def test_an_order_wakes_the_loops_that_sleep(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Once; the fold makes the files durable, and the pump sees that the node is to end."""

    async def scenario() -> list[bool]:
        async with world_of_one_clock(ManualClock(), tmp_path, crawl_name, redis_url, partitions=1) as w:
            node = await w.joined()
            news, woken = node.ownership.table.news.event, []
            for number in (0, 1, 1):
                await w.client.command("HSET", CrawlKeys(crawl_name).control, CHECKPOINT, number)
                w.clock.advance(1_000)
                news.clear()
                await node.steer.turn()
                woken.append(news.is_set())
            return woken

    assert asyncio.run(scenario()) == [True, True, False]
