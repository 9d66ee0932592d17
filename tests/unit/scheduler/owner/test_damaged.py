"""Partitions with damaged files: they wait, the others go on, and the crawl does not call itself finished."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.exceptions import BigcrawlError, ConfigError, CorruptionError, TransientStoreError
from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.scheduler.node.loops.watch import STUCK_LOOKS
from bigcrawl.scheduler.owner.damaged import LOOK_MS
from tests.unit.scheduler.world import queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from tests.unit.scheduler.world import World

PAGES = [f"http://h{i}.example/" for i in range(12)]


async def offered(w: World, node: Node) -> None:
    for url in queued(*PAGES):
        node.offer(url)
    await w.turn(node, 2)


async def fetch_all(w: World, node: Node) -> set[str]:
    """Fetch what there is until nothing comes any more."""
    fetched: set[str] = set()
    while started := await w.take(node, 3):
        for held in started:
            w.end(node, held)
        fetched.update(held.url for held in started)
    return fetched


def error_of(kind: str) -> BigcrawlError:
    if kind == "checksum":
        return CorruptionError("p0001/e1/run-1", 4096, "block crc32 0x1", "0x2")
    error = TransientStoreError("p0001: Input/output error")
    error.__cause__ = OSError(errno.EIO, "Input/output error")
    return error


@pytest.mark.parametrize("kind", ["checksum", "medium"])
@pytest.mark.parametrize("where", ["fold", "durability.make_durable"])
def test_partition_whose_files_cannot_be_read_is_set_apart_and_the_others_go_on(
    tmp_path: Path, crawl_name: str, redis_url: str, kind: str, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said, drained and released with its mark; what is sound is fetched to the end; no node dies of it."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, durable_seconds=0.5) as w:
            node = await w.joined()
            bad = node.crawl.partition_of_host("h0.example")

            def fail(*_: Any) -> Any:
                raise error_of(kind)

            part, _, method = where.rpartition(".")
            owned = node.ownership.owned[bad]
            setattr(getattr(owned, part) if part else owned, method, fail)
            await offered(w, node)
            fetched = await fetch_all(w, node)
            assert bad not in node.ownership.owned
            assert len(node.ownership.owned) == 3
            elsewhere = {url for url in PAGES if node.crawl.partition_of_host(url.split("/")[2]) != bad}
            assert fetched >= elsewhere
            assert f"partition {bad} is set apart" in caplog.text
            assert (await node.progress.survey()).counts["damaged"] == 1
            assert not w.fatal

    asyncio.run(scenario())


def test_damaged_partition_is_opened_by_nobody_and_taken_up_again_when_it_was_mended(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Neither this node nor the next takes it; the crawl says that it cannot end; restored files are noticed."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            first = await w.joined()
            await offered(w, first)
            bad = first.crawl.partition_of_host("h0.example")
            await first.departure.close()
            [manifest] = (tmp_path / crawl_name / f"p{bad:04d}").glob("e*/MANIFEST")
            sound = manifest.read_bytes()
            manifest.write_bytes(sound[:40] + bytes([sound[40] ^ 1]) + sound[41:])
            second = await w.joined()
            assert sorted(second.ownership.owned) == [p for p in range(4) if p != bad]
            await second.departure.close()
            node = await w.joined()
            assert len(await fetch_all(w, node)) > 0
            assert sorted(node.ownership.owned) == [p for p in range(4) if p != bad]
            seen = await node.progress.survey()
            assert (seen.counts["damaged"], seen.is_empty) == (1, True)
            assert seen.urls_damaged > 0
            assert manifest.exists(), "what is named to the operator stays where it is"
            for _ in range(STUCK_LOOKS + 10):
                await node.watch.turn()
                await asyncio.sleep(0)
            assert not node.progress.is_finished
            assert isinstance(w.fatal[0], ConfigError)
            manifest.write_bytes(sound)
            w.clock.advance(2 * LOOK_MS)
            await node.watch.turn()
            assert node.ownership.damaged._look is not None
            await node.ownership.damaged._look
            await node.watch.turn()
            assert len(node.ownership.owned) == 4
            fetched = await fetch_all(w, node)
            assert fetched == {url for url in PAGES if node.crawl.partition_of_host(url.split("/")[2]) == bad}
            mark = await w.client.command("HGET", PartitionKeys(crawl_name, bad).state, "damaged")
            assert (mark, node.progress.is_finished) == (b"0", True)

    asyncio.run(scenario())


def test_damage_that_another_part_meets_sets_its_partition_apart(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Whoever reads a partition's file in a loop of the node; damage elsewhere ends the node."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            damaged = CorruptionError(tmp_path / crawl_name / "p0002" / "e1" / "run-1", 0, "this", "that")
            assert node.ownership.set_apart_by(damaged)
            assert [p for p, mine in node.ownership.owned.items() if mine.is_damaged] == [2]
            assert not node.ownership.set_apart_by(CorruptionError(tmp_path / crawl_name / "crawl.json", 0, "a", "b"))

    asyncio.run(scenario())
