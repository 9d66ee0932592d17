"""What is put into a partition of another node is told to its owner, and found without a word every five minutes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.joined_crawl import KEPT, Arrivals
from bigcrawl.scheduler.owner.claiming.looks import SLOW_LOOK_MS
from tests.unit.scheduler.world import World, queued, world

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bigcrawl.redisdb.scripts import Value
    from bigcrawl.scheduler.node.node import Node

URLS = [f"http://h{number}.example{number}/" for number in range(8)]


async def two_nodes(w: World) -> tuple[Node, Node]:
    """One that owns all partitions and has looked at them, and one that owns none and has URLs to send."""
    owner = await w.joined()
    w.clock.advance(SLOW_LOOK_MS)
    await owner.ownership.folding.step_due(starved=True)
    await owner.beat.leases.renew()
    owner.ownership.table.pending.to_look.clear()
    other = w.new_node()
    for url in queued(*URLS):
        other.outbox.offer(url, owner.crawl.partition_of_host(url.host))
    return owner, other


def filled(owner: Node) -> set[int]:
    return {partition for partition, owned in owner.ownership.owned.items() if owned.inbox.has_urls}


def test_owner_hears_of_urls_of_other_nodes_with_its_next_beat(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Only of the partitions that have got some, and once."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            owner, other = await two_nodes(w)
            await other.pump.flush()
            await owner.beat.leases.renew()
            assert filled(owner) == {owner.crawl.partition_of_host(url.host) for url in queued(*URLS)}
            assert await owner.parts.crawl.arrivals.take() == set()

    asyncio.run(scenario())


def test_what_came_before_the_first_look_is_found_by_it(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Perhaps between the claim and the opening, so that the word of it was for nobody."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            owner, other = await w.joined(), w.new_node()
            assert not filled(owner)
            for url in queued(*URLS):
                other.outbox.offer(url, owner.crawl.partition_of_host(url.host))
            await other.outbox.flush(other.parts.crawl.client)
            await owner.beat.leases.renew()
            assert filled(owner) == {owner.crawl.partition_of_host(url.host) for url in queued(*URLS)}

    asyncio.run(scenario())


def test_word_that_is_lost_costs_a_slow_look(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """As of a node that dies between an append and its word."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            owner, other = await two_nodes(w)
            await other.outbox.flush(other.parts.crawl.client)
            await owner.beat.leases.renew()
            assert not filled(owner)
            w.clock.advance(SLOW_LOOK_MS)
            await owner.beat.leases.renew()
            assert filled(owner) == {owner.crawl.partition_of_host(url.host) for url in queued(*URLS)}

    asyncio.run(scenario())


def test_word_that_redis_does_not_take_is_told_again(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused, or its reply is lost; what is noted meanwhile is told with it."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            teller, reader = Arrivals(w.client, crawl_name), Arrivals(w.client, crawl_name)
            key = CrawlKeys(crawl_name).arrivals
            await w.client.command("SET", key, "no stream, so Redis refuses the word")
            await teller.tell([1])
            await w.client.command("DEL", key)
            commands_each = w.client.commands_each

            async def lost(rows: Sequence[Sequence[Value]]) -> list[Any]:
                await commands_each(rows)
                raise TransientStoreError("the reply is lost")

            with monkeypatch.context() as patched:
                patched.setattr(w.client, "commands_each", lost)
                with pytest.raises(TransientStoreError):
                    await teller.tell([2])
            teller.add(3)
            await teller.tell()
            assert await reader.take() == {1, 2, 3}

    asyncio.run(scenario())


def test_reader_that_may_have_missed_some_is_told_so(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The stream is short, and Redis may forget it; a reader that is late hears all that is there, at once."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            teller, reader = Arrivals(w.client, crawl_name), Arrivals(w.client, crawl_name)
            teller.add(3)
            await teller.tell([1, 2])
            await teller.tell()
            assert (await reader.take(), await reader.take()) == ({1, 2, 3}, set())
            for number in range(KEPT - 1):
                await teller.tell([number])
            assert (await reader.take(), await reader.take()) == (set(range(KEPT - 1)), set())
            for _ in range(2 * KEPT):
                await teller.tell([1])
            assert (await reader.take(), await reader.take()) == (None, set())
            await w.client.command("DEL", CrawlKeys(crawl_name).arrivals)
            assert await reader.take() is None
            await teller.tell([5])
            assert (await reader.take(), await reader.take()) == ({5}, set())

    asyncio.run(scenario())


def test_notices_that_came_with_the_orders_are_not_asked_for_again(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """They wake the beat, which looks at what they name; a reply that is late tells of nothing that is missed."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            owner, other = await two_nodes(w)
            arrivals = owner.parts.crawl.arrivals
            await arrivals.take()
            await other.pump.flush()
            assert not arrivals.came.is_set()
            await owner.parts.control.read()
            assert arrivals.came.is_set()
            before = w.client.round_trips
            told = await arrivals.take()
            assert told
            assert w.client.round_trips == before
            assert not arrivals.came.is_set()
            with arrivals.reading() as command:
                before = w.client.round_trips
                assert await arrivals.take() == set()
                assert w.client.round_trips == before, "the notices are just being read"
                rows = await w.client.command(*command)
            await other.parts.crawl.arrivals.tell([1])
            await arrivals.take()
            arrivals.record_read(command, rows)
            assert await arrivals.take() == set()

    asyncio.run(scenario())
