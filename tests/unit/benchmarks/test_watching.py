"""The frontier that is watched is a real one, and commands are counted as they pass."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from benchmarks.frontier.ours import make_node
from benchmarks.watching.counting_link import CountingLink
from benchmarks.watching.fill import fill
from bigcrawl.clock import SystemClock
from bigcrawl.config import read_config
from bigcrawl.politeness.dns_cache import DnsCache
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.views.opened_crawl import open_crawl
from bigcrawl.views.status import status_of
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.unit.scheduler.world import resolve

if TYPE_CHECKING:
    from pathlib import Path

HOSTS = 300
PARTITIONS = 4


def test_next_owner_goes_on_with_what_was_filled_in(tmp_path: Path) -> None:
    """All hosts are in the status, which takes five commands at most; the next node owns and keeps them."""
    with PrivateRedis(aof=False) as redis, CountingLink(redis.socket_path) as link:
        settings = {
            "BIGCRAWL_CRAWL": "bench",
            "BIGCRAWL_STATE_DIR": str(tmp_path),
            "BIGCRAWL_PARTITIONS": PARTITIONS,
            "BIGCRAWL_HOT_URLS": 10_000,
            "BIGCRAWL_REDIS_URL": redis.url,
        }

        async def scenario() -> None:
            await fill(settings, redis.url, HOSTS)
            async with open_crawl(read_config(settings), link.url) as crawl:
                found = await status_of(crawl)
                assert (found["hosts"]["ready"], found["urls"]["queued"]) == (HOSTS, HOSTS)
                before = link.commands
                await status_of(crawl)
                assert 1 <= link.commands - before <= 5
            client = RedisClient(redis.url)
            node = make_node(client, DnsCache(resolve, SystemClock()), settings, lambda: False)
            try:
                await node.start()
                while (seen := await node.progress.survey()).owned < PARTITIONS:  # noqa: ASYNC110 - loops make it so
                    await asyncio.sleep(0.1)
                assert (seen.hosts_ready, seen.urls_queued, seen.urls_disk) == (HOSTS, HOSTS, 0)
            finally:
                await node.departure.close()
                await client.close()

        asyncio.run(scenario())
