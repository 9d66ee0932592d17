"""A node that waits looks at what has something to do, however many partitions it owns (steps 4 to 8)."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.redisdb import scripts
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
TRIPS_MAX = 4  # a second


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


@pytest.mark.parametrize("partitions", [16, 1_024])
def test_node_that_waits_for_a_host_asks_no_partition_without_a_reason(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    """Not as often as it has partitions; each is looked at once a minute, in case nobody was told of something."""
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
    looks = asked.pop("look_partition")
    assert looks <= partitions * WATCHED_S * 1000 / SLOW_LOOK_MS + partitions // 16 + WATCHED_S
    assert all(count <= 2 * WATCHED_S + looks for count in asked.values()), asked


def test_node_that_waits_makes_few_round_trips_and_obeys_within_a_second(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """It reports every two seconds, hears of arrivals every second, and reads orders as often."""
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
