"""What nodes count, on its way to Redis and together there: each count once, whatever a node or Redis does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.http import Headers

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.features.tallies.counted import read_counted, sum_of
from bigcrawl.features.tallies.gaps import NamedGap
from bigcrawl.features.tallies.page import GONE, GONE_MAX, SEND_MS, NodeTallies
from bigcrawl.features.tallies.tallies import NO_TYPE, Tallies
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from tests.support.observing import Sent, node_side, tallies_of
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
        held.record_download("status:200", 5, 100)
        node.handout.fetches.end(held)
    await w.turn(node, 4)
    assert node.progress.pages == 3


async def total(w: World) -> Tallies:
    found, unreadable = await read_counted(w.client, w.config.crawl.name)
    assert not unreadable
    return found


def test_a_node_sends_what_it_counted_every_ten_seconds_and_when_it_leaves(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, host_delay=0) as w:
            sent = [300]
            node = await w.joined(sent_bytes=lambda: sent[-1])
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
            tallies_of(node).record_unpacked(0, 7)
            sent.append(450)
            node.outbox.remember(1)
            node.outbox.remember(1)
            await node.departure.close()
            last = await total(w)
            assert (last.unpacked_bytes, last.urls_repeated) == (7, 1)
            assert (first.sent_bytes, last.sent_bytes) == (300, 450)

    asyncio.run(scenario())


def test_tallies_that_have_not_changed_are_sent_each_minute_and_when_the_node_leaves(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Redis may have forgotten the last ones; those that have changed are sent after ten seconds as ever."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, host_delay=0) as w:
            node = await w.joined(sent_bytes=lambda: 300)
            key, seconds = CrawlKeys(crawl_name).tallies, 2  # turns
            await fetched(w, node)
            await w.turn(node, 11 * seconds)
            before = await w.client.command("HGETALL", key)
            assert (await total(w)).urls_sent == 3
            tallies_of(node).record_unpacked(0, 7)
            await w.turn(node, 11 * seconds)
            assert (await total(w)).unpacked_bytes == 7
            await w.client.command("HSET", key, *before)
            await w.turn(node, 40 * seconds)
            assert (await total(w)).unpacked_bytes == 0
            await w.turn(node, 30 * seconds)
            assert (await total(w)).unpacked_bytes == 7
            await w.client.command("HSET", key, *before)
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
            assert (tallies_of(one).urls_sent, tallies_of(one).urls_sent_elsewhere) == (40, elsewhere)

    asyncio.run(scenario())


def test_tallies_of_many_nodes_that_are_gone_are_one_field(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """However many nodes come and go, the hash is bounded, and the sum of all stays what it was."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, host_delay=0) as w:
            keys = CrawlKeys(crawl_name)
            for _ in range(GONE_MAX + 6):
                node = await w.joined()
                tallies_of(node).record_unpacked(0, 1)
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
            tallies_of(node).record_unpacked(0, 100)
            await node.observers.send(is_last=True)
            await w.client.commands(
                [("HSET", keys.tallies, GONE, tallies_of(node).to_bytes()), ("HDEL", keys.tallies, node.node_id)]
            )
            tallies_of(node).record_unpacked(0, 10)
            if sends_before_it_beats:
                await w.client.command("ZREM", keys.beats, node.node_id)
                await node.observers.send(is_last=True)
                await node.beat.turn()
            await node.observers.send(is_last=True)
            tallies_of(node).record_unpacked(0, 1)
            await node.observers.send(is_last=True)
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
            tallies_of(node).record_unpacked(0, 5)

            async def fails(_: object) -> None:
                raise RedisRefusedError("OOM") if is_refused else TransientStoreError("away")

            with monkeypatch.context() as patch:
                patch.setattr(w.clients[-1], "run", fails)
                if is_refused:
                    await node.observers.send(is_last=True)
                else:
                    with pytest.raises(TransientStoreError):
                        await node.observers.send(is_last=True)
            await node.observers.send(is_last=True)
            await node.observers.send(is_last=True)
            assert (await total(w)).unpacked_bytes == 5

    asyncio.run(scenario())


def test_what_cannot_be_read_is_left_out_and_counted() -> None:
    tallies = Tallies()
    tallies.record_unpacked(0, 3)
    found, unreadable = sum_of([tallies.to_bytes(), b"of a later version", tallies.to_bytes()])
    assert (found.unpacked_bytes, unreadable) == (6, 1)


@pytest.mark.parametrize(
    ("headers", "media_type", "packed"),
    [
        ({}, NO_TYPE, []),
        ({"Content-Type": "text/html; charset=utf-8", "Content-Encoding": "gzip"}, "text/html", ["gzip"]),
        ({"Content-Type": ["text/plain", "text/html"], "Content-Encoding": []}, "text/plain", []),
    ],
)
def test_an_answer_counts_by_what_its_headers_say(headers: dict[str, Any], media_type: str, packed: list[str]) -> None:
    """The first of each; a header may be there without a value."""
    counting = NodeTallies(node_side(Sent()))
    counting.record_headers(200, Headers(headers), 5)
    assert [row.name for row in counting.tallies.media_types.rows()] == [media_type]
    assert [row.name for row in counting.tallies.encodings.rows()] == packed


def test_gaps_count_by_their_kind() -> None:
    counting = NodeTallies(node_side(Sent()))
    counting.tallies.reset()
    for number, kind in enumerate(("host", "server", "space")):
        counting.record_gap(kind, kind, 500 + number, 500)
    found = Tallies.from_bytes(counting.tallies.to_bytes())
    kept = [gaps.tightest for gaps in (found.host_gaps, found.server_gaps, found.space_gaps)]
    assert kept == [[NamedGap("host", 500, 500)], [NamedGap("server", 501, 500)], [NamedGap("space", 502, 500)]]


def test_report_has_what_went_out_in_the_last_ten_seconds() -> None:
    """A second, of requests and of look-ups; earlier ones count no more."""
    sent = [0]
    side: Any = node_side(Sent())
    side.sent_bytes = lambda: sent[-1]
    tallies = NodeTallies(side)
    assert tallies.reported() == {"sent_bytes_s": 0, "look_ups_s": 0.0}
    found = []
    for second in range(1, 31):
        side.clock.advance(1_000)
        sent.append(sent[-1] + (500 if second <= 15 else 0))
        if second == 5:
            for _ in range(20):
                tallies.record_look_up("a.example")
        found.append(tallies.reported())
    assert found[9] == {"sent_bytes_s": 500, "look_ups_s": 2.0}
    assert 0 < found[19]["sent_bytes_s"] < 500
    assert found[-1] == {"sent_bytes_s": 0, "look_ups_s": 0.0}
