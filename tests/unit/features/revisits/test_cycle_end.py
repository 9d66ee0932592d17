"""When a crawl may end whose cycles are announced."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from bigcrawl.clock import ManualClock
from bigcrawl.features.revisits.cycle_end import CycleEnds
from bigcrawl.features.revisits.cycle_plan import parse_cycles
from bigcrawl.redisdb.keys import partition_keys
from tests.unit.scheduler.world import connected, make_config

if TYPE_CHECKING:
    from pathlib import Path


def test_crawl_does_not_end_before_its_last_visits_are_announced(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Not even if they came after the last look, which had found nothing more to announce."""
    clock, announced = ManualClock(), list[dict[str, Any]]()

    async def scenario() -> None:
        async with connected(redis_url) as client:
            side: Any = SimpleNamespace(
                config=make_config(tmp_path, crawl_name),
                client=client,
                clock=clock,
                partitions=1,
                node="a",
                reports=dict,
                announce=lambda _, event: announced.append(event),
            )
            ends = CycleEnds(side, parse_cycles("every 1d", "UTC"), "", tmp_path)
            state = partition_keys(crawl_name, 0).state
            for ended in (3, 5):
                await client.command("HSET", state, "ended", ended, "status:200", ended - 1)
                assert ends.delay_end(ended)
                while ends.delay_end(ended):
                    clock.advance(60_000)
                    await ends.send()
                    await asyncio.sleep(0.01)

    asyncio.run(scenario())
    assert [(event["cycle"], event["urls"], event["pages"]) for event in announced] == [(1, 3, 2), (2, 2, 2)]
    assert json.loads((tmp_path / "cycle.json").read_text()) == announced[-1]
