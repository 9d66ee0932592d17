"""What kills may have fetched twice is known to the crawl: of nodes that died, and of nothing else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.membership import MAY_REPEAT
from tests.unit.scheduler.world import queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.scheduler.world import World

IN_PROCESS = 7


async def may_repeat(w: World) -> int:
    return int(await w.client.command("HGET", CrawlKeys(w.config.crawl.name).crawl, MAY_REPEAT))


def test_node_that_dies_may_have_all_its_room_fetched_again(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """As long as it lives, and for good when it dies; what leaves has given its URLs back."""

    async def play() -> None:
        async with world(tmp_path, crawl_name, redis_url, in_process_max=IN_PROCESS) as w:
            first, second = await w.joined(), await w.joined()
            assert await may_repeat(w) == 2 * IN_PROCESS
            await first.departure.close()
            assert await may_repeat(w) == IN_PROCESS
            second.membership.unlock(left=False)  # it dies
            third = await w.joined()
            assert await may_repeat(w) == 2 * IN_PROCESS
            await third.departure.close()
            assert await may_repeat(w) == IN_PROCESS

    asyncio.run(play())


def test_node_that_leaves_counts_what_it_could_not_tell_of(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A page that is not stored when the node closes is fetched again: it alone."""

    async def play() -> None:
        async with world(tmp_path, crawl_name, redis_url, in_process_max=IN_PROCESS) as w:
            node = await w.joined(may_acknowledge=lambda: False)
            for url in queued("http://a.example/", "http://b.example/"):
                node.offer(url)
            held, _ = await w.take(node)
            w.end(node, held)
            await node.departure.close()
            assert await may_repeat(w) == len(node.handout.held) > 0

    asyncio.run(play())
