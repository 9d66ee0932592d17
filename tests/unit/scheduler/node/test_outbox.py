"""The outbox: nothing is lost between a spider and the inboxes, and nothing is there twice."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.exceptions import TransientStoreError
from bigcrawl.features.copies.rows import SEEN, pack_seen
from bigcrawl.features.mirrors.rows import SAMPLED, pack_sampled
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.scheduler.node import outbox as outbox_module
from bigcrawl.scheduler.node.link_graph import LinkGraph
from bigcrawl.scheduler.node.outbox import BATCH_BYTES_MAX, HINTS_ALONE_BYTES, KEEP_SENT_MS, RECENT_KEYS, Outbox
from bigcrawl.scheduler.records.inbox_entry import BATCH, OBSERVED
from bigcrawl.scheduler.records.observed import ObservedRows
from bigcrawl.scheduler.records.queued_url import decode_batch, encode_batch
from tests.support.keys import pld_key
from tests.support.observed_rows import unpack_each
from tests.unit.scheduler.world import connected, queued

if TYPE_CHECKING:
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

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
            run_each = client.run_each

            async def reply_lost(calls: list) -> list:
                await run_each(calls)
                raise TransientStoreError("reply lost")

            outbox.offer(URLS[0], 0)
            client.run_each = reply_lost  # type: ignore[method-assign,assignment]
            with pytest.raises(TransientStoreError):
                await outbox.flush(client)
            assert outbox.flushed == 0
            client.run_each = run_each  # type: ignore[method-assign]
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
                clock.advance(120_000)
                await outbox.flush(client)  # nothing: Redis may be away for any time
                client._running_time.known_ms += 2 * KEEP_SENT_MS // 3
            await client.command("DEL", keys.inbox, keys.sender + "node")
            outbox.send_again()
            await outbox.flush(client)
            assert await inbox(client, crawl_name, 0) == URLS[1:3], "the first is older than Redis can have lost"
            outbox.send_again()
            await outbox.flush(client)
            assert await inbox(client, crawl_name, 0) == URLS[1:3], "nothing was forgotten: nothing is doubled"

    asyncio.run(scenario())


def test_pages_wait_for_batches_that_redis_may_have_forgotten(crawl_name: str, redis_url: str) -> None:
    """Until they are sent again, what was offered before them is flushed, and no more."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            outbox = new_outbox(crawl_name)
            outbox.offer(URLS[0], 0)
            await outbox.flush(client)
            client._running_time.known_ms += KEEP_SENT_MS + 1
            outbox.offer(URLS[1], 0)
            await outbox.flush(client)
            outbox.send_again()
            assert (outbox.flushed, outbox.waiting) == (1, 1)
            await outbox.flush(client)
            assert (outbox.flushed, outbox.waiting) == (2, 0)

    asyncio.run(scenario())


def test_redis_that_forgot_the_last_batches_gets_just_those(crawl_name: str, redis_url: str) -> None:
    """It still has the number before them: they go with the numbers they had."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            outbox = new_outbox(crawl_name)
            keys = PartitionKeys(crawl_name, 0)
            for url in URLS[:4]:
                outbox.offer(url, 0)
                await outbox.flush(client)
            entries = await client.command("XRANGE", keys.inbox, "-", "+")
            await client.command("XDEL", keys.inbox, *[entry_id for entry_id, _ in entries[2:]])
            await client.command("SET", keys.sender + "node", "1 2")
            outbox.send_again()
            outbox.offer(URLS[4], 0)
            await outbox.flush(client)
            assert await inbox(client, crawl_name, 0) == URLS[:5]
            assert await client.command("GET", keys.sender + "node") == b"1 5"

    asyncio.run(scenario())


@pytest.mark.parametrize("known", [b"", b"1 1"], ids=["nothing", "less"])
def test_inbox_that_lacks_the_batch_before_begins_a_new_session(crawl_name: str, redis_url: str, known: bytes) -> None:
    """It heard nothing for a day, or forgot more than is kept here: nothing is lost, late batches do no harm."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            outbox = new_outbox(crawl_name)
            keys = PartitionKeys(crawl_name, 0)
            for url in URLS[:3]:
                outbox.offer(url, 0)
                outbox.offer(url, 1)
                await outbox.flush(client)
            sender = keys.sender + "node"
            await client.command("DEL", keys.inbox)
            await client.command(*(("SET", sender, known) if known else ("DEL", sender)))
            for url in URLS[3:6]:
                outbox.offer(url, 0)
                outbox.offer(url, 1)
                await outbox.flush(client)
            assert outbox.waiting == 0
            await client.run([scripts.append_batch(keys, "node", 1, n, encode_batch(URLS[:1]), 1) for n in range(1, 9)])
            assert await inbox(client, crawl_name, 0) == URLS[3:6]
            assert await inbox(client, crawl_name, 1) == URLS[:6], "its number is known: it goes on"

    asyncio.run(scenario())


@pytest.mark.parametrize("forgets", [False, True])
def test_whatever_part_of_a_pipeline_is_refused_all_arrives_once_and_in_order(
    crawl_name: str, redis_url: str, forgets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands are refused, replies lost, numbers forgotten, and all of it is told again in between."""
    monkeypatch.setattr(outbox_module, "BATCH_URLS_MAX", 1)

    async def scenario(chance: random.Random) -> None:
        async with connected(redis_url) as client:
            outbox = new_outbox(f"{crawl_name}-{chance.random()}")
            crawl = outbox._crawl
            run_each = client.run_each
            faults = True

            async def partly(calls: list) -> list:
                if not faults:
                    return await run_each(calls)
                kinds = [chance.choice(("taken", "taken", "refused")) for _ in calls]
                sent = [call for call, kind in zip(calls, kinds, strict=True) if kind == "taken"]
                replies = iter(await run_each(sent))
                if chance.random() < 0.2:
                    raise TransientStoreError("the reply was lost")
                refused = RedisRefusedError("OOM")
                return [next(replies) if kind == "taken" else refused for kind in kinds]

            client.run_each = partly  # type: ignore[method-assign,assignment]
            offered: list[list[QueuedUrl]] = [[], []]
            for number in range(60):
                if number == 30:
                    outbox.send_again()
                offered[number % 2].append(URLS[number % 20])
                outbox.offer(URLS[number % 20], number % 2)
                if chance.random() < 0.4:
                    with suppress(TransientStoreError):
                        await outbox.flush(client)
                if forgets and not number % 20 and not outbox.waiting:
                    await client.command("DEL", PartitionKeys(crawl, 0).sender + "node")
            faults = False
            await outbox.flush(client)
            assert outbox.waiting == 0
            assert [await inbox(client, crawl, partition) for partition in (0, 1)] == offered

    for seed in range(20):
        asyncio.run(scenario(random.Random(seed)))


def test_nothing_counts_as_sent_before_after_redis_forgot(crawl_name: str, redis_url: str) -> None:
    """Pages are fetched again whose links were sent longer ago than is kept here: those must not be dropped."""

    async def scenario() -> None:
        async with connected(redis_url):
            links = LinkGraph(str, pld_key, 1)
            outbox = Outbox("node", crawl_name, 1000, ManualClock(), links)
            assert outbox.remember(5)
            links.note("http://a.example/", ["http://b.example/"])
            links.take(0)
            outbox.send_again()
            assert outbox.remember(5)
            links.note("http://a.example/", ["http://b.example/"])
            assert len(links.take(0)) == 16

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


def test_large_requests_are_cut_into_batches_by_their_bytes(crawl_name: str, redis_url: str) -> None:
    """Few of them fill a message; one that is larger goes alone. Nothing waits any more when all are sent."""
    urls = [
        URLS[0]._replace(body=bytes(2 * BATCH_BYTES_MAX)),
        *[url._replace(body=bytes(BATCH_BYTES_MAX // 3)) for url in URLS[3:10]],
    ]

    async def scenario() -> None:
        async with connected(redis_url) as client:
            outbox = new_outbox(crawl_name)
            for url in urls:
                outbox.offer(url, 0)
            await outbox.flush(client)
            entries = await client.command("XRANGE", PartitionKeys(crawl_name, 0).inbox, "-", "+")
            assert [len(decode_batch(dict(pairs_of(fields))[b"b"])) for _, fields in entries] == [1, 3, 3, 1]
            assert await inbox(client, crawl_name, 0) == urls

    asyncio.run(scenario())


def test_large_requests_fill_the_outbox(crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes are bounded as its URLs are, whether they are in batches already or not."""
    monkeypatch.setattr(outbox_module, "OUTBOX_BYTES_MAX", 10_000)

    async def scenario() -> None:
        async with connected(redis_url) as client:
            outbox = new_outbox(crawl_name)
            run_each = client.run_each

            async def away(_: list) -> list:
                raise TransientStoreError("away")

            client.run_each = away  # type: ignore[method-assign,assignment]
            seen = []
            for url in URLS[:2]:
                seen.append(outbox.is_full)
                outbox.offer(url._replace(body=random.randbytes(5_000)), 0)
                with suppress(TransientStoreError):
                    await outbox.flush(client)
            seen.append(outbox.is_full)
            client.run_each = run_each  # type: ignore[method-assign]
            await outbox.flush(client)
            seen.append(outbox.is_full)
            outbox.offer(URLS[0]._replace(body=bytes(10_000)), 0)
            assert [*seen, outbox.is_full] == [False, False, True, False, True]

    asyncio.run(scenario())


def test_full_outbox_refuses_nothing() -> None:
    """`is_full` asks spiders to wait; what comes all the same is kept."""
    outbox = new_outbox("crawl", urls_max=2)
    for url in URLS[:5]:
        outbox.offer(url, 0)
    assert outbox.is_full
    assert outbox.waiting == 5


def test_url_sent_lately_is_told_from_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key is new once, then recent, until two others of its pair come: memory is bounded, and what recurs stays."""
    monkeypatch.setattr(outbox_module, "RECENT_KEYS", 4)
    monkeypatch.setattr(outbox_module, "RECENT_KEYS_MAX", 4)
    outbox = new_outbox("crawl")
    keys = (1, 1, 2, 6, 1, 2, 0, 0, 2, 6)
    assert [outbox.remember(key) for key in keys] == [True, False, True, True, False, False, True, False, False, True]
    assert outbox.dropped_recent == 5


def test_repr_counts_and_names_no_url() -> None:
    """A log line stays short, however much waits."""
    outbox = new_outbox("crawl")
    for url in URLS:
        outbox.offer(url, 0)
    assert "example" not in repr(outbox)


def test_most_of_the_newest_keys_are_recent_and_the_oldest_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the last tenth of a memory nearly all are known, of those long before hardly any."""
    monkeypatch.setattr(outbox_module, "RECENT_KEYS_MAX", RECENT_KEYS)
    keys = np.random.default_rng(7).integers(1 << 64, size=8 * RECENT_KEYS, dtype=np.uint64)
    outbox = new_outbox("crawl")
    assert outbox.remember_each(keys.tolist()) == list(range(len(keys)))
    assert outbox.dropped_recent == 0
    tenth = RECENT_KEYS // 10
    newest, oldest = keys[-tenth:].tolist(), keys[:tenth].tolist()
    assert sum(map(outbox.remember, newest)) < 0.12 * tenth
    assert sum(map(outbox.remember, oldest)) > 0.99 * tenth


@pytest.mark.parametrize("seed", range(5))
def test_batches_of_keys_are_told_apart_as_single_ones(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever their sizes: the fresh come in their order, the rest is counted, and none is dropped that is new."""
    monkeypatch.setattr(outbox_module, "RECENT_KEYS", 16)
    monkeypatch.setattr(outbox_module, "RECENT_KEYS_MAX", 16)
    chance = random.Random(seed)
    batches, singles = new_outbox("crawl"), new_outbox("crawl")
    sighted: set[int] = set()
    for _ in range(500):
        keys = chance.sample(range(60), chance.randrange(12))
        keys = [key for at, key in enumerate(keys) if key % 8 not in {other % 8 for other in keys[:at]}]
        found = batches.remember_each(keys)
        assert found == [at for at, key in enumerate(keys) if singles.remember(key)]
        assert {key for key in keys if key not in sighted} <= {keys[at] for at in found}
        sighted.update(keys)
        assert batches.dropped_recent == singles.dropped_recent
    assert batches.dropped_recent > 100


@pytest.mark.parametrize("key", [0, 1, 2, (1 << 64) - 1])
def test_no_key_is_recent_before_it_was_met(key: int) -> None:
    """Nor one whose bits are those of an empty place."""
    assert new_outbox("crawl").remember(key)
    assert new_outbox("crawl").remember_each([key]) == [0]


# --- edges


def test_edges_travel_with_the_next_urls_of_their_partition(crawl_name: str, redis_url: str) -> None:
    """And alone when there are many; a message that carries none has no field for them."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            links = LinkGraph(str, pld_key, 1)
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


async def contents_in(client: RedisClient, crawl: str, partition: int) -> list[tuple[bool, list[tuple[int, int]]]]:
    """Of each entry that the partition's owner will read: whether it has URLs, and its rows about contents."""
    entries = await client.command("XRANGE", PartitionKeys(crawl, partition).inbox, "-", "+")
    found = []
    for _, fields in entries:
        known = dict(pairs_of(fields))
        rows = unpack_each(known[OBSERVED]).seen.tolist() if OBSERVED in known else []
        found.append((bool(known[BATCH]), [tuple(row) for row in rows]))
    return found


def test_rows_about_contents_go_with_urls_or_alone(crawl_name: str, redis_url: str) -> None:
    """Each to its partition, once, and counted as what an acknowledgement waits for."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            outbox = new_outbox(crawl_name)
            outbox.offer(URLS[0], 0)
            for content, page in (70, 1), (71, 2), (70, 3):
                outbox.offer_rows(ObservedRows(content % 2, pack_seen(content, page), SEEN))
            assert (outbox.offered, outbox.waiting) == (4, 4)
            await outbox.flush(client)
            assert (outbox.flushed, outbox.waiting) == (4, 0)
            assert await contents_in(client, crawl_name, 0) == [(True, [(70, 1), (70, 3)])]
            assert await contents_in(client, crawl_name, 1) == [(False, [(71, 2)])]
            assert (outbox.take_flushed_partitions(), outbox.take_partitions_with_rows()) == ({0}, {1})
            assert outbox.take_partitions_with_rows() == set()
            assert outbox.unfolded.urls >= 4, "what owners have not merged yet holds spiders up"
            await outbox.flush(client)
            assert len(await contents_in(client, crawl_name, 1)) == 1

    asyncio.run(scenario())


def test_hints_wait_for_others_and_nothing_waits_for_them(crawl_name: str, redis_url: str) -> None:
    """They go with what else goes by then, and alone only if they are many; a full outbox takes none."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            clock = ManualClock()
            clock.advance(50_000)
            outbox = Outbox("node", crawl_name, 2, clock, partitions=2, hints_ms=10_000)
            row = ObservedRows(1, pack_sampled(9, 71), SAMPLED)
            outbox.offer_hint(row)
            assert (outbox.offered, outbox.waiting) == (0, 0)
            await outbox.flush(client)
            assert await contents_in(client, crawl_name, 1) == [], "alone, it would come after the end of the crawl"
            outbox.offer_rows(ObservedRows(0, pack_seen(70, 0), SEEN))
            await outbox.flush(client)
            assert len(await contents_in(client, crawl_name, 1)) == 1
            outbox.offer_hint(row)
            clock.advance(9_999)
            outbox.offer_rows(ObservedRows(0, pack_seen(70, 1), SEEN))
            await outbox.flush(client)
            assert len(await contents_in(client, crawl_name, 1)) == 1
            outbox.offer_rows(ObservedRows(1, pack_seen(71, 2), SEEN))
            clock.advance(1)
            await outbox.flush(client)
            assert await contents_in(client, crawl_name, 1) == [(False, []), (False, [(71, 2)])]
            last = dict(pairs_of((await client.command("XRANGE", PartitionKeys(crawl_name, 1).inbox, "-", "+"))[-1][1]))
            assert unpack_each(last[OBSERVED]).sampled.tolist() == [(9, 71)]
            for number in range(2, 4):
                outbox.offer_rows(ObservedRows(0, pack_seen(70, number), SEEN))
            outbox.offer_hint(row)
            clock.advance(10_000)
            await outbox.flush(client)
            outbox.offer_rows(ObservedRows(0, pack_seen(70, 4), SEEN))
            await outbox.flush(client)
            assert len(await contents_in(client, crawl_name, 1)) == 2
            clock.advance(10_000)
            some = ObservedRows(1, bytes(HINTS_ALONE_BYTES // 4), SAMPLED)
            for _ in range(4):
                await outbox.flush(client)
                assert len(await contents_in(client, crawl_name, 1)) == 2
                outbox.offer_hint(some)
            await outbox.flush(client)
            assert len(await contents_in(client, crawl_name, 1)) == 3, "a node that sends nothing else keeps few"

    asyncio.run(scenario())


def test_rows_about_contents_outlive_lost_replies_and_a_redis_that_forgets(crawl_name: str, redis_url: str) -> None:
    """Until the reply comes they keep their number; what Redis has forgotten since goes again."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            outbox = new_outbox(crawl_name)
            run_each = client.run_each

            async def reply_lost(calls: list) -> list:
                await run_each(calls)
                raise TransientStoreError("reply lost")

            outbox.offer_rows(ObservedRows(1, pack_seen(71, 2), SEEN))
            client.run_each = reply_lost  # type: ignore[method-assign,assignment]
            with pytest.raises(TransientStoreError):
                await outbox.flush(client)
            assert outbox.flushed == 0, "its page must not be acknowledged yet"
            client.run_each = run_each  # type: ignore[method-assign]
            await outbox.flush(client)
            assert outbox.flushed == 1
            assert await contents_in(client, crawl_name, 1) == [(False, [(71, 2)])]
            keys = PartitionKeys(crawl_name, 1)
            await client.command("DEL", keys.inbox, keys.sender + "node")
            outbox.send_again()
            await outbox.flush(client)
            assert await contents_in(client, crawl_name, 1) == [(False, [(71, 2)])]

    asyncio.run(scenario())
