"""`scrapy frontier status`: the host that a crawl waits for, which may go while it is looked for."""

from __future__ import annotations

import asyncio

from bigcrawl.commands.looking.status import _awaited_host
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.scheduler.crawl.survey import Survey
from tests.unit.scheduler.world import connected


def test_awaited_host_is_the_one_that_is_due_first(redis_url: str, crawl_name: str) -> None:
    """Over all partitions; and none, if the last one was taken since the survey that had counted it."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            seen = Survey(4, hosts_waiting=1)
            assert await _awaited_host(client, crawl_name, seen) is None
            for partition, host, due_in_ms in ((1, "late.example", 90_000), (3, "soon.example", 30_000)):
                due_ms = client.now_ms() + due_in_ms
                await client.command("ZADD", partition_keys(crawl_name, partition).ready, due_ms, host)
            awaited = await _awaited_host(client, crawl_name, seen)
            assert awaited is not None
            assert awaited["host"] == "soon.example"
            assert 0 < awaited["due_in_s"] <= 30

    asyncio.run(scenario())
