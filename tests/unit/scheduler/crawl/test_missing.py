"""Partitions whose files are nowhere left: they wait, the others go on, and nothing of them begins anew."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.scheduler.crawl.missing import LOOK_MS
from bigcrawl.scheduler.node.loops.watch import STUCK_LOOKS
from tests.unit.scheduler.world import queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from tests.unit.scheduler.world import World

DURABLE_MS = 60_000
PAGES = [f"http://h{i}.example/" for i in range(12)]


async def fetch_all(w: World, node: Node) -> set[str]:
    """Fetch what there is until nothing comes any more."""
    fetched: set[str] = set()
    while started := await w.take(node, 3):
        for held in started:
            w.end(node, held)
        fetched.update(held.url for held in started)
    return fetched


async def mark_of(w: World, partition: int) -> int:
    key = PartitionKeys(w.config.crawl.name, partition).state
    return int(await w.client.command("HGET", key, "missing") or 0)


def test_partition_without_files_is_opened_by_nobody_until_they_are_back(
    tmp_path: Path, crawl_name: str, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The others are fetched; the crawl says that it cannot end; files that are put back are found."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            first = await w.joined()
            for url in queued(*PAGES):
                first.offer(url)
            await w.turn(first, 2)
            lost = first.crawl.partition_of_host("h0.example")
            its = {url for url in PAGES if first.crawl.partition_of_host(url.split("/")[2]) == lost}
            await first.departure.close()
            place, away = tmp_path / crawl_name / f"p{lost:04d}", tmp_path / "away"
            place.rename(away)
            second = await w.joined()
            assert sorted(second.ownership.owned) == [p for p in range(4) if p != lost]
            await second.departure.close()
            node = await w.joined()
            assert await fetch_all(w, node) == set(PAGES) - its
            assert not place.exists()
            seen = await node.progress.survey()
            assert (seen.counts["missing"], seen.urls_missing, seen.is_empty) == (1, len(its), True)
            assert "BIGCRAWL_LOST_PARTITIONS=refetch" in seen.holdup
            assert caplog.text.count(f"partition {lost} is set apart") == 1, "the second node asks for it and is quiet"
            for _ in range(STUCK_LOOKS + 10):
                await node.watch.turn()
                await asyncio.sleep(0)
            assert not node.progress.is_finished
            assert isinstance(w.fatal[0], ConfigError)
            away.rename(place)
            w.clock.advance(LOOK_MS)
            await node.watch.turn()
            assert len(node.ownership.owned) == 4
            assert await fetch_all(w, node) == its
            await node.departure.close()
            assert await mark_of(w, lost) == 0

    asyncio.run(scenario())


def test_partition_whose_files_are_an_older_copy_waits_for_the_newer(
    tmp_path: Path, crawl_name: str, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Redis has dropped what came since that copy: its URLs would be lost."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            first = await w.joined()
            lost = first.crawl.partition_of_host("h0.example")
            place, old, newer = tmp_path / crawl_name / f"p{lost:04d}", tmp_path / "old", tmp_path / "newer"
            for number in range(4):
                for url in queued(*(f"{page}{number}" for page in PAGES)):
                    first.offer(url)
                await w.turn(first, 2)
                w.clock.advance(DURABLE_MS)
                await first.ownership.make_durable_due()
                if not number:
                    shutil.copytree(place, old)
            await first.departure.close()
            place.rename(newer)
            old.rename(place)
            second = await w.joined()
            assert sorted(second.ownership.owned) == [p for p in range(4) if p != lost]
            assert f"{place} have older files of partition {lost} than there were" in caplog.text
            w.clock.advance(LOOK_MS)
            await second.watch.turn()
            assert lost not in second.ownership.owned, "they are still older"
            assert "are back; it continues" not in caplog.text
            place.rename(old)
            newer.rename(place)
            w.clock.advance(LOOK_MS)
            await second.watch.turn()
            assert len(second.ownership.owned) == 4
            fetched = await fetch_all(w, second)
            assert fetched == {f"{page}{number}" for page in PAGES for number in range(4)}

    asyncio.run(scenario())


@pytest.mark.parametrize("is_old", [False, True])
def test_state_directory_that_is_another_one_is_waited_for(
    tmp_path: Path, crawl_name: str, redis_url: str, is_old: bool
) -> None:
    """It is unmounted, or an older copy, under a node that runs: nothing is made there, and nothing is lost."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            place, away, wrong = tmp_path / crawl_name, tmp_path / "away", tmp_path / "wrong"

            async def offer(part: str) -> None:
                for url in queued(*(f"{page}{part}" for page in PAGES)):
                    node.offer(url)
                for _ in range(2):
                    with suppress(TransientStoreError):
                        await w.turn(node, 1)
                    w.clock.advance(DURABLE_MS)
                    with suppress(TransientStoreError):
                        await node.ownership.make_durable_due()

            await offer("a")
            shutil.copytree(place, wrong) if is_old else wrong.mkdir()
            await offer("b")
            shutil.rmtree(wrong / "nodes", ignore_errors=True)  # as before this node began
            before = sorted(wrong.rglob("*"))
            place.rename(away)
            wrong.rename(place)
            await offer("c")
            with pytest.raises(TransientStoreError, match=f"{place} is not the directory that .*mount it"):
                await node.ownership.claims.claim([0])
            if not is_old:
                with pytest.raises(TransientStoreError, match="mount it"):
                    await node.crawl.check()  # as after a restart of Redis
            place.rename(wrong)
            assert sorted(wrong.rglob("*")) == before, "nothing is made there"
            away.rename(place)
            w.clock.advance(LOOK_MS)
            fetched: set[str] = set()
            for _ in range(100):
                w.clock.advance(LOOK_MS)
                fetched |= await fetch_all(w, node)
                if len(fetched) == 3 * len(PAGES):
                    break
            assert fetched == {f"{page}{part}" for page in PAGES for part in "abc"}
            assert not w.fatal

    asyncio.run(scenario())


def test_node_that_may_go_on_takes_up_what_another_has_set_apart(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """It begins the partition anew, removes the mark, and counts the URLs that had ended and those in Redis."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            first = await w.joined()
            for url in queued(*PAGES):
                first.offer(url)
            await w.turn(first, 2)
            [*ended, _] = await w.take(first, len(PAGES))
            for held in ended:
                w.end(first, held)
            await w.turn(first, 1)
            await first.departure.close()
            for directory in (tmp_path / crawl_name).glob("p0*"):
                shutil.rmtree(directory)
            waiting = await w.joined()
            assert not waiting.ownership.owned
            assert (await waiting.progress.survey()).counts["missing"] == 4
            await waiting.departure.close()
        async with world(tmp_path, crawl_name, redis_url, lost_partitions="refetch") as w:
            node = await w.joined()
            assert len(node.ownership.owned) == 4
            await w.turn(node, 2)
            await node.departure.close()
            seen = await node.progress.survey()
            assert (seen.counts["missing"], seen.counts["begun_anew"], seen.counts["may_refetch"]) == (0, 4, len(PAGES))

    asyncio.run(scenario())
