"""A node's start is tried again after what waiting mends."""

from __future__ import annotations

import asyncio
import errno
import os
from typing import TYPE_CHECKING, Any, cast

import pytest
from scrapy import Spider
from scrapy.utils.test import get_crawler

from bigcrawl.exceptions import BigcrawlError, OwnershipLostError, TransientStoreError
from bigcrawl.private_files import disk_error
from bigcrawl.redisdb.embedded import EmbeddedServer
from bigcrawl.scheduler.adapter.joining import Joining
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.unit.scheduler.world import World, make_config, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node

ENGINE = cast("Any", None)


def joining_in(w: World) -> Joining:
    crawler = get_crawler(Spider)
    crawler.crawling = True
    return Joining(crawler, w.config, w.clock)


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

            joining._try = start  # type: ignore[method-assign]
            joining._rest = mend  # type: ignore[method-assign]
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

            joining._try = start  # type: ignore[method-assign]
            joining._rest = at_once  # type: ignore[method-assign]
            await joining.join(ENGINE)
            assert next(tries, "tried twice") == "tried twice"

    asyncio.run(scenario())


@pytest.mark.parametrize("has_begun", [False, True])
def test_node_waits_for_room_on_the_disk_of_its_state(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, has_begun: bool
) -> None:
    """The crawl's record or the node's lock finds no room, in a new crawl or one that exists: it waits."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            if has_begun:
                await w.joined()
            joining = joining_in(w)
            opened, complaints = os.open, []

            def full(path: Any, flags: int, *args: Any, **options: Any) -> int:
                if flags & os.O_CREAT and str(path).startswith(str(tmp_path)):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
                return opened(path, flags, *args, **options)

            async def start(url: str, engine: object) -> Node:
                return await w.joined()

            async def make_room() -> None:
                monkeypatch.setattr(os, "open", opened)

            monkeypatch.setattr(joining, "_warn_once", lambda error, left_s: complaints.append(str(error)))
            joining._try = start  # type: ignore[method-assign]
            joining._rest = make_room  # type: ignore[method-assign]
            monkeypatch.setattr(os, "open", full)
            await joining.join(ENGINE)
            [complaint] = complaints
            assert str(tmp_path / crawl_name) in complaint
            assert "make room there, or name another directory (BIGCRAWL_STATE_DIR)" in complaint

    asyncio.run(scenario())


def test_node_waits_for_room_on_the_disk_of_its_embedded_server(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's own files find no room: it is started when there is."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            joining = joining_in(w)
            joining._config = make_config(tmp_path, crawl_name)
            servers = iter([disk_error("no room", OSError(errno.ENOSPC, "full"), "BIGCRAWL_STATE_DIR"), redis_url])

            def begin(server: EmbeddedServer) -> str:
                if isinstance(found := next(servers), BigcrawlError):
                    raise found
                return str(found)

            async def start(url: str, engine: object) -> Node:
                assert url == redis_url
                return await w.joined()

            async def at_once() -> None:
                pass

            monkeypatch.setattr(EmbeddedServer, "start", begin)
            joining._try = start  # type: ignore[method-assign]
            joining._rest = at_once  # type: ignore[method-assign]
            await joining.join(ENGINE)

    asyncio.run(scenario())
