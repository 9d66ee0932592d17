"""The pump's patience: a round trip for a batch, for a wait that is over, or for an engine that has nothing to do."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING

from scrapy import Request, Spider

from bigcrawl.scheduler.node.loops.pump import PUMP_BUSY_S, PUMP_PATIENCE_MS, PUMP_SHARE, PUMP_WAITING_S
from tests.support.redis_servers.one_clock import ask_no_more
from tests.unit.scheduler.test_scheduler import new_scheduler
from tests.unit.scheduler.world import queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.held import HeldUrl
    from tests.unit.scheduler.world import World

IN_PROCESS_MAX = 48  # that of the 16 fetches at a time that Scrapy has by default
BATCH_URLS = IN_PROCESS_MAX // PUMP_SHARE
HOSTS = [f"http://h{i}.example/" for i in range(BATCH_URLS)]


async def begun(w: World) -> tuple[Node, list[HeldUrl]]:
    """A node whose engine works on as many URLs as are worth a round trip, and which has just pumped."""
    node = await w.joined()
    for url in queued(*HOSTS):
        node.offer(url)
    started = await w.take(node, turns=12)
    assert len(started) == BATCH_URLS
    node.pump.wake()
    await node.pump.turn()
    ask_no_more(node.parts.crawl.client)
    return node, started


async def trips(node: Node) -> int:
    """Pump once; the round trips that it took."""
    before = node.parts.crawl.client.round_trips
    await node.pump.turn()
    return node.parts.crawl.client.round_trips - before


def test_batch_of_ended_urls_is_worth_a_round_trip(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """One fewer waits for the rest; all are told in one."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node, started = await begun(w)
            for held in started[1:]:
                w.end(node, held)
            assert await node.pump.turn() == PUMP_BUSY_S
            assert await trips(node) == 0
            assert node.handout.held.unacknowledged == BATCH_URLS - 1
            w.end(node, started[0])
            assert await trips(node) == 1
            assert (node.handout.held.unacknowledged, node.progress.pages) == (0, BATCH_URLS)

    asyncio.run(scenario())


def test_one_ended_url_waits_no_longer_than_the_patience(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """And then is told alone."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node, started = await begun(w)
            w.end(node, started[0])
            w.clock.advance(PUMP_PATIENCE_MS - 1)
            assert await trips(node) == 0
            w.clock.advance(1)
            assert await trips(node) == 1
            assert node.handout.held.unacknowledged == 0
            assert await trips(node) == 0

    asyncio.run(scenario())


def test_hungry_engine_is_not_kept_waiting(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Once for each time it asks for more in vain; links that wait go along."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node, started = await begun(w)
            w.end(node, started[0])
            node.offer(queued("http://new.example/")[0])
            assert await trips(node) == 0
            frontier = new_scheduler(tmp_path)
            frontier.attach(node, Spider("hungry"))
            assert frontier.next_request() is None
            assert await trips(node) == 2
            assert (node.outbox.waiting, node.handout.held.unacknowledged) == (0, 0)
            assert await trips(node) == 0

    asyncio.run(scenario())


def test_a_pump_of_a_node_with_room_for_one_hurries_no_page(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Its host has a lane, and nothing has ended yet."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, in_process_max=1, partitions=1) as w:
            node = await w.joined()
            node.handout.held.storage = SimpleNamespace(pages=1, safe_pages=0, hurry=lambda: None)
            for url in queued("http://h0.example/", "http://h0.example/1"):
                node.offer(url)
            [held] = await w.take(node, turns=12)
            held.outcome = "status:200"
            held.await_turn(w.clock.monotonic_us())
            list(node.handout.lanes.missing_urls())
            node.handout.fetches.record_answered(held)
            assert node.handout.lanes.are_open
            await node.pump.turn()
            node.handout.fetches.end(held)
            await node.pump.turn()
            assert node.handout.held.unacknowledged == 1

    asyncio.run(scenario())


def test_engine_with_work_does_not_wake_the_pump(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """While something is buffered, handing it out is all that happens."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node, started = await begun(w)
            for held in started[:2]:
                held.stage = type(held.stage).WAITING
                node.handout.admit(held)
            frontier = new_scheduler(tmp_path)
            frontier.attach(node, Spider("busy"))
            assert isinstance(frontier.next_request(), Request)
            assert await trips(node) == 0

    asyncio.run(scenario())


def test_pump_looks_less_often_while_urls_wait_for_their_hosts(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Not while the engine works on some, nor while any that have ended are not told."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node, started = await begun(w)
            assert await node.pump.turn() == PUMP_WAITING_S
            node.handout.fetches.record_started(started[0])
            assert await node.pump.turn() == PUMP_BUSY_S, "it may end at any time"
            w.end(node, started[0])
            assert not len(node.handout.in_process)
            assert await node.pump.turn() == PUMP_BUSY_S, "its page may be safe at any time"

    asyncio.run(scenario())
