"""What steps find of near copies reaches the partitions of these contents, whatever Redis and owners do meanwhile."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.features.copies.rows import FOUND, KINDS
from bigcrawl.redisdb.crawl_clock import FORGETTABLE_MS
from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.scheduler.crawl.survey import Survey, survey
from bigcrawl.scheduler.owner.durable_rounds import LOOK_MS
from bigcrawl.scheduler.owner.publishing import OwedRows
from bigcrawl.scheduler.records.inbox_entry import OBSERVED
from bigcrawl.scheduler.records.observed import owed_by_partition, owed_in
from tests.support.observed_rows import pack_each, unpack_each
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.unit.content.pages import edited, page
from tests.unit.content.test_near_copies import rows_of
from tests.unit.features.copies.test_fold import Steps
from tests.unit.scheduler.world import World, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node

KEYS = {1: 10, 2: 20, 3: 30}
"""Contents that are near copies of each other, by page."""


def sketched(number: int) -> bytes:
    return rows_of((number, edited(page(1), number, 4)), contents=KEYS).tobytes()


PARTITIONS = 4
CONTENTS_OF_PAGES = {1: 8, 2: 17, 3: 26}  # of these, 17 and 26 are near copies, at home in partitions 1 and 2


def test_found_copies_are_kept_until_redis_cannot_forget_them(tmp_path: Path) -> None:
    """What was sent is not sent again by this owner, but by the next one, as long as Redis may forget it."""
    steps = Steps(tmp_path / "p0000")
    keys = {1: 10, 2: 20, 3: 30}
    sketched = {n: rows_of((n, edited(page(1), n, 4)), contents=keys).tobytes() for n in keys}
    steps.step(sketched=sketched[1] + sketched[2])
    found = OwedRows(steps.partition.committed, loss_ms=60_000)
    first = found.unsent_rows
    assert len(first) == KINDS[FOUND].itemsize
    found.record_sent(first, 1_000, none_of)
    assert (found.unsent_rows, steps.partition.committed.unsent_rows) == (b"", first)
    steps.step(sketched=sketched[3])
    second = found.unsent_rows
    assert len(second) == KINDS[FOUND].itemsize
    assert OwedRows(steps.partition.committed).unsent_rows == first + second, "as the next owner would send them"
    found.forget_safe(61_000)
    assert steps.partition.committed.unsent_rows == first + second
    found.send_again()
    found.record_sent(second, 1_500, none_of)  # under way when Redis may have forgotten
    assert found.unsent_rows == first + second
    found.record_sent(first + second, 2_000, none_of)
    steps.step((70, 1))
    found.forget_safe(62_000)
    assert (found.unsent_rows, steps.partition.committed.unsent_rows) == (b"", first + second)
    found.forget_safe(62_001)
    assert (found.unsent_rows, steps.partition.committed.unsent_rows) == (b"", b"")


def none_of(_rows: bytes) -> bytes:
    """Redis has taken all."""
    return b""


def test_found_copies_that_one_inbox_refuses_are_sent_again_alone(tmp_path: Path) -> None:
    """Redis has the others; the manifest keeps what was sent with the refused ones, and what came later."""
    steps = Steps(tmp_path / "p0000")
    keys = {1: 10, 2: 21, 3: 32, 4: 43}
    sketched = {n: rows_of((n, edited(page(1), n, 4)), contents=keys).tobytes() for n in keys}
    steps.step(sketched=b"".join(sketched[n] for n in (1, 2, 3)))
    found = OwedRows(steps.partition.committed)
    both, refused = found.unsent_rows, owed_in(found.unsent_rows, {1}, 10)
    assert (found.rows_unsent, len(refused)) == (2, KINDS[FOUND].itemsize)
    found.record_sent(both, 1_000, lambda rows: owed_in(rows, {1}, 10))
    assert (found.unsent_rows, found.rows_unsent) == (refused, 1)
    steps.step(sketched=sketched[4])
    last = owed_in(found.unsent_rows, {3}, 10)
    assert found.unsent_rows == refused + last
    found.record_sent(found.unsent_rows, 2_000, lambda rows: owed_in(rows, {1}, 10))
    found.forget_safe(90_000)
    assert (found.unsent_rows, steps.partition.committed.unsent_rows) == (refused, both + last)
    found.record_sent(refused, 90_000, none_of)
    found.forget_safe(90_000 + FORGETTABLE_MS)
    assert (found.rows_unsent, steps.partition.committed.unsent_rows) == (0, both + last)
    found.forget_safe(90_001 + FORGETTABLE_MS)
    assert steps.partition.committed.unsent_rows == b""


async def give_contents(w: World, node: Node, partition: int, *numbers: int) -> None:
    """Pages are told to a partition, whose next step is due."""
    packed = pack_each(b"", b"".join(map(sketched, numbers)))
    await w.client.command("XADD", PartitionKeys(w.config.crawl.name, partition).inbox, "*", OBSERVED, packed)
    node.ownership.owned[partition].inbox.record_others()
    w.clock.advance(1_000)


async def told(w: World) -> list[tuple[int, ...]]:
    """The rows about near copies in the inboxes of all partitions, folded or not."""
    rows = []
    for partition in range(w.config.crawl.partitions):
        entries = await w.client.command("XRANGE", PartitionKeys(w.config.crawl.name, partition).inbox, "-", "+")
        contents = [unpack_each(fields[1]) for _, fields in entries if fields[0] == OBSERVED]
        for each in contents:
            assert set(owed_by_partition(each.found.tobytes(), w.config.crawl.partitions)) <= {partition}
            rows += each.found.tolist()
    return sorted(rows)


def test_what_a_step_finds_is_sent_as_soon_as_redis_takes_it(tmp_path: Path, crawl_name: str) -> None:
    """Each look says that Redis refuses it, until Redis does not; then it is sent once, and the owner knows its own."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, server.url) as w:
            node = await w.joined()
            await node.ownership.folding.step_due(starved=False, idle=True)
            await give_contents(w, node, 1, 1, 2)
            server.client.config_set("maxmemory", "1")
            await node.ownership.folding.step_due(starved=False, idle=True)
            for _ in range(3):
                with pytest.raises(RedisRefusedError):
                    await node.ownership.folding.step_due(starved=False)
            assert await told(w) == []
            server.client.config_set("maxmemory", "0")
            for _ in range(3):
                await node.ownership.folding.step_due(starved=False)
            assert await told(w) == [(20, 2, 1)]
            w.clock.advance(1_000)
            await node.ownership.folding.step_due(starved=False, idle=True)
            assert sum(owned.disk.manifest.counts.get("near_copies", 0) for owned in node.ownership.owned.values()) == 1

    with PrivateRedis() as server:
        asyncio.run(scenario())


def test_what_an_owner_left_is_sent_by_the_next(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """At its first look, whether or not the partition steps; and forgotten once Redis cannot forget it."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            await node.ownership.folding.step_due(starved=False, idle=True)
            await give_contents(w, node, 2, 1, 3)
            await node.ownership.folding.step_due(starved=False, idle=True)
            assert await told(w) == [(30, 3, 1)]
            await node.ownership.reclaim_all()
            await node.ownership.folding.step_due(starved=False)
            assert await told(w) == [(30, 3, 1)] * 2
            node.parts.crawl.client._running_time.known_ms += w.config.frontier.redis_loss_ms + 1
            await node.ownership.folding.step_due(starved=False)
            assert not any(owned.owed.has_any for owned in node.ownership.owned.values())

    asyncio.run(scenario())


async def look(w: World) -> Survey:
    """What all nodes see once this one has told how its partitions are."""
    w.clock.advance(LOOK_MS)
    [node] = w.nodes
    await node.ownership.make_durable_due()
    return await survey(w.client, w.config.crawl.name, PARTITIONS)


def test_one_inbox_that_refuses_rows_does_not_have_others_get_theirs_again(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """The crawl is not finished until it has them; then it is."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=PARTITIONS) as w:
            node = await w.joined()
            inboxes = [PartitionKeys(crawl_name, number).inbox for number in range(PARTITIONS)]
            sketched = rows_of(*((n, edited(page(1), n, 4)) for n in CONTENTS_OF_PAGES), contents=CONTENTS_OF_PAGES)
            await w.client.command("XADD", inboxes[3], "*", OBSERVED, pack_each(b"", sketched.tobytes()))
            commands_each = node.parts.crawl.client.commands_each

            async def refusing(rows: Any) -> Any:
                replies = await commands_each([row for row in rows if row[1] != inboxes[1]])
                refusal = RedisRefusedError("OOM command not allowed when used memory > 'maxmemory'")
                return [refusal if row[1] == inboxes[1] else replies.pop(0) for row in rows]

            node.parts.crawl.client.commands_each = refusing  # type: ignore[method-assign]
            node.fold.record_inboxes()
            node.ownership.owned[3].inbox.record_others()
            for _ in range(4):
                w.clock.advance(30_000)
                try:
                    await node.ownership.folding.step_due(starved=True, idle=True)
                except RedisRefusedError:
                    continue
            lengths = [await w.client.command("XLEN", inbox) for inbox in inboxes]
            assert lengths == [0, 0, 1, 1]
            seen = await look(w)
            assert (seen.rows_untold, seen.is_empty) == (1, False)
            node.parts.crawl.client.commands_each = commands_each  # type: ignore[method-assign]
            for _ in range(3):
                w.clock.advance(30_000)
                await node.ownership.folding.step_due(starved=True, idle=True)
            assert await w.client.command("XLEN", inboxes[1]) == 1
            seen = await look(w)
            assert (seen.rows_untold, seen.is_empty) == (0, True)
            assert seen.counts["near_copies"] == 2

    asyncio.run(scenario())
