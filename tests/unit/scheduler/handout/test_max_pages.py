"""BIGCRAWL_MAX_PAGES: busy nodes share what is left, and pages that may never come keep nobody from the last ones."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bigcrawl.scheduler.handout.handout import SILENT_MS
from tests.unit.scheduler.node.test_node import seed
from tests.unit.scheduler.world import world

if TYPE_CHECKING:
    from pathlib import Path

NODES = 3


def test_nodes_share_what_is_left(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """However much each fetches between two surveys: no more than one page a node beyond it."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=16, max_pages=60, in_process_max=8) as w:
            nodes = [await w.joined() for _ in range(NODES)]
            for _ in range(6):
                for node in nodes:
                    await w.turn(node, 1)
            await seed(w, nodes[0], *(f"http://h{i}.example{i}/" for i in range(300)))
            for _ in range(30):
                for node in nodes:
                    await w.turn(node, 1)
                    await asyncio.gather(*node.parts.gates.gatekeeper._tasks)
                for node in nodes:  # and no survey in between
                    for _ in range(10):
                        while (held := node.handout.buffer.pop()) is not None:
                            w.end(node, held)
                        w.clock.advance(100)
                        node.pump.wake()
                        await node.pump.turn()
                        await asyncio.gather(*node.parts.gates.gatekeeper._tasks)
            seen = await nodes[0].progress.survey()
            assert 60 <= seen.pages <= 60 + 8 * NODES
            assert all(node.progress.has_reached_max for node in nodes)

    asyncio.run(scenario())


def test_silent_hosts_do_not_keep_the_last_pages(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """What has been under way for long is not counted: the other pages are fetched, and the number is reached."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, max_pages=5) as w:
            node = await w.joined()
            await seed(w, node, *(f"http://h{i}.example/" for i in range(20)))
            started = await w.take(node, 2)
            assert len(started) == 5
            for held in started[2:]:
                w.end(node, held)
            w.clock.advance(SILENT_MS)
            more = await w.take(node, 2)
            assert len(more) == 2
            for held in more:
                w.end(node, held)
            await w.turn(node, 2)
            assert node.progress.has_reached_max
            assert not await w.take(node, 2)

    asyncio.run(scenario())
