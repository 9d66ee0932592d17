"""A short crawl begins and ends at once: no rest of a loop, and no round trip a partition, stands in the way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bigcrawl.clock import ManualClock
from tests.support.running.stepped_time import run_stepped
from tests.unit.scheduler.node.test_first_fetch import DEFAULTS, LONG_AFTER_BOOT_MS, Engine, wait_until
from tests.unit.scheduler.world import QUIET, world, world_of_one_clock

if TYPE_CHECKING:
    from pathlib import Path

PARTITIONS = 256
ROUND_TRIPS = 90
"""Some twenty questions, three for each 32 partitions that are opened, and a ping for each look at the time."""
END_MS = 100


async def _no_partition_is_asked_alone(tmp_path: Path, crawl: str, redis_url: str) -> None:
    async with world(tmp_path, crawl, redis_url, partitions=PARTITIONS) as w:
        node = await w.joined()
        assert len(node.ownership.owned) == PARTITIONS
        assert node.parts.crawl.client.round_trips < ROUND_TRIPS
        assert not list(w.config.crawl.crawl_dir.glob("p*")), "nothing has been written to any of them"
        before = node.parts.crawl.client.round_trips
        await node.departure.close()
        assert node.parts.crawl.client.round_trips - before < ROUND_TRIPS
        assert not list(w.config.crawl.crawl_dir.glob("p*"))


def test_partitions_are_opened_and_released_together(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """256 of them take fewer round trips than one each, and no file."""
    asyncio.run(_no_partition_is_asked_alone(tmp_path, crawl_name, redis_url))


def test_end_follows_the_last_page(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Both passes over the partitions are made as soon as the outcome of the last page is folded."""
    clock = ManualClock()
    clock.advance(LONG_AFTER_BOOT_MS)
    few = {"partitions": 4, "robots": QUIET["BIGCRAWL_ROBOTS"]}

    async def scenario() -> list[int]:
        async with world_of_one_clock(clock, tmp_path, crawl_name, redis_url, **DEFAULTS | few) as w:
            node = w.new_node()
            await node.start()
            engine = Engine(node)
            took_ms = []
            for number in range(5):
                engine.offer(f"http://h{number}.example/")
                await wait_until(clock, lambda: bool(engine.started))
                assert not node.progress.is_finished
                engine.end_all(w)
                took_ms.append(await wait_until(clock, lambda: node.progress.is_finished))
            await node.runner.stop()
            return took_ms

    assert max(took_ms := run_stepped(clock, scenario())) < END_MS, took_ms
