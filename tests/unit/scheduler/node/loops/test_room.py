"""Room in process goes to partitions that have something to give, however many have nothing (steps 8 and 9)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bigcrawl.scheduler.owner.hot.due_heap import NEVER_MS
from tests.support.redis_servers.one_clock import ask_no_more
from tests.unit.scheduler.world import queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from tests.unit.scheduler.world import World

ROOMS = pytest.mark.parametrize("in_process_max", [1, 2, 32])
URLS = [f"http://h{i}.example{i}/" for i in range(3)]


async def taking_on(w: World, node: Node, *urls: str) -> None:
    """Bring URLs into the queues of the node's partitions; the first steps of claimed ones find nothing."""
    for url in queued(*urls):
        node.offer(url)
    await node.pump.flush()
    node.fold.record_inboxes()
    for _ in range(6):
        w.clock.advance(1_000)
        await node.ownership.folding.step_due(starved=True)
    await node.beat.leases.renew()


@ROOMS
def test_first_url_is_taken_with_the_first_pump(
    tmp_path: Path, crawl_name: str, redis_url: str, in_process_max: int
) -> None:
    """However small the room: none of the 255 partitions without a host is asked before it."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=256, in_process_max=in_process_max) as w:
            node = await w.joined()
            await taking_on(w, node, URLS[0])
            ask_no_more(node.parts.crawl.client)
            before = node.parts.crawl.client.round_trips
            await node.pump.end_and_take()
            assert [held.url for held in node.handout.held] == URLS[:1]
            assert node.parts.crawl.client.round_trips - before <= 2

    asyncio.run(scenario())


@ROOMS
def test_hosts_do_not_wait_for_the_turns_of_empty_partitions(
    tmp_path: Path, crawl_name: str, redis_url: str, in_process_max: int
) -> None:
    """All are said to be due before theirs, as where URLs were parked or ended meanwhile: one pump asks them all."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=64, in_process_max=in_process_max) as w:
            node = await w.joined()
            await taking_on(w, node, *URLS)
            for mine in node.ownership.owned.values():
                if not mine.hot.by_host:
                    mine.record_due(0)
            await node.pump.end_and_take()
            await asyncio.gather(*node.parts.gates.gatekeeper._tasks)
            assert len(node.handout.held) == min(in_process_max, len(URLS))
            ask_no_more(node.parts.crawl.client)
            before = node.parts.crawl.client.round_trips
            assert node.handout.buffer.waiting
            await node.pump.end_and_take()
            assert node.parts.crawl.client.round_trips - before <= 1, "an engine that has work waits for the batch"

    asyncio.run(scenario())


def test_partition_that_was_claimed_is_due_when_its_first_host_is(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """One without hosts is not asked, nor one whose hosts rest."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=8, host_delay=60) as w:
            node = await w.joined()
            await taking_on(w, node, *URLS)
            where = {held.partition for held in await w.take(node)}  # and their hosts rest when the node leaves
            assert where
            await node.departure.close()
            again = await w.joined()
            now_ms = w.clock.monotonic_ms()
            due = {p: mine.due_ms - now_ms for p, mine in again.ownership.owned.items() if mine.due_ms < NEVER_MS}
            assert due.keys() == where
            assert all(1_000 < due_in_ms <= 60_000 for due_in_ms in due.values()), due

    asyncio.run(scenario())
