"""Each partition is looked at once a minute, and one that is lost is neither looked at nor kept."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.owner.claiming.looks import NEXT_BEAT_MS, SLOW_LOOK_MS
from tests.unit.scheduler.owner.test_ownership import offered, steal
from tests.unit.scheduler.world import world

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PARTITIONS = 80


def test_each_partition_is_looked_at_within_a_minute(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if all of them were looked at together."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=PARTITIONS) as w:
            node = await w.joined()
            looked: defaultdict[int, list[int]] = defaultdict(list)
            look_partition = scripts.look_partition

            def look(keys: Any, *args: Any, **named: Any) -> Any:
                looked[keys.partition].append(w.clock.monotonic_ms())
                return look_partition(keys, *args, **named)

            monkeypatch.setattr(scripts, "look_partition", look)
            for _ in range(3 * SLOW_LOOK_MS // NEXT_BEAT_MS):
                await node.beat.leases.renew()
                w.clock.advance(NEXT_BEAT_MS)
            assert len(looked) == PARTITIONS
            gaps = [later - earlier for times in looked.values() for earlier, later in pairwise(times)]
            assert max(gaps) <= SLOW_LOOK_MS
            assert sum(map(len, looked.values())) <= 5 * PARTITIONS

    asyncio.run(scenario())


def test_lost_partition_is_kept_in_no_news(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A step that was under way, and ends that come late, say nothing of it."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            await offered(w, node)
            table = node.ownership.table
            lost = node.ownership.owned[node.crawl.partition_of_host("h0.example")]
            await steal(w, lost.keys.partition)
            await node.ownership.folding.step_due(starved=True)
            assert not table.has(lost)
            lost.hot.record_ended("h0.example")
            table.record_owed(lost)
            table.record_files(lost)
            news = table.pending
            assert lost not in news.to_step | news.to_keep | news.to_look | news.to_park

    asyncio.run(scenario())
