"""A node with a store: what it waits for, what it does not, and what happens when the files are nowhere left."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.redisdb.keys import CrawlKeys, PartitionKeys
from bigcrawl.scheduler.crawl.deletion import delete_crawl
from bigcrawl.scheduler.crawl.missing import LOOK_MS
from bigcrawl.scheduler.owner.node_store import NodeStore
from tests.unit.scheduler.world import World, queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node

PAGES = [f"http://h{i}.example/" for i in range(12)]
STORE_S = 60


def on_machine(w: World, name: str) -> None:
    """Nodes made from here on have a state directory of their own."""
    place = w.config.crawl.state_dir.parent / name
    w.config = w.config.replace(crawl=w.config.crawl.replace(state_dir=place))


async def fold(w: World, node: Node, pages: list[str]) -> None:
    """The pages are sent, folded and admitted."""
    for url in queued(*pages):
        node.offer(url)
    await node.pump.flush()
    node.fold.record_inboxes()
    w.clock.advance(1_000)
    await node.ownership.folding.step_due(starved=True)


def stored(node: Node) -> NodeStore:
    assert isinstance(node.ownership.store, NodeStore)
    return node.ownership.store


async def store(w: World, node: Node) -> None:
    """The points that are due have been made, or have failed."""
    w.clock.advance(STORE_S * 1_000)
    await node.ownership.make_durable_due()
    while tasks := list(stored(node)._storing.values()):
        await asyncio.wait(tasks)
        w.clock.advance(1_000)
        await node.ownership.make_durable_due()


async def expire(w: World) -> None:
    """The leases of all owners have run out."""
    await w.expire_leases(*range(4))


async def leave_dead(w: World, node: Node) -> None:
    """The node is dead, and nobody can prove it."""
    await node.membership.leave(node.parts.crawl.client)
    await expire(w)


def test_a_node_with_an_empty_disk_goes_on_from_the_store(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """It has what was stored and what the inbox brought since; each page is fetched once."""

    async def scenario() -> None:
        async with world(tmp_path / "a", crawl_name, redis_url, store_url=f"file://{tmp_path}/store") as w:
            first = await w.joined()
            await fold(w, first, PAGES[:6])
            await store(w, first)
            await fold(w, first, PAGES[6:])
            await store(w, first)
            await fold(w, first, [f"{page}more" for page in PAGES])
            entries = [await w.client.command("XLEN", PartitionKeys(crawl_name, p).inbox) for p in range(4)]
            assert 0 < sum(entries) < 24, "the inbox is kept from the point before the last on, and no longer"
            await leave_dead(w, first)
            on_machine(w, "b")
            second = await w.joined()
            assert len(second.ownership.owned) == 4
            await fold(w, second, PAGES)
            taken = []
            for _ in range(4):
                for held in await w.take(second):
                    taken.append(held.url)
                    w.end(second, held)
            assert sorted(taken) == sorted([*PAGES, *(f"{page}more" for page in PAGES)])

    asyncio.run(scenario())


def test_a_store_that_refuses_or_hangs_stops_no_step(
    tmp_path: Path, crawl_name: str, redis_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps go on, nothing is trimmed, one line says so; when the store answers again, points are made."""

    async def scenario() -> None:
        async with world(tmp_path / "a", crawl_name, redis_url, store_url=f"file://{tmp_path}/store") as w:
            node = await w.joined()
            objects = node.parts.crawl.objects
            assert objects is not None
            monkeypatch.setattr(objects, "_call_s", 0.2)
            os.mkfifo(tmp_path / "hangs")
            write = objects.put
            monkeypatch.setattr(
                objects, "put", lambda name, data: objects._call_in_thread((tmp_path / "hangs").read_bytes)
            )
            for at in range(4):
                await fold(w, node, [f"{page}{at}" for page in PAGES])
                await store(w, node)
            assert sum(len(owned.disk.state.tables.seen) for owned in node.ownership.owned.values()) == 48
            entries = [await w.client.command("XLEN", PartitionKeys(crawl_name, p).inbox) for p in range(4)]
            assert sum(entries) >= 4
            warned = [record for record in caplog.records if "are not backed up to the store" in record.message]
            assert len(warned) == 1
            monkeypatch.setattr(objects, "put", write)
            for _ in range(2):
                await fold(w, node, [f"{page}last{_}" for page in PAGES])
                await store(w, node)
            after = [await w.client.command("XLEN", PartitionKeys(crawl_name, p).inbox) for p in range(4)]
            assert sum(after) < sum(entries)
            objects.close()

    asyncio.run(scenario())


def test_a_store_that_is_unmounted_is_not_made_below_its_mount_point(
    tmp_path: Path, crawl_name: str, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing counts as durable meanwhile, one line says what to do, and all is there once it is mounted again."""

    async def scenario() -> None:
        place = tmp_path / "store"
        async with world(tmp_path / "a", crawl_name, redis_url, store_url=f"file://{place}") as w:
            node = await w.joined()
            for more in ("", "b", "c"):
                await fold(w, node, [f"{page}{more}" for page in PAGES])
                await store(w, node)
            states = [PartitionKeys(crawl_name, p).state for p in range(4)]
            trimmed = await w.client.commands([("HGET", state, "trimmed") for state in states])
            assert any(trimmed)
            place.rename(tmp_path / "away")
            place.mkdir()
            for more in ("d", "e", "f"):
                await fold(w, node, [f"{page}{more}" for page in PAGES])
                await store(w, node)
            assert not list(place.iterdir())
            assert await w.client.commands([("HGET", state, "trimmed") for state in states]) == trimmed
            [said] = [record.message for record in caplog.records if "are not backed up to the store" in record.message]
            assert f"file://{place} is not the store in which the crawl was begun" in said
            assert "mount it, or bring it back" in said
            with pytest.raises(TransientStoreError, match="mount it"):
                await node.crawl.check()  # as after a restart of Redis
            place.rmdir()
            (tmp_path / "away").rename(place)
            await fold(w, node, [f"{page}g" for page in PAGES])
            await store(w, node)
            await leave_dead(w, node)
            on_machine(w, "b")
            second = await w.joined()
            fetched: Counter[str] = Counter()
            while started := await w.take(second, 3):
                fetched.update(held.url for held in started)
                for held in started:
                    w.end(second, held)
            assert fetched == Counter(f"{page}{more}" for page in PAGES for more in ("", *"bcdefg"))

    asyncio.run(scenario())


@pytest.mark.parametrize("lost_partitions", ["wait", "refetch"])
def test_points_that_are_older_than_what_redis_has_dropped_are_not_gone_on_with(
    tmp_path: Path, crawl_name: str, redis_url: str, caplog: pytest.LogCaptureFixture, lost_partitions: str
) -> None:
    """The store was restored from a backup, and the machine is lost: its partitions wait for the newer store."""

    async def scenario() -> None:
        place = tmp_path / "store"
        settings = {"store_url": f"file://{place}", "lost_partitions": lost_partitions}
        async with world(tmp_path / "a", crawl_name, redis_url, **settings) as w:
            node = await w.joined()
            await fold(w, node, PAGES)
            await store(w, node)
            shutil.copytree(place, tmp_path / "old")
            for more in "bcd":
                await fold(w, node, [f"{page}{more}" for page in PAGES])
                await store(w, node)
            owned = len(node.ownership.owned)
            await leave_dead(w, node)
            place.rename(tmp_path / "newer")
            (tmp_path / "old").rename(place)
            on_machine(w, "b")
            second = await w.joined()
            used = {second.crawl.partition_of_host(page.split("/")[2]) for page in PAGES}
            if lost_partitions == "refetch":
                assert len(second.ownership.owned) == owned
                assert "URLs that arrived since are lost" in caplog.text
                return
            assert not used & set(second.ownership.owned)
            assert f"{tmp_path / 'b' / crawl_name}" in caplog.text
            assert f"the store file://{place} have older files of partition" in caplog.text
            place.rename(tmp_path / "old")
            (tmp_path / "newer").rename(place)
            w.clock.advance(LOOK_MS)
            await second.watch.turn()
            assert len(second.ownership.owned) == owned
            assert sum(len(each.disk.state.tables.seen) for each in second.ownership.owned.values()) == 4 * len(PAGES)

    asyncio.run(scenario())


def test_a_store_that_is_away_at_the_start_is_an_error(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The message names the store; a node waits for it as for Redis."""

    async def scenario() -> None:
        (tmp_path / "store").write_text("no directory")
        async with world(tmp_path / "a", crawl_name, redis_url, store_url=f"file://{tmp_path}/store") as w:
            with pytest.raises(TransientStoreError, match="the store file://"):
                await w.joined()

    asyncio.run(scenario())


@pytest.mark.parametrize("lost_partitions", ["stop", "refetch"])
def test_files_that_are_nowhere_left_stop_the_node_or_are_begun_anew(
    tmp_path: Path, crawl_name: str, redis_url: str, lost_partitions: str
) -> None:
    """Going on keeps what Redis has, counts the partitions, and lets start requests be sent again."""

    async def scenario() -> None:
        url = f"file://{tmp_path}/store"
        settings = {"store_url": url, "lost_partitions": lost_partitions}
        async with world(tmp_path / "a", crawl_name, redis_url, **settings) as w:
            first = await w.joined()
            await fold(w, first, PAGES)
            await first.starts.claim("seeds")
            await first.starts.end()
            await leave_dead(w, first)
            for points in (tmp_path / "store" / crawl_name).glob("p*"):
                shutil.rmtree(points)
            on_machine(w, "b")
            if lost_partitions == "stop":
                with pytest.raises(ConfigError, match="BIGCRAWL_LOST_PARTITIONS=refetch"):
                    await w.joined()
                return
            second = await w.joined()
            assert await second.starts.claim("seeds") == 1
            states = [PartitionKeys(crawl_name, p).state for p in range(4)]
            marks = await w.client.commands([("HGET", key, "begun_anew") for key in states])
            assert sum(int(mark or 0) for mark in marks) > 0
            assert sorted(held.url for held in await w.take(second, 10)) == sorted(PAGES)

    asyncio.run(scenario())


def test_store_redis_and_settings_must_belong_together(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A node without the store, with an empty one, or with a Redis that lost the crawl does not start."""

    async def scenario() -> None:
        async with world(tmp_path / "a", crawl_name, redis_url, store_url=f"file://{tmp_path}/store") as w:
            first = await w.joined()
            await fold(w, first, PAGES)
            await leave_dead(w, first)
            config = w.config
            w.config = config.replace(store=config.store.replace(url=None))
            with pytest.raises(ConfigError, match="set BIGCRAWL_STORE_URL"):
                await w.joined()
            w.config = config.replace(store=config.store.replace(url=f"file://{tmp_path}/other"))
            with pytest.raises(ConfigError, match="check BIGCRAWL_STORE_URL"):
                await w.joined()
            w.config = config
            on_machine(w, "b")
            await w.client.command("DEL", CrawlKeys(crawl_name).crawl)
            with pytest.raises(ConfigError, match="the Redis does not know it"):
                await w.joined()
            first.membership.unlock()
            deleted = await delete_crawl(w.config)
            assert deleted.objects > 4
            assert not [path for path in (tmp_path / "store").rglob("*") if path.is_file()]

    asyncio.run(scenario())


def test_a_checkpoint_is_told_when_the_store_has_it(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """An order makes points before their time; Redis is told of it once the store has all, and not earlier."""

    async def told(w: World) -> list[int]:
        keys = [PartitionKeys(crawl_name, partition).state for partition in range(4)]
        return [int(await w.client.command("HGET", key, "checkpoint") or 0) for key in keys]

    async def obey(w: World, node: Node, order: int) -> None:
        for _ in range(4):
            w.clock.advance(3_000)
            await node.ownership.make_durable_due(order)
            if tasks := list(stored(node)._storing.values()):
                await asyncio.wait(tasks)

    async def scenario() -> None:
        async with world(tmp_path / "a", crawl_name, redis_url, store_url=f"file://{tmp_path}/store") as w:
            node = await w.joined()
            await fold(w, node, PAGES)
            await obey(w, node, 5)
            assert await told(w) == [5] * 4
            await obey(w, node, 6)
            assert await told(w) == [6] * 4, "nothing is new, so the store has it"
            shutil.move(tmp_path / "store", tmp_path / "away")
            (tmp_path / "store").write_text("a file, where a directory was")
            await fold(w, node, [f"{page}more" for page in PAGES])
            await obey(w, node, 7)
            assert 6 in await told(w), "what is not stored is not durable"
            (tmp_path / "store").unlink()
            shutil.move(tmp_path / "away", tmp_path / "store")
            await obey(w, node, 7)
            assert await told(w) == [7] * 4

    asyncio.run(scenario())
