"""A Redis that is there and refuses: what can go on goes on, nothing is lost, and what frees room is done."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.redisdb import script_texts
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.scheduler.node.loops import loop as loop_module
from bigcrawl.scheduler.node.loops.beat import BEAT_FED_S
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.unit.scheduler.world import queued, world

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from tests.unit.scheduler.world import World

PAGES = [f"http://h{i}.example/" for i in range(40)]


@pytest.fixture(scope="module")
def own_server() -> Iterator[PrivateRedis]:
    """A server that may be told to refuse."""
    with PrivateRedis() as server:
        yield server


@contextmanager
def refusing(server: PrivateRedis, how: str) -> Iterator[None]:
    """Have the server refuse writes: of all kinds, or of those that need memory."""
    name, value, before = {
        "NOREPLICAS": ("min-replicas-to-write", "1", "0"),
        "OOM": ("maxmemory", "1", "0"),
    }[how]
    server.client.config_set(name, value)
    try:
        yield
    finally:
        server.client.config_set(name, before)


async def try_turn(w: World, node: Node, turns: int = 1) -> None:
    """Turn the loops as `turn` does, each past what Redis refuses it."""
    for _ in range(turns):
        w.clock.advance(500)
        for work in (node.pump.turn, node.fold.turn, node.beat.turn, node.watch.turn):
            with suppress(RedisRefusedError):
                await work()


async def try_until(w: World, node: Node, is_done: Callable[[], bool]) -> None:
    """Turn the loops until it is done; the server gives the buffers of its connections back by its own clock."""
    async with asyncio.timeout(60):
        while not is_done():
            await try_turn(w, node)


async def offer(node: Node, *urls: str) -> None:
    for url in queued(*urls):
        node.offer(url)


def used(server: PrivateRedis) -> int:
    found: Any = server.client.info("memory")
    return int(found["used_memory"])


@pytest.mark.parametrize("how", ["NOREPLICAS", "OOM"])
def test_crawl_goes_on_where_it_was_when_redis_takes_writes_again(
    tmp_path: Path, crawl_name: str, own_server: PrivateRedis, how: str
) -> None:
    """Whatever it refuses in between, each page is handed out once, and none is missing."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, own_server.url) as w:
            node = await w.joined()
            fetched = []
            for batch in range(8):
                await offer(node, *PAGES[5 * batch : 5 * batch + 5])
                with refusing(own_server, how):
                    await try_turn(w, node, 2)
                    for _ in range(2):
                        if (popped := node.handout.buffer.pop()) is not None:
                            fetched.append(popped.url)
                            w.end(node, popped)
                    await try_turn(w, node, 2)
                started = await w.take(node, 3)
                fetched += [held.url for held in started]
                for held in started:
                    w.end(node, held)
            await w.turn(node, 30)
            assert sorted(fetched) == sorted(PAGES)
            assert node.progress.is_finished
            assert not w.fatal

    asyncio.run(scenario())


def test_crawl_frees_memory_by_itself(tmp_path: Path, crawl_name: str, own_server: PrivateRedis) -> None:
    """At maxmemory inboxes are merged and trimmed, and ends are told: then there is room, and nobody did anything."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, own_server.url, hot_urls=1_000, durable_seconds=0.5) as w:
            node = await w.joined()
            urls = [f"http://h{i % 50}.example/{i:06}{'x' * 80}" for i in range(30_000)]
            await offer(node, *urls)
            before = used(own_server)
            await node.pump.flush()
            brought = used(own_server) - before
            assert brought > 500_000
            own_server.client.config_set("maxmemory", str(before + brought // 2))
            try:
                await offer(node, *PAGES)
                with pytest.raises(RedisRefusedError):
                    await node.pump.turn()
                assert node.outbox.waiting == len(PAGES)
                for _ in range(60):
                    await try_turn(w, node)
                    if not node.outbox.waiting:
                        break
                assert not node.outbox.waiting, "what was held up is sent"
                await try_until(w, node, lambda: used(own_server) < before + brought // 2)
                await try_until(w, node, lambda: len(node.handout.held) > 0)  # URLs are taken again
            finally:
                own_server.client.config_set("maxmemory", "0")

    asyncio.run(scenario())


def test_ends_are_told_while_links_are_refused(tmp_path: Path, crawl_name: str, own_server: PrivateRedis) -> None:
    """A page without new links is acknowledged at maxmemory, one with them when they are in their inboxes."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, own_server.url) as w:
            node = await w.joined()
            await offer(node, *PAGES[:2])
            await w.turn(node, 2)
            first, second = await w.take(node)
            with refusing(own_server, "OOM"):
                w.end(node, first)
                await offer(node, PAGES[2])
                w.end(node, second)
                await try_turn(w, node, 2)
                assert (await node.progress.survey()).urls_taken == 1
                assert len(node.handout.held) == 1, "and nothing is taken that would bring more links"
            await w.turn(node, 2)
            assert (await node.progress.survey()).pages == 2

    asyncio.run(scenario())


def test_refusal_is_no_doubt(
    tmp_path: Path, crawl_name: str, own_server: PrivateRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was done, so that nothing is compared, and no host waits for it."""
    monkeypatch.setattr(loop_module, "RETRY_S", 0.01)

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, own_server.url) as w:
            node = await w.joined()

            called, again = 0, asyncio.Event()

            async def refused() -> float:
                nonlocal called
                called += 1
                if called > 1:
                    again.set()
                raise RedisRefusedError("OOM")

            node.fold.turn = refused  # type: ignore[method-assign]
            loop = asyncio.create_task(node.runner.run(node.fold))
            await again.wait()
            loop.cancel()
            assert not node.parts.crawl.client.in_doubt
            assert not w.fatal

    asyncio.run(scenario())


def test_partition_with_an_admission_that_was_refused_is_not_empty(
    tmp_path: Path, crawl_name: str, own_server: PrivateRedis
) -> None:
    """Its URLs are not in queues yet, and count as on disk: another node's survey must not take that for the end."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, own_server.url) as w:
            node = await w.joined()
            await offer(node, PAGES[0])
            await node.pump.flush()
            with refusing(own_server, "OOM"):
                for _ in range(4):
                    await try_turn(w, node)
                seen = await node.progress.survey()
                assert (seen.inboxes_unfolded, seen.urls_disk, seen.urls_queued) == (0, 1, 0)
                assert (seen.counts["seen"], seen.urls_uncounted) == (1, 0)
                assert not seen.is_empty

    asyncio.run(scenario())


def test_counts_that_were_refused_are_told_again(tmp_path: Path, crawl_name: str, own_server: PrivateRedis) -> None:
    """A crawl whose last step nobody heard of would never end."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, own_server.url) as w:
            node = await w.joined()
            await offer(node, PAGES[0], PAGES[0])
            await w.turn(node, 2)
            [held] = await w.take(node)
            w.end(node, held)
            await node.pump.turn()
            with refusing(own_server, "NOREPLICAS"):
                for _ in range(60):  # durable rounds, in which there is nothing left to do in the end
                    await try_turn(w, node)
            await w.turn(node, 10)
            assert node.progress.is_finished

    asyncio.run(scenario())


def test_scripts_that_go_on_at_maxmemory_say_so() -> None:
    """All but those that make a crawl larger, and those that only look."""
    for name in script_texts.script_names():
        text = script_texts.source_for_many(name)
        assert text.startswith("#!lua flags=allow-oom\n") == (name not in script_texts.GROWING | script_texts.LOOKING)
    assert set(script_texts.script_names()) > script_texts.GROWING | script_texts.LOOKING


def test_looking_needs_no_server_that_takes_writes(tmp_path: Path, crawl_name: str, own_server: PrivateRedis) -> None:
    """`scrapy frontier status` works when nothing else does."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, own_server.url) as w:
            node = await w.joined()
            for how in ("NOREPLICAS", "OOM"):
                with refusing(own_server, how):
                    assert (await node.progress.survey()).owned == w.config.crawl.partitions
            with refusing(own_server, "OOM"):
                await node.beat.turn()  # the leases are renewed
            w.clock.advance(round(1000 * BEAT_FED_S))
            with refusing(own_server, "NOREPLICAS"), pytest.raises(TransientStoreError):
                await node.beat.turn()

    asyncio.run(scenario())
