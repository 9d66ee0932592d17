"""Redis forgets that URLs went back to the disk: each is in one place all the same, and fetched once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.crawl_clock import FORGETTABLE_MS
from bigcrawl.scheduler.owner.inbox import MovedUrls
from bigcrawl.scheduler.owner.parking import park_snoozed
from tests.unit.scheduler.gates.test_speed import awaited
from tests.unit.scheduler.owner.test_doubt import HOST, PAGES, begun, snooze
from tests.unit.scheduler.world import World, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node


class Memory:
    """What Redis holds of a crawl, to be brought back as a server does that lost its last seconds."""

    def __init__(self, w: World) -> None:
        self._client = w.client
        self._pattern = f"bigcrawl:{{{w.config.crawl.name}*"
        self._rows: list[tuple[bytes, bytes]] = []

    async def keep(self) -> Memory:
        keys = await self._client.command("KEYS", self._pattern)
        self._rows = [(key, await self._client.command("DUMP", key)) for key in keys]
        return self

    async def bring_back(self, node: Node) -> None:
        for key in await self._client.command("KEYS", self._pattern):
            await self._client.command("DEL", key)
        await self._client.commands([("RESTORE", key, "0", dump) for key, dump in self._rows])
        node.parts.troubles.record_restart()


async def fetch_all(w: World, node: Node) -> list[str]:
    """Everything that is handed out from now on, ended at once."""
    fetched = []
    for _ in range(20):
        await w.turn(node, 1)
        await asyncio.gather(*node.parts.gates.gatekeeper._tasks)
        while (held := node.handout.buffer.pop()) is not None:
            fetched.append(held.url)
            w.end(node, held)
    return fetched


@awaited
@pytest.mark.parametrize("is_merged", [True, False], ids=["merged", "not merged"])
async def test_parked_urls_are_fetched_once(tmp_path: Path, crawl_name: str, redis_url: str, is_merged: bool) -> None:
    """On disk already, they leave the back queue that Redis came back with; else they stay there, and nowhere else."""
    async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
        node, mine = await begun(w, *PAGES)
        memory = await Memory(w).keep()
        await snooze(node, mine)
        await park_snoozed(node.parts.crawl.client, [mine], w.clock.monotonic_ms())
        assert mine.hot.by_host == {HOST: 1}
        if is_merged:
            w.clock.advance(5_000)
            await node.fold.turn()
            assert mine.schedule.waiting == 5
        await memory.bring_back(node)
        await node.pump.turn()
        back = mine.keys.back + HOST
        assert await node.parts.crawl.client.command("ZCARD", back) == (0 if is_merged else 5)
        assert sorted(await fetch_all(w, node)) == PAGES


@awaited
async def test_urls_set_aside_are_fetched_once(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A step has merged what Redis does not know it gave: the URL that it holds as taken is the same one."""
    async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
        node, mine = await begun(w, PAGES[0])
        await node.pump.turn()
        [held] = node.handout.held
        memory = await Memory(w).keep()
        node.parts.gates.aside.set_aside(held)
        await node.pump.flush()
        w.clock.advance(5_000)
        await node.fold.turn()
        assert mine.disk.manifest.batch_number == 2, "the step has merged it, and admitted it anew"
        await memory.bring_back(node)
        assert await fetch_all(w, node) == PAGES[:1]


@awaited
async def test_dropped_urls_are_dropped_again(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """They were fetched by nobody, and need no memory: robots.txt forbids them as it did."""
    async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
        node, mine = await begun(w, *PAGES)
        memory = await Memory(w).keep()
        members = await node.parts.crawl.client.command("ZRANGE", mine.keys.back + HOST, 0, -1)
        rows = [(member, b"x" * 12) for member in members]
        for _ in range(2):
            [mine] = node.ownership.owned.values()
            call = scripts.drop_urls(mine.keys, mine.identity, HOST, "dropped:forbidden", rows)
            assert await node.parts.crawl.client.run([call]) == [len(PAGES)]
            if _ == 0:
                await memory.bring_back(node)
                await node.ownership.reclaim_all()
        assert (await node.progress.survey()).counts["dropped:forbidden"] == len(PAGES)


def test_moves_are_remembered_for_some_seconds() -> None:
    """Of the running time of Redis; and longer while nothing is moved."""
    moved = MovedUrls()
    moved.record_move("1-0", HOST, [7, 8], 0)
    moved.record_move("5-0", HOST, [9], FORGETTABLE_MS)
    assert moved.places_of_merged("1-0") == [(HOST, 7), (HOST, 8)]
    assert moved.places_of_merged("0-0") == []
    moved.record_move("6-0", "b.example", [-3], FORGETTABLE_MS + 1)
    assert moved.places_of_merged("9-9") == [(HOST, 9), ("b.example", -3)]
