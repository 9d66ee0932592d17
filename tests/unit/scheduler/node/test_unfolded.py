"""Flow control over inboxes that others merge: a sender knows what of its own is waiting there."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.scheduler.node.unfolded import PATIENCE, Unfolded
from tests.support.logs import of_bigcrawl
from tests.unit.scheduler.world import connected, queued, world

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from bigcrawl.redisdb.client import RedisClient


async def fold(client: RedisClient, crawl: str, partition: int, upto: str) -> None:
    """The owner has merged the inbox up to an entry, and says so."""
    await client.command("HSET", partition_keys(crawl, partition).state, "folded", upto)


def test_what_owners_have_merged_is_counted_no_more(crawl_name: str, redis_url: str) -> None:
    """Portions go as a whole, when the last entry of theirs is merged; ids compare as numbers."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            unfolded = Unfolded(crawl_name, 2, 160)
            for number in range(1, 13):
                unfolded.note(0, f"7-{number}", 5)
            unfolded.note(1, "7-1", 100)
            assert (unfolded.urls, unfolded.is_full, unfolded.should_poll) == (160, True, True)
            await unfolded.look(client)
            assert unfolded.urls == 160, "nobody has merged anything"
            await fold(client, crawl_name, 0, "7-9")
            await unfolded.look(client)
            assert (unfolded.urls, unfolded.is_full) == (120, False)
            await fold(client, crawl_name, 0, "7-12")
            await fold(client, crawl_name, 1, "8-0")
            await unfolded.look(client)
            assert (unfolded.urls, unfolded.should_poll) == (0, False)

    asyncio.run(scenario())


def test_memory_is_bounded_by_portions() -> None:
    """However many batches of one URL are sent, few entries are kept."""
    unfolded = Unfolded("crawl", 4, 3_200)
    for number in range(3_200):
        unfolded.note(number % 4, f"{number}-0", 1)
    assert unfolded.is_full
    assert sum(map(len, unfolded._sent.values())) == 32


def test_inboxes_that_nobody_merges_are_named(
    crawl_name: str, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """After some looks without room, once, the fullest first."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            unfolded = Unfolded(crawl_name, 8, 100)
            unfolded.note(3, "1-0", 20)
            unfolded.note(5, "1-0", 90)
            for _ in range(3 * PATIENCE):
                await unfolded.look(client)

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    [said] = [record.getMessage() for record in of_bigcrawl(caplog)]
    assert "110 URLs" in said
    assert "partitions 5, 3;" in said


def test_node_finds_nothing_more_for_an_owner_that_is_stuck(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """It takes no URLs and its spiders wait, but it goes on merging its own; both end when the owner does its work."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, outbox_urls_max=1_000) as w:
            node, stuck = await w.joined(), await w.joined()
            await w.turn(node, 2)
            await w.turn(stuck, 2)
            assert node.ownership.owned
            assert stuck.ownership.owned
            urls = queued(*(f"http://h{i}.example/" for i in range(4_000)))
            theirs = [url for url in urls if node.crawl.partition_of_host(url.host) in stuck.ownership.owned][:1_000]
            ours = [url for url in urls if node.crawl.partition_of_host(url.host) in node.ownership.owned][:10]
            for url in (*theirs, *ours):
                node.offer(url)
            await w.turn(node, 3)
            assert (node.outbox.waiting, node.workload.is_crowded, len(node.handout.held)) == (0, True, 0)
            assert sum(len(mine.disk.state.tables.seen) for mine in node.ownership.owned.values()) == len(ours)
            await w.turn(stuck, 60)
            await node.beat.turn()
            assert not node.workload.is_crowded
            await w.turn(node, 2)
            assert len(node.handout.held) > 0
            assert not w.fatal

    asyncio.run(scenario())
