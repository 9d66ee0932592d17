"""What steps find of near copies reaches the partitions of these contents, whatever Redis and owners do meanwhile."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.scheduler.owner.found_copies import FoundCopies
from bigcrawl.scheduler.records.contents import FOUND, found_by_partition, pack_contents, unpack_contents
from bigcrawl.scheduler.records.held_urls import KEEP_ENDED_MS
from bigcrawl.scheduler.records.inbox_entry import CONTENTS
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.unit.content.pages import edited, page
from tests.unit.content.test_near_copies import rows_of
from tests.unit.scheduler.partition.test_contents import Steps
from tests.unit.scheduler.world import world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from tests.unit.scheduler.world import World

KEYS = {1: 10, 2: 20, 3: 30}
"""Contents that are near copies of each other, by page."""


def sketched(number: int) -> bytes:
    return rows_of((number, edited(page(1), number, 4)), contents=KEYS).tobytes()


def test_found_copies_are_kept_until_redis_cannot_forget_them(tmp_path: Path) -> None:
    """What was sent is not sent again by this owner, but by the next one, as long as Redis may forget it."""
    steps = Steps(tmp_path / "p0000")
    steps.step(sketched=sketched(1) + sketched(2))
    found = FoundCopies(steps.partition)
    assert found.has_any
    first = found.unsent
    assert len(first) == FOUND.itemsize
    found.note_sent(first, 1_000)
    assert (found.unsent, steps.partition.untold) == (b"", first)
    steps.step(sketched=sketched(3))
    second = found.unsent
    assert len(second) == FOUND.itemsize
    assert FoundCopies(steps.partition).unsent == first + second, "as the next owner would send them"
    found.forget_old(1_000 + KEEP_ENDED_MS)
    assert steps.partition.untold == first + second
    found.forget_old(1_001 + KEEP_ENDED_MS)
    assert (found.unsent, steps.partition.untold) == (second, second)
    found.note_sent(second, 9_000)
    steps.step((70, 1))
    assert steps.partition.untold == second


async def give_contents(w: World, node: Node, partition: int, *numbers: int) -> None:
    """Pages are told to a partition, whose next step is due."""
    packed = pack_contents(sketched=b"".join(map(sketched, numbers)))
    await w.client.command("XADD", PartitionKeys(w.config.crawl.name, partition).inbox, "*", CONTENTS, packed)
    node.ownership.owned[partition].note_outcomes()
    w.clock.advance(1_000)


async def told(w: World) -> list[tuple[int, ...]]:
    """The rows about near copies in the inboxes of all partitions, folded or not."""
    rows = []
    for partition in range(w.config.crawl.partitions):
        entries = await w.client.command("XRANGE", PartitionKeys(w.config.crawl.name, partition).inbox, "-", "+")
        contents = [unpack_contents(fields[1]) for _, fields in entries if fields[0] == CONTENTS]
        for each in contents:
            assert set(found_by_partition(each.found.tobytes(), w.config.crawl.partitions)) <= {partition}
            rows += each.found.tolist()
    return sorted(rows)


def test_what_a_step_finds_is_sent_as_soon_as_redis_takes_it(tmp_path: Path, crawl_name: str) -> None:
    """Each look says that Redis refuses it, until Redis does not; then it is sent once, and the owner knows its own."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, server.url) as w:
            node = await w.joined()
            await node.ownership.step_due(starved=False, idle=True)
            await give_contents(w, node, 1, 1, 2)
            server.client.config_set("maxmemory", "1")
            await node.ownership.step_due(starved=False, idle=True)
            for _ in range(3):
                with pytest.raises(RedisRefusedError):
                    await node.ownership.step_due(starved=False)
            assert await told(w) == []
            server.client.config_set("maxmemory", "0")
            for _ in range(3):
                await node.ownership.step_due(starved=False)
            assert await told(w) == [(20, 2, 1)]
            w.clock.advance(1_000)
            await node.ownership.step_due(starved=False, idle=True)
            assert sum(owned.disk.near_copies for owned in node.ownership.owned.values()) == 1

    with PrivateRedis() as server:
        asyncio.run(scenario())


def test_what_an_owner_left_is_sent_by_the_next(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """At its first look, whether or not the partition steps; and forgotten once Redis cannot forget it."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            await node.ownership.step_due(starved=False, idle=True)
            await give_contents(w, node, 2, 1, 3)
            await node.ownership.step_due(starved=False, idle=True)
            assert await told(w) == [(30, 3, 1)]
            await node.ownership.reclaim_all()
            await node.ownership.step_due(starved=False)
            assert await told(w) == [(30, 3, 1)] * 2
            w.clock.advance(KEEP_ENDED_MS + 1)
            await node.ownership.step_due(starved=False)
            assert not any(owned.found.has_any for owned in node.ownership.owned.values())

    asyncio.run(scenario())
