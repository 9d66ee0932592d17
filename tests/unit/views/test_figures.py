"""A small crawl has partitions that never begin, so they have no files."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

from bigcrawl.scheduler.queues.turn_state import WINDOW_MIN
from bigcrawl.views.figures import gather_figures
from tests.unit.scheduler.world import queued, viewed, world

if TYPE_CHECKING:
    from pathlib import Path


def test_partitions_that_have_not_begun_are_no_gap(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """They have no links; those whose files are gone are counted."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=8) as w:
            node = await w.joined()
            node.offer(queued("http://a.example/1")[0])
            await w.turn(node, 2)
            figures = (await viewed(w.config, gather_figures)).plds
            assert (figures.unread, figures.edges, figures.turns) == (0, 0, WINDOW_MIN)
            shutil.rmtree(w.config.crawl.crawl_dir / f"p{node.crawl.partition_of_host('a.example'):04d}")
            figures = (await viewed(w.config, gather_figures)).plds
            assert (figures.unread, figures.edges) == (1, None)

    asyncio.run(scenario())
