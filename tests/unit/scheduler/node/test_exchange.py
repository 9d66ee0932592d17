"""Ending and taking: a host's rest counts from the fetch's end, and partitions are asked for what they have."""

from __future__ import annotations

import asyncio
from collections import Counter
from math import floor
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.scripts import EndedUrl
from bigcrawl.scheduler.node.control import PAUSED
from bigcrawl.scheduler.node.exchange import TOGETHER_MS, _end_row
from bigcrawl.scheduler.owner.hot.due_heap import NEVER_MS, TAKE_MAX
from bigcrawl.scheduler.records.held import HeldUrl, Stage
from bigcrawl.url.canonical import host_of
from tests.support.redis_servers.lost_replies import LostReplies, once
from tests.support.redis_servers.one_clock import ask_no_more
from tests.unit.scheduler.records.test_held_urls import held_url
from tests.unit.scheduler.world import World, queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition

MOMENTS = st.floats(0, 10_000, allow_nan=False)  # ms
OFFSETS = st.floats(1, 1_000_000, allow_nan=False)  # of a clock's zero


# --- the rest of a host


@given(ended=MOMENTS, waited=MOMENTS, under_way=MOMENTS, delay_ms=st.integers(0, 5_000), node=OFFSETS, server=OFFSETS)
def test_host_rests_from_the_end_of_its_fetch(
    ended: float, waited: float, under_way: float, delay_ms: int, node: float, server: float
) -> None:
    """Never shorter than its delay, whatever the two clocks cut off; never longer for the wait of the word."""
    told = ended + waited
    heard = told + under_way
    held = held_url(1)
    held.ended_ms = floor(ended + node)
    held.end = EndedUrl(1, delay_ms, b"", "status:200")
    end = _end_row(held, floor(told + node))
    # In whole ms of the server's clock: when the host is due, and when it was due if it were told at the end.
    next_ms = floor(heard + server) + end.delay_ms - end.waited_ms
    assert next_ms >= floor(ended + server) + delay_ms
    assert next_ms <= max(floor(heard + server), floor(ended + server) + delay_ms + under_way + 4)


@pytest.mark.parametrize(
    ("ended_ms", "delay_ms", "now_ms", "left_ms"),
    [
        (1_000, 500, 1_000, 500),
        (1_000, 500, 1_002, 500),
        (1_000, 500, 1_003, 499),
        (1_000, 500, 1_100, 402),
        (1_000, 500, 1_501, 1),
        (1_000, 500, 1_502, 0),
        (1_000, 500, 90_000, 0),
        (1_000, 0, 90_000, 0),
        (0, 500, 90_000, 500),
    ],
)
def test_waited_time_is_taken_off_the_delay(ended_ms: int, delay_ms: int, now_ms: int, left_ms: int) -> None:
    """Two ms are given to the clocks; what never ended in the engine (0) has waited for nothing."""
    held = held_url(1)
    held.ended_ms = ended_ms
    held.end = EndedUrl(7, delay_ms, b"next", "status:200", 5)
    assert _end_row(held, now_ms) == held.end._replace(waited_ms=delay_ms - left_ms)


def test_delay_told_late_is_told_shorter(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The call that was held up by a Redis that is away is made anew: with what is left by then."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, host_delay=5) as w:
            node = await taking(w, "http://a.example/")
            [held] = await w.take(node)
            w.end(node, held)
            sent: list[int] = []
            run_each = node.parts.crawl.client.run_each

            async def away(calls: Any) -> list[Any]:
                sent.append(calls[0].args[12] - calls[0].args[22])
                if len(sent) == 1:
                    raise TransientStoreError("away")
                return await run_each(calls)

            node.parts.crawl.client.run_each = away  # type: ignore[method-assign]
            w.clock.advance(100)
            with pytest.raises(TransientStoreError):
                await node.parts.exchange.run(acknowledge=True, urls_max=0)
            w.clock.advance(900)
            assert await node.parts.exchange.run(acknowledge=True, urls_max=0)
            assert sent == [4_902, 4_002]
            assert not node.handout.held

    asyncio.run(scenario())


# --- how much is asked for


async def taking(w: World, *urls: str) -> Node:
    """A node with these URLs in the queues of its partitions, none taken."""
    node = await w.joined()
    await taking_on(w, node, *urls)
    return node


async def taken_now(node: Node, urls_max: int) -> list[HeldUrl]:
    """What one asking brings, in order."""
    before = set(node.handout.held)
    await take(node, urls_max)
    return [held for held in node.handout.held if held not in before]


async def taking_on(w: World, node: Node, *urls: str) -> None:
    await admit(w, node, *urls)
    await node.beat.leases.renew()


async def admit(w: World, node: Node, *urls: str) -> None:
    for url in queued(*urls):
        node.offer(url)
    await node.pump.flush()
    node.fold.record_inboxes()
    w.clock.advance(1_000)
    while (await node.ownership.folding.step_due(starved=True)).admitted:
        w.clock.advance(1_000)


async def take(node: Node, urls_max: int) -> int:
    before = len(node.handout.held)
    await node.parts.exchange.run(acknowledge=False, urls_max=urls_max)
    await asyncio.gather(*node.parts.gates.gatekeeper._tasks)
    return len(node.handout.held) - before


def hosts(count: int) -> list[str]:
    return [f"http://h{i}.example/" for i in range(count)]


def only(node: Node) -> OwnedPartition:
    [mine] = node.ownership.owned.values()
    return mine


def test_share_doubles_while_it_is_used_up_and_follows_what_comes(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Few hosts due, few asked for: many due, many, up to a bound; what it did not have is not asked for again."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
            node = await taking(w, *hosts(200))
            mine = only(node)
            seen = []
            while mine.due_ms < NEVER_MS:
                asked = mine.take_share
                seen.append((asked, await take(node, 1_000)))
            assert seen == [(4, 4), (8, 8), (16, 16), (32, 32), (TAKE_MAX, 64), (TAKE_MAX, 64), (TAKE_MAX, 12)]
            assert mine.take_share == 12

    asyncio.run(scenario())


def test_room_is_shared_and_never_overdrawn(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Partitions whose hosts are due first come first; together they get no more than there is room for."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=4) as w:
            node = await taking(w, *hosts(60))
            first, second, third, last = node.ownership.owned.values()
            due_heap = node.ownership.due_heap
            for mine, due_ms in ((first, 3), (second, 1), (third, 2), (last, NEVER_MS)):
                mine.record_due(due_ms)
            assert list(node.parts.exchange._shares(10, 0).items()) == [(second, 4), (third, 4), (first, 2)]
            for mine in (first, second, third):  # as when the call is over
                due_heap.add_partition(mine)
            second.drain()
            assert list(node.parts.exchange._shares(100, 0).items()) == [(third, 4), (first, 4)]
            assert not node.parts.exchange.has_more_due, "nothing may be taken from a partition that drains"
            second.record_wanted(True)
            assert list(node.parts.exchange._shares(100, 0).items()) == [(second, 4)]
            node.ownership.table.remove(second)
            due_heap.add_partition(second)  # as when a call is over
            assert not node.parts.exchange.has_more_due, "nor from one that has left"
            for mine in (first, third):
                due_heap.add_partition(mine)
            total = 0
            for _ in range(20):
                taken = await take(node, 7)
                assert taken <= 7
                total += taken
            assert total == len({held.host for held in node.handout.held})

    asyncio.run(scenario())


def test_partition_that_is_told_of_an_end_is_asked_next_unless_another_has_waited(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Ending and taking are one call where they meet; half a second of waiting goes before that."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=2, host_delay=0) as w:
            node = await taking(w, *hosts(20))
            await take(node, 100)
            held = next(iter(node.handout.held))
            told = node.ownership.owned[held.partition]
            [other] = [mine for mine in node.ownership.owned.values() if mine is not told]
            held.outcome = "status:200"
            node.handout.fetches.end(held)
            now_ms = w.clock.monotonic_ms()
            for waited_ms, first in ((TOGETHER_MS - 1, told), (TOGETHER_MS + 1, other)):
                told.record_due(NEVER_MS)
                other.record_due(now_ms - waited_ms)
                assert list(node.parts.exchange._ends(now_ms)) == [told]
                assert next(iter(node.parts.exchange._shares(100, now_ms))) is first

    asyncio.run(scenario())


def test_hosts_of_all_partitions_are_taken_as_they_fell_due(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The partition whose host has waited longest is asked first, until none of it has waited so long."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=2) as w:
            node = await w.joined()
            urls = [f"http://h{i}.example{i}/" for i in range(60)]
            first, second = (
                [url for url in urls if node.crawl.partition_of_host(host_of(url)) == p][:12] for p in (1, 0)
            )
            await taking_on(w, node, *first)
            await taking_on(w, node, *second)
            for mine in node.ownership.owned.values():
                mine.record_due(NEVER_MS)
                node.ownership.table.pending.announce(mine)
            await node.beat.leases.renew()  # as Redis has it, whose clock is no manual one
            taken: list[str] = []
            for _ in urls[:24]:
                taken += [held.host for held in await taken_now(node, 1)]
            assert taken == [host_of(url) for url in (*first, *second)]

    asyncio.run(scenario())


def test_host_waits_for_no_more_than_its_own_partition_has_before_it(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """However much room is left for others by then: 6 + k/64 askings for the k that fell due before it."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=2, budget_policy="none") as w:
            node = await w.joined()
            urls = [f"http://h{i}.example{i}/" for i in range(600)]
            many, few = ([url for url in urls if node.crawl.partition_of_host(host_of(url)) == p] for p in (0, 1))
            await taking_on(w, node, *many)
            await taking_on(w, node, *few)
            number_of = {host_of(url): number for number, url in enumerate(many)}
            for asking in range(1, 20):
                for held in await taken_now(node, 100):
                    assert asking <= 6 + number_of.get(held.host, 0) / TAKE_MAX or held.host not in number_of
                w.clock.advance(1)
            assert len(node.handout.held) == len(urls)

    asyncio.run(scenario())


def test_partition_is_asked_again_when_a_call_was_lost(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Whether Redis heard of it or not: it was due, and nobody else would remember."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
            node = await taking(w, *hosts(3))
            run_each = node.parts.crawl.client.run_each

            async def away(calls: Any) -> Any:
                raise TransientStoreError("no answer")

            node.parts.crawl.client.run_each = away  # type: ignore[method-assign]
            with pytest.raises(TransientStoreError):
                await take(node, 10)
            node.parts.crawl.client.run_each = run_each  # type: ignore[method-assign]
            assert await take(node, 10) == 3

    asyncio.run(scenario())


def test_partition_that_has_nothing_is_not_asked(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """No round trip until its next host is due, less the horizon; an end makes it due again after the rest."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1, host_delay=5) as w:
            node = await taking(w, "http://a.example/1", "http://a.example/2")
            assert await take(node, 10) == 1
            mine = only(node)
            ask_no_more(node.parts.crawl.client)
            trips = node.parts.crawl.client.round_trips
            while mine.due_ms < NEVER_MS:  # its one host is busy
                w.clock.advance(60_000)
                assert await take(node, 10) == 0
            w.clock.advance(60_000)
            assert not await node.parts.exchange.run(acknowledge=True, urls_max=10)
            assert node.parts.crawl.client.round_trips - trips <= 1
            [held] = node.handout.held
            held.outcome = "status:200"
            node.handout.fetches.end(held)
            assert await node.parts.exchange.run(acknowledge=True, urls_max=0)
            due_ms = w.clock.monotonic_ms() + 5_000
            assert mine.due_ms == due_ms

    asyncio.run(scenario())


def test_answer_does_not_undo_what_came_after_the_question(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A URL that was admitted after Redis had answered that nothing waits, and before that was heard, is due."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
            node = await taking(w, "http://a.example/")
            assert await take(node, 10) == 1
            [held] = node.handout.held
            held.outcome = "status:200"
            node.handout.fetches.end(held)
            run_each = node.parts.crawl.client.run_each

            async def slow_to_answer(calls: Any) -> Any:
                node.parts.crawl.client.run_each = run_each  # type: ignore[method-assign]
                results = await run_each(calls)
                await admit(w, node, "http://b.example/")
                return results

            node.parts.crawl.client.run_each = slow_to_answer  # type: ignore[method-assign]
            await node.parts.exchange.run(acknowledge=True, urls_max=0)
            assert [held.host for held in await taken_now(node, 10)] == ["b.example"]
            assert only(node).due_ms == NEVER_MS

    asyncio.run(scenario())


# --- what is taken ahead of its host's turn


async def in_lane(w: World, node: Node, *urls: str) -> HeldUrl:
    """The first URL of a host is answered, with others in its queue."""
    await taking_on(w, node, *urls)
    [first] = await taken_now(node, 10)
    start_and_answer(node, first)
    return first


def start_and_answer(node: Node, held: HeldUrl) -> None:
    assert node.handout.buffer.pop() is held
    answer(node, held)


def answer(node: Node, held: HeldUrl) -> None:
    held.outcome = "status:200"
    node.handout.fetches.record_answered(held)


def pages(count: int) -> list[str]:
    return [f"http://a.example/{page}" for page in range(count)]


def test_a_host_is_fetched_on_while_its_pages_are_not_safe(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A disk that hangs stops it at BIGCRAWL_IN_PROCESS_MAX. So many are taken in Redis."""

    async def scenario() -> None:
        settings: dict[str, Any] = {"partitions": 1, "host_delay": 0, "in_process_max": 8}
        async with world(tmp_path, crawl_name, redis_url, **settings) as w:
            node = await w.joined(may_acknowledge=lambda: False)
            held = await in_lane(w, node, *pages(20))
            fetched = [held]
            for _ in range(20):
                node.handout.fetches.end(held)
                await node.pump.end_and_take()
                if (found := node.handout.buffer.pop()) is None:
                    break
                held = found
                held.outcome = "status:200"
                node.handout.fetches.record_answered(held)
                fetched.append(held)
            assert [held.url for held in fetched] == pages(8)
            taken = await w.client.command("HLEN", w.keys(node, "a.example").taken)
            assert taken == len(node.handout.held) == 8
            assert node.parts.exchange.pages == 0

    asyncio.run(scenario())


def test_a_lane_gets_what_its_host_has_and_asks_for_no_more(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """What Redis does not have is not asked for."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1, host_delay=0) as w:
            node = await w.joined()
            await in_lane(w, node, *pages(4))
            assert len(await taken_now(node, 10)) == 3
            trips = node.parts.crawl.client.round_trips
            assert not await node.parts.exchange.run(acknowledge=False, urls_max=10)
            assert node.parts.crawl.client.round_trips == trips

    asyncio.run(scenario())


def test_lanes_take_no_more_than_there_is_room_for(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Together with what is due in its turn, which has half of it."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1, host_delay=0) as w:
            node = await w.joined()
            await in_lane(w, node, *pages(9))
            await taking_on(w, node, "http://b.example/")
            found = await taken_now(node, 4)
            assert [held.host for held in found] == ["a.example"] * 2 + ["b.example"]
            assert len(await taken_now(node, 4)) == 4

    asyncio.run(scenario())


def test_a_fast_host_leaves_room_to_others(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Its pages become safe a few at a time, and its line is short each time."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1, host_delay=0) as w:
            node = await w.joined()
            unsafe = [await in_lane(w, node, *pages(40))]
            await taking_on(w, node, "http://b.example/")
            hosts = set()
            for _ in range(10):
                await take(node, 2)
                while (held := node.handout.buffer.pop()) is not None:
                    answer(node, held)
                    unsafe.append(held)
                hosts |= {held.host for held in unsafe}
                node.handout.fetches.end(unsafe.pop(0))
            assert hosts == {"a.example", "b.example"}

    asyncio.run(scenario())


@pytest.mark.parametrize("room", [10, 0])
def test_a_line_goes_back_when_its_partition_moves(tmp_path: Path, crawl_name: str, redis_url: str, room: int) -> None:
    """The node that should own it does not wait for URLs that nobody has begun to fetch, nor for one that pauses."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1, host_delay=0) as w:
            node = await w.joined()
            await in_lane(w, node, *pages(9))
            assert len(await taken_now(node, 5)) == 5
            only(node).record_wanted(False)
            await node.parts.exchange.run(acknowledge=True, urls_max=room)
            await node.parts.exchange.run(acknowledge=True, urls_max=room)
            assert [held.url for held in node.handout.held] == pages(2)

    asyncio.run(scenario())


def test_a_pause_gives_lines_back_at_once(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Nothing is waited for; a line that the fetch under way opens again stays empty."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1, host_delay=0) as w:
            node = await w.joined()
            await in_lane(w, node, *pages(9))
            assert len(await taken_now(node, 5)) == 5
            held = node.handout.buffer.pop()
            assert held is not None
            await w.client.command("HSET", CrawlKeys(crawl_name).control, PAUSED, "1")
            await node.parts.control.read()
            await node.steer.turn()
            assert not node.handout.lanes.waiting
            answer(node, held)
            await node.pump.end_and_take()
            assert [held.url for held in node.handout.held] == pages(2)

    asyncio.run(scenario())


def test_a_lost_reply_gives_back_what_was_taken_ahead(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Both sides are compared, and the host goes on."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1, host_delay=0) as w:
            node = await w.joined()
            await in_lane(w, node, *pages(6))
            LostReplies(node.parts.crawl.client, once("exchange_urls"))
            with pytest.raises(TransientStoreError):
                await take(node, 3)
            assert len(node.handout.held) == 1
            assert await w.client.command("HLEN", w.keys(node, "a.example").taken) == 4
            await node.ownership.reconciliation.settle_doubts()
            assert await w.client.command("HLEN", w.keys(node, "a.example").taken) == 1
            assert [held.url for held in await taken_now(node, 6)] == pages(4)[1:]

    asyncio.run(scenario())


def test_a_fast_host_leaves_places_of_its_own_to_others(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A node that is full of its URLs has no other room."""

    async def scenario() -> None:
        settings: dict[str, Any] = {"partitions": 1, "host_delay": 0, "in_process_max": 8}
        async with world(tmp_path, crawl_name, redis_url, **settings) as w:
            node = await w.joined()
            await in_lane(w, node, *pages(60))
            while await take(node, 8 - len(node.handout.held)):
                while (held := node.handout.buffer.pop()) is not None:
                    answer(node, held)
            await taking_on(w, node, "http://b.example/")
            fetched: Counter[str] = Counter()
            while not fetched["b.example"]:
                started = [held for held in node.handout.held if held.stage is Stage.STARTED]
                assert started, "a.example has more"
                for held in started[:2]:
                    node.handout.fetches.end(held)
                await node.pump.end_and_take()
                while (found := node.handout.buffer.pop()) is not None:
                    answer(node, found)
                    fetched[found.host] += 1
            assert fetched["a.example"] < 40

    asyncio.run(scenario())


def test_a_line_is_filled_in_the_places_of_what_ends_with_the_same_call(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Not of what ends in another partition, whose call may fail alone: Redis never has too many taken."""

    async def scenario() -> None:
        settings: dict[str, Any] = {"partitions": 2, "host_delay": 0, "in_process_max": 8}
        async with world(tmp_path, crawl_name, redis_url, **settings) as w:
            node = await w.joined()
            exchange, table = node.parts.exchange, node.handout.held
            at = node.crawl.partition_of_host
            other = next(host_of(url) for url in hosts(20) if at(host_of(url)) != at("a.example"))
            await in_lane(w, node, *pages(20))
            await taking_on(w, node, *(f"http://{other}/{page}" for page in range(20)))
            while await take(node, 8 - len(table)):
                while (held := node.handout.buffer.pop()) is not None:
                    answer(node, held)
            before = {held for held in table if held.host == "a.example"}
            assert 0 < len(before) < len(table) == 8
            for held in set(table) - before:
                node.handout.fetches.end(held)
            await exchange.run(acknowledge=True, urls_max=0, places_max=8)
            assert {held for held in table if held.host == "a.example"} == before
            assert len(before) < len(table) <= 8
            for held in before:
                node.handout.fetches.end(held)
            await exchange.run(acknowledge=True, urls_max=0, places_max=1)
            assert sum(held.host == "a.example" for held in table) == 1
            keys = [owned.keys for owned in node.ownership.owned.values()]
            assert sum([await w.client.command("HLEN", each.taken) for each in keys]) == len(table)

    asyncio.run(scenario())


def test_a_head_start_does_not_make_a_node_late(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """New hosts count as due half a minute before they came, but nobody has waited for this node."""

    async def scenario() -> None:
        settings: dict[str, Any] = {"robots_head_start": 30, "robots": "obey"}
        async with world(tmp_path, crawl_name, redis_url, **settings) as w:
            node = await w.joined()
            for url in queued("http://a.example/", "http://b.example/"):
                node.offer(url)
            assert len(await w.take(node)) == 2
            assert sorted(w.web.asked) == ["http://a.example/robots.txt", "http://b.example/robots.txt"]
            assert node.handout.ends.late_ms < 1_000

    asyncio.run(scenario())
