"""How a node joins: what it looks at, when its leases begin, and what a start leaves that failed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.keys import CrawlKeys
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.unit.scheduler.world import world

if TYPE_CHECKING:
    from pathlib import Path


def test_start_that_failed_half_way_does_not_keep_the_next_one_waiting(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """An abandoned node's claims are taken over like a dead node's, without waiting for its lease."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            await node.departure.abandon()
            again = await w.joined()
            assert len(again.ownership.owned) == w.config.crawl.partitions

    asyncio.run(scenario())


def test_lease_is_counted_from_before_the_claims(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Opening many partitions takes time; for the others the lease began with the claim."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, lease_seconds=10) as w:
            node = w.new_node()
            claim = node.ownership.rebalance

            async def slow() -> None:
                await claim()
                w.clock.advance(5_000)

            node.ownership.rebalance = slow  # type: ignore[method-assign]
            await node.arrival.join()
            assert node.handout.lease.ends_ms <= 10_000

    asyncio.run(scenario())


def test_node_looks_at_its_redis_when_it_joins(
    tmp_path: Path, crawl_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A server without AOF is named in the log; one that evicts any key is refused before anything is written."""

    async def scenario(server: PrivateRedis) -> None:
        async with world(tmp_path, crawl_name, server.url) as w:
            await w.joined()
            assert [line for line in caplog.messages if "AOF" in line]
        server.client.flushall()
        server.client.config_set("maxmemory-policy", "allkeys-random")
        server.client.config_set("maxmemory", "100mb")
        async with world(tmp_path, crawl_name, server.url) as w:
            with pytest.raises(ConfigError, match="allkeys-random"):
                await w.joined()
        assert not server.client.exists(CrawlKeys(crawl_name).crawl)

    with PrivateRedis(aof=False) as server:
        asyncio.run(scenario(server))
