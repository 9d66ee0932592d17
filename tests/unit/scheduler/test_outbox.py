"""The outbox: nothing is lost between a spider and the inboxes, and nothing is there twice."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.exceptions import TransientStoreError
from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.scheduler import outbox as outbox_module
from bigcrawl.scheduler.link_graph import LinkGraph
from bigcrawl.scheduler.outbox import KEEP_SENT_MS, RECENT_KEYS, Outbox
from bigcrawl.scheduler.owned_partition import pairs_of
from bigcrawl.scheduler.queued_url import decode_batch
from tests.unit.scheduler.world import connected, queued

if TYPE_CHECKING:
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.queued_url import QueuedUrl

URLS = queued(*(f"http://h{i}.example/" for i in range(20)))


def new_outbox(crawl: str, clock: ManualClock | None = None, urls_max: int = 1000) -> Outbox:
    return Outbox("node", crawl, urls_max, clock or ManualClock())


async def inbox(client: RedisClient, crawl: str, partition: int) -> list[QueuedUrl]:
    """What the partition's owner will read."""
    entries = await client.command("XRANGE", PartitionKeys(crawl, partition).inbox, "-", "+")
    return [url for _, fields in entries for url in decode_batch(dict(pairs_of(fields))[b"b"])]


def test_everything_offered_arrives_in_order_in_its_partition(crawl_name: str, redis_url: str) -> None:
    """A flush sends all that waits; `flushed` then says so."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            outbox = new_outbox(crawl_name)
            for i, url in enumerate(URLS):
                outbox.offer(url, i % 2)
            assert outbox.waiting == 20
            assert await outbox.flush(client) == 20
            assert (outbox.waiting, outbox.flushed, await outbox.flush(client)) == (0, 20, 0)
            assert await inbox(client, crawl_name, 0) == URLS[::2]
            assert await inbox(client, crawl_name, 1) == URLS[1::2]
            assert outbox.take_flushed_partitions() == {0, 1}
            assert outbox.take_flushed_partitions() == set()

    asyncio.run(scenario())


def test_lost_reply_does_not_send_a_batch_twice(crawl_name: str, redis_url: str) -> None:
    """A batch keeps its number until Redis is known to have it: the repeat changes nothing."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            outbox = new_outbox(crawl_name)
            run = client.run

            async def reply_lost(calls: list) -> list:
                await run(calls)
                raise TransientStoreError("reply lost")

            outbox.offer(URLS[0], 0)
            client.run = reply_lost  # type: ignore[method-assign,assignment]
            with pytest.raises(TransientStoreError):
                await outbox.flush(client)
            assert outbox.flushed == 0
            client.run = run  # type: ignore[method-assign]
            outbox.offer(URLS[1], 0)
            assert await outbox.flush(client) == 2
            assert await inbox(client, crawl_name, 0) == URLS[:2]

    asyncio.run(scenario())


def test_recent_batches_are_sent_again_to_a_redis_that_forgot_them(crawl_name: str, redis_url: str) -> None:
    """After a rewind the last seconds go again, oldest first; what Redis still has is not doubled."""

    async def scenario() -> None:
        clock = ManualClock()
        async with connected(redis_url) as client:
            outbox = new_outbox(crawl_name, clock)
            keys = PartitionKeys(crawl_name, 0)
            for url in URLS[:3]:
                outbox.offer(url, 0)
                await outbox.flush(client)
                clock.advance(2 * KEEP_SENT_MS // 3)
            await client.command("DEL", keys.inbox, keys.sender + "node")
            outbox.resend_recent()
            await outbox.flush(client)
            assert await inbox(client, crawl_name, 0) == URLS[1:3], "the first is older than Redis can have lost"
            outbox.resend_recent()
            await outbox.flush(client)
            assert await inbox(client, crawl_name, 0) == URLS[1:3], "nothing was forgotten: nothing is doubled"

    asyncio.run(scenario())


def test_large_waits_are_cut_into_bounded_batches(
    crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No message is larger than a bound, however much waits."""
    monkeypatch.setattr(outbox_module, "BATCH_URLS_MAX", 8)

    async def scenario() -> None:
        async with connected(redis_url) as client:
            outbox = new_outbox(crawl_name)
            for url in URLS:
                outbox.offer(url, 0)
            await outbox.flush(client)
            assert await client.command("XLEN", PartitionKeys(crawl_name, 0).inbox) == 3
            assert await inbox(client, crawl_name, 0) == URLS

    asyncio.run(scenario())


def test_full_outbox_refuses_nothing() -> None:
    """`is_full` asks spiders to wait; what comes all the same is kept."""
    outbox = new_outbox("crawl", urls_max=2)
    for url in URLS[:5]:
        outbox.offer(url, 0)
    assert outbox.is_full
    assert outbox.waiting == 5


def test_url_sent_lately_is_told_from_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key is new once, then recent, until one comes that takes its place: memory is bounded."""
    monkeypatch.setattr(outbox_module, "RECENT_KEYS", 4)
    outbox = new_outbox("crawl")
    keys = (1, 1, 2, 6, 1, 2, 0, 0)
    assert [outbox.is_recent(key) for key in keys] == [False, True, False, False, True, False, False, True]
    assert outbox.dropped_recent == 3


def test_repr_counts_and_names_no_url() -> None:
    """A log line stays short, however much waits."""
    outbox = new_outbox("crawl")
    for url in URLS:
        outbox.offer(url, 0)
    assert "example" not in repr(outbox)


def test_most_of_the_newest_keys_are_recent_and_the_oldest_are_not() -> None:
    """Of the last tenth of a memory nearly all are known, of those long before hardly any."""
    keys = np.random.default_rng(7).integers(1 << 64, size=8 * RECENT_KEYS, dtype=np.uint64)
    outbox = new_outbox("crawl")
    assert outbox.not_recent(keys) == list(range(len(keys)))
    assert outbox.dropped_recent == 0
    tenth = RECENT_KEYS // 10
    newest, oldest = keys[-tenth:].tolist(), keys[:tenth].tolist()
    assert sum(map(outbox.is_recent, newest)) > 0.88 * tenth
    assert sum(map(outbox.is_recent, oldest)) < 0.01 * tenth


@pytest.mark.parametrize("seed", range(5))
def test_batches_of_keys_are_told_apart_as_single_ones(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever their sizes: the fresh come in their order, the rest is counted, and none is dropped that is new."""
    monkeypatch.setattr(outbox_module, "RECENT_KEYS", 16)
    chance = random.Random(seed)
    batches, singles = new_outbox("crawl"), new_outbox("crawl")
    sighted: set[int] = set()
    for _ in range(500):
        keys = chance.sample(range(60), chance.randrange(12))
        keys = [key for at, key in enumerate(keys) if key % 16 not in {other % 16 for other in keys[:at]}]
        found = batches.not_recent(np.array(keys, dtype=np.uint64))
        assert found == [at for at, key in enumerate(keys) if not singles.is_recent(key)]
        assert {key for key in keys if key not in sighted} <= {keys[at] for at in found}
        sighted.update(keys)
        assert batches.dropped_recent == singles.dropped_recent
    assert batches.dropped_recent > 100


@pytest.mark.parametrize("key", [0, 1, 2, (1 << 64) - 1])
def test_no_key_is_recent_before_it_was_met(key: int) -> None:
    """Nor one whose bits are those of an empty place."""
    assert not new_outbox("crawl").is_recent(key)
    assert new_outbox("crawl").not_recent(np.array([key], dtype=np.uint64)) == [0]


# --- edges


def test_edges_travel_with_the_next_urls_of_their_partition(crawl_name: str, redis_url: str) -> None:
    """And alone when there are many; a message that carries none has no field for them."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            links = LinkGraph(str, 1)
            outbox = Outbox("node", crawl_name, 1000, ManualClock(), links)
            links.note("http://a.example/", ["http://b.example/"])
            await outbox.flush(client)
            outbox.offer(URLS[0], 0)
            await outbox.flush(client)
            outbox.offer(URLS[1], 0)
            await outbox.flush(client)
            for i in range(64):
                links.note(f"http://a{i}.example/", ["http://b.example/"])
            await outbox.flush(client)
            rows = await client.command("XRANGE", PartitionKeys(crawl_name, 0).inbox, "-", "+")
            entries = [dict(pairs_of(fields)) for _, fields in rows]
            assert [len(entry.get(b"e", b"")) for entry in entries] == [16, 0, 64 * 16]
            assert [b"e" in entry for entry in entries] == [True, False, True]
            assert [decode_batch(entry[b"b"]) for entry in entries] == [URLS[:1], URLS[1:2], []]

    asyncio.run(scenario())
