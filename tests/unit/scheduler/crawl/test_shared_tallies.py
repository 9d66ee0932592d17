"""What nodes count, on its way to Redis and together there: each count once, whatever a node or Redis does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.scheduler.crawl.shared_tallies import GONE, GONE_MAX, SEND_MS, read_tallies, sum_of
from bigcrawl.tallies.tallies import Tallies
from tests.unit.scheduler.world import queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from tests.unit.scheduler.world import World

URLS = queued("http://www.a.example/1", "http://a.example/2", "http://b.example/1")


async def fetched(w: World, node: Node) -> None:
    """Three pages of two PLDs are fetched."""
    for url in URLS:
        node.offer(url)
    for held in await w.take(node, 12):
        held.address = "192.0.2.1"
        held.note_download("status:200", 5, 100)
        node.handout.fetches.end(held)
    await w.turn(node, 4)
    assert node.progress.pages == 3


async def total(w: World) -> Tallies:
    found, unreadable = await read_tallies(w.client, w.config.crawl.name)
    assert not unreadable
    return found


def test_a_node_sends_what_it_counted_every_ten_seconds_and_when_it_leaves(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, host_delay=0) as w:
            node = await w.joined()
            await fetched(w, node)
            await w.turn(node, SEND_MS // 500)
            first = await total(w)
            assert {row.name: (row.times, row.amount) for row in first.pages_by_pld.rows()} == {
                "a.example": (2, 200),
                "b.example": (1, 100),
            }
            assert (first.hosts.count, first.plds.count, first.servers.count) == (3, 2, 1)
            assert first.urls_sent == 3
            assert not first.urls_sent_elsewhere
            node.tallies.note_unpacked(0, 7)
            await node.departure.close()
            assert (await total(w)).unpacked_bytes == 7

    asyncio.run(scenario())


def test_urls_for_partitions_of_another_node_are_counted_apart(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, host_delay=0) as w:
            one, other = await w.joined(), await w.joined()
            for _ in range(8):
                await w.turn(one, 1)
                await w.turn(other, 1)
            urls = queued(*(f"http://{number}.example/" for number in range(40)))
            for url in urls:
                one.offer(url)
            await w.turn(one, 2)
            elsewhere = sum(one.crawl.partition_of_host(url.host) not in one.ownership.owned for url in urls)
            assert 0 < elsewhere < 40
            assert (one.tallies.urls_sent, one.tallies.urls_sent_elsewhere) == (40, elsewhere)

    asyncio.run(scenario())


def test_tallies_of_many_nodes_that_are_gone_are_one_field(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """However many nodes come and go, the hash is bounded, and the sum of all stays what it was."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, host_delay=0) as w:
            keys = CrawlKeys(crawl_name)
            for _ in range(GONE_MAX + 6):
                node = await w.joined()
                node.tallies.note_unpacked(0, 1)
                await node.departure.close()
                assert await w.client.command("HLEN", keys.tallies) <= GONE_MAX + 3
            assert (await total(w)).unpacked == GONE_MAX + 6
            assert GONE.encode() in await w.client.command("HKEYS", keys.tallies)

    asyncio.run(scenario())


@pytest.mark.parametrize("sends_before_it_beats", [False, True])
def test_a_node_that_was_folded_while_it_stood_still_counts_anew(
    tmp_path: Path, crawl_name: str, redis_url: str, *, sends_before_it_beats: bool
) -> None:
    """What it counted since its last message is lost, which is ten seconds' worth; nothing counts twice."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, host_delay=0) as w:
            keys, node = CrawlKeys(crawl_name), await w.joined()
            shared = node.parts.shared_tallies
            node.tallies.note_unpacked(0, 100)
            await shared.send()
            await w.client.commands(
                [("HSET", keys.tallies, GONE, node.tallies.to_bytes()), ("HDEL", keys.tallies, node.node_id)]
            )
            node.tallies.note_unpacked(0, 10)
            if sends_before_it_beats:
                await w.client.command("ZREM", keys.beats, node.node_id)
                await shared.send()
                await node.beat.turn()
            await shared.send()
            node.tallies.note_unpacked(0, 1)
            await shared.send()
            assert (await total(w)).unpacked_bytes == 101

    asyncio.run(scenario())


def test_what_a_later_version_wrote_is_not_folded(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A sum without it would take its place."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, host_delay=0) as w:
            keys = CrawlKeys(crawl_name)
            await w.client.command("HSET", keys.tallies, GONE, b"of a later version")
            for _ in range(GONE_MAX + 2):
                await (await w.joined()).departure.close()
            assert await w.client.command("HGET", keys.tallies, GONE) == b"of a later version"
            assert await w.client.command("HLEN", keys.tallies) == GONE_MAX + 3

    asyncio.run(scenario())


@pytest.mark.parametrize("is_refused", [False, True])
def test_faults_of_redis_lose_nothing_that_the_next_message_does_not_bring(
    tmp_path: Path, crawl_name: str, redis_url: str, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full Redis troubles nobody; one that is away is told to the loop, like any other message."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, host_delay=0) as w:
            node = await w.joined()
            node.tallies.note_unpacked(0, 5)

            async def fails(_: object) -> None:
                raise RedisRefusedError("OOM") if is_refused else TransientStoreError("away")

            with monkeypatch.context() as patch:
                patch.setattr(w.clients[-1], "run", fails)
                if is_refused:
                    await node.parts.shared_tallies.send()
                else:
                    with pytest.raises(TransientStoreError):
                        await node.parts.shared_tallies.send()
            await node.parts.shared_tallies.send()
            await node.parts.shared_tallies.send()
            assert (await total(w)).unpacked_bytes == 5

    asyncio.run(scenario())


def test_what_cannot_be_read_is_left_out_and_counted() -> None:
    tallies = Tallies()
    tallies.note_unpacked(0, 3)
    found, unreadable = sum_of([tallies.to_bytes(), b"of a later version", tallies.to_bytes()])
    assert (found.unpacked_bytes, unreadable) == (6, 1)
