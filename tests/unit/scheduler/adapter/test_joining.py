"""A node's start is tried again after what waiting mends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest
from scrapy import Spider
from scrapy.utils.test import get_crawler

from bigcrawl.exceptions import OwnershipLostError, TransientStoreError
from bigcrawl.scheduler.adapter.joining import CrawlJoin
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.unit.scheduler.world import World, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.exceptions import BigcrawlError
    from bigcrawl.scheduler.node.node import Node

ENGINE = cast("Any", None)


def joining_in(w: World) -> CrawlJoin:
    return CrawlJoin(get_crawler(Spider), w.config, w.clock)


@pytest.mark.parametrize(("name", "value"), [("min-replicas-to-write", "1"), ("maxmemory", "1")])
def test_node_waits_for_a_redis_that_refuses_writes(tmp_path: Path, crawl_name: str, name: str, value: str) -> None:
    """Too few replicas, or no memory: neither ends the node; it joins when the server takes writes again."""

    async def scenario(server: PrivateRedis) -> None:
        async with world(tmp_path, crawl_name, server.url) as w:
            joining = joining_in(w)

            async def start(url: str, engine: object) -> Node:
                return await w.joined()

            async def mend() -> None:
                server.client.config_set(name, "0")

            joining._try_to_join = start  # type: ignore[method-assign]
            joining._wait_before_retry = mend  # type: ignore[method-assign]
            server.client.config_set(name, value)
            await joining.join(ENGINE)
            assert joining._has_warned

    with PrivateRedis() as server:
        asyncio.run(scenario(server))


@pytest.mark.parametrize("error", [OwnershipLostError("taken over"), TransientStoreError("the disk is full")])
def test_start_begins_again_after_what_waiting_mends(
    tmp_path: Path, crawl_name: str, redis_url: str, error: BigcrawlError
) -> None:
    """Another node took over what it had claimed, or its disk was full: the next try joins the crawl."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            joining = joining_in(w)
            tries = iter([error, None])

            async def start(url: str, engine: object) -> Node:
                if (failed := next(tries)) is not None:
                    raise failed
                return await w.joined()

            async def at_once() -> None:
                pass

            joining._try_to_join = start  # type: ignore[method-assign]
            joining._wait_before_retry = at_once  # type: ignore[method-assign]
            await joining.join(ENGINE)
            assert next(tries, "tried twice") == "tried twice"

    asyncio.run(scenario())
