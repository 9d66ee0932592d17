"""What is put into a partition of another node is told to its owner, and found without a word once a minute."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bigcrawl.scheduler.crawl.arrivals import KEPT, Arrivals
from bigcrawl.scheduler.owner.claiming.looks import SLOW_LOOK_MS
from tests.unit.scheduler.world import queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from tests.unit.scheduler.world import World

URLS = [f"http://h{number}.example{number}/" for number in range(8)]


async def two_nodes(w: World) -> tuple[Node, Node]:
    """One that owns all partitions and has looked at them, and one that owns none and has URLs to send."""
    owner = await w.joined()
    w.clock.advance(SLOW_LOOK_MS)
    await owner.ownership.folding.step_due(starved=True)
    await owner.parts.leases.renew()
    owner.ownership.table.news.to_look.clear()
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
            await owner.parts.leases.renew()
            assert filled(owner) == {owner.crawl.partition_of_host(url.host) for url in queued(*URLS)}
            assert await owner.parts.arrivals.hear() == set()

    asyncio.run(scenario())


def test_word_that_is_lost_costs_a_slow_look(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """As of a node that dies between an append and its word."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            owner, other = await two_nodes(w)
            await other.outbox.flush(other.parts.client)
            await owner.parts.leases.renew()
            assert not filled(owner)
            w.clock.advance(SLOW_LOOK_MS)
            for _ in owner.ownership.owned:
                await owner.parts.leases.renew()
            assert filled(owner) == {owner.crawl.partition_of_host(url.host) for url in queued(*URLS)}

    asyncio.run(scenario())


def test_reader_that_may_have_missed_some_is_told_so(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The stream is short; and whoever notes a partition tells of it once."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            teller, reader = Arrivals(w.client, crawl_name), Arrivals(w.client, crawl_name)
            teller.note(3)
            await teller.tell([1, 2])
            await teller.tell()
            assert (await reader.hear(), await reader.hear()) == ({1, 2, 3}, set())
            for _ in range(KEPT):
                await teller.tell([1])
            assert (await reader.hear(), await reader.hear()) == (None, set())

    asyncio.run(scenario())
