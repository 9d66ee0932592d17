"""From a death to a dead letter, or back to an ordinary URL: nodes that die, and what Redis hears."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bigcrawl.scheduler.records.at_gates import Suspicion
from tests.unit.scheduler.world import World, queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.held import HeldUrl

HOST = "h0.example"
PAGE = f"http://{HOST}/"


async def begun(w: World) -> tuple[Node, HeldUrl]:
    """A node whose engine has a page."""
    node = await w.joined()
    node.offer(*queued(PAGE))
    [held] = await w.take(node)
    node.handout.fetches.record_started(held)
    return node, held


async def after_death_of(w: World, node: Node) -> Node:
    """The next node, in the place of one that is dead: its lock is free, its words end here."""
    node.membership.unlock(left=False)
    return await w.joined()


def suspects(node: Node) -> dict[int, Suspicion]:
    return node.ownership.owned[node.crawl.partition_of_host(HOST)].suspects


async def letters(w: World, node: Node) -> int:
    return int(await w.client.command("HLEN", w.keys(node, HOST).dead))


def test_url_that_dies_with_its_page_three_times_is_a_dead_letter(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """It is handed out three times, ends with an outcome of its own, and leaves a letter that Redis may not forget."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node, held = await begun(w)
            node.handout.fetches.record_answered(held)
            for deaths in (1, 2):
                node = await after_death_of(w, node)
                assert suspects(node) == {held.seq: Suspicion(deaths, deaths, was_alone=False)}
                [held] = await w.take(node)
                node.handout.fetches.record_started(held)
                node.handout.fetches.record_answered(held)
            node = await after_death_of(w, node)
            assert await w.take(node) == []
            assert await letters(w, node) == 1
            assert suspects(node) == {}
            keys = w.keys(node, HOST)
            assert await w.client.command("EXISTS", keys.deaths) == 0
            assert await w.client.command("HMGET", keys.state, "dropped:poison", "dead", "ended") == [b"1"] * 3
            await w.client.command("DEL", keys.dead)
            w.clock.advance(120_000)
            node.parts.crawl.client._running_time.record_restart()
            await node.parts.trials.send_again()
            assert await letters(w, node) == 1

    asyncio.run(scenario())


def test_suspect_that_ends_is_none_any_more(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Neither here nor in Redis."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node, _ = await begun(w)
            node = await after_death_of(w, node)
            [held] = await w.take(node)
            assert held.suspicion == Suspicion(1, 0, False)
            node.handout.fetches.record_started(held)
            w.end(node, held)
            await w.turn(node, 2)
            assert suspects(node) == {}
            assert await w.client.command("EXISTS", w.keys(node, HOST).deaths) == 0
            assert len(node.handout.suspects) == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("how", ["stopped", "only taken", "done"])
def test_death_speaks_against_none_that_was_not_in_process(
    tmp_path: Path, crawl_name: str, redis_url: str, how: str
) -> None:
    """A node that was being stopped, one that had not begun, and one that had finished and could not say so."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            node.offer(*queued(PAGE))
            [held] = await w.take(node)
            if how != "only taken":
                node.handout.fetches.record_started(held)
            if how == "done":
                w.end(node, held)
            if how == "stopped":
                node.departure.stop()
            node = await after_death_of(w, node)
            assert suspects(node) == {}
            assert len(await w.take(node)) == 1

    asyncio.run(scenario())


def test_all_that_was_taken_is_suspect_where_the_record_is_gone(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """On another machine, for instance, and once the lease is over."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            node.offer(*queued(PAGE))
            [held] = await w.take(node)
            keys = w.keys(node, HOST)
            await w.expire_leases(keys.partition)
            await node.membership.leave(w.client)
            node.membership.unlock(left=True)
            other = await w.joined()
            assert suspects(other) == {held.seq: Suspicion(1, 0, False)}

    asyncio.run(scenario())
