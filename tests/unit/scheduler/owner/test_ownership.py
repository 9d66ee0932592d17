"""Claims, steps and releases of many partitions: one that is lost or fails takes no other with it."""

from __future__ import annotations

import asyncio
import shutil
import threading
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys, PartitionKeys
from bigcrawl.redisdb.scripts import GrantedClaim
from bigcrawl.scheduler.node.loops import beat
from bigcrawl.scheduler.owner.durable_rounds import DURABLE_AT_ONCE
from bigcrawl.scheduler.owner.folding import INBOX_ENTRIES_AT_ONCE, INBOX_ENTRIES_EACH, entries_per_partition
from bigcrawl.scheduler.owner.hot.hot_share import LATE_MS
from bigcrawl.scheduler.partition.file_work import FileWork, ThrottledFiles
from tests.unit.scheduler.world import World, queued, world

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node

PAGES = [f"http://h{i}.example/" for i in range(12)]


async def steal(w: World, partition: int) -> None:
    """Another node's claim, as if our lease had run out."""
    keys = PartitionKeys(w.config.crawl.name, partition)
    await w.expire_leases(partition)
    call = scripts.claim_partition(
        keys,
        node="thief",
        token="",
        lease_ms=60_000,
        epoch_min=0,
        dead_token="",
        deadline_ms=0,
        abort_ms=0,
        forgotten_ms=0,
        delay_ms=0,
        generation=1,
    )
    [claim] = await w.client.run([call])
    assert isinstance(claim, GrantedClaim)


async def offered(w: World, node: Node) -> None:
    """All pages are in the inboxes, and the next step is due."""
    for url in queued(*PAGES):
        node.offer(url)
    await node.pump.flush()
    node.fold.record_inboxes()
    w.clock.advance(1_000)


def test_live_owner_is_never_fenced(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Who joins gets nothing that a live node holds, however much it should own it, until it is released."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            first = await w.joined()
            second = await w.joined()
            assert len(first.ownership.owned) == 4
            assert not second.ownership.owned
            await first.beat.turn()
            await second.beat.turn()  # hears what the first one owns
            await first.watch.turn()
            await second.watch.turn()
            assert len(first.ownership.owned) + len(second.ownership.owned) == 4
            assert second.ownership.owned

    asyncio.run(scenario())


def test_lost_partition_is_dropped_and_the_others_step_on(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A partition that another node claimed costs a step of its own, and no other partition anything."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            await offered(w, node)
            lost = node.crawl.partition_of_host("h0.example")
            await steal(w, lost)
            await node.ownership.folding.step_due(starved=True)
            assert sorted(node.ownership.owned) == [p for p in range(4) if p != lost]
            kept = [url for url in PAGES if node.crawl.partition_of_host(url.split("/")[2]) != lost]
            started = await w.take(node, 2)
            assert sorted(held.url for held in started) == sorted(kept)

    asyncio.run(scenario())


@pytest.mark.parametrize("opened", [True, False])
def test_partition_that_was_taken_over_before_it_was_opened_is_left_to_its_owner(
    tmp_path: Path, crawl_name: str, redis_url: str, *, opened: bool
) -> None:
    """A node that was stopped between claim and opening comes late: it drops that claim, and opens the others."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            first = await w.joined()
            await offered(w, first)
            await first.ownership.folding.step_due(starved=True)
            other = w.new_node()
            await other.parts.crawl.join()
            opener = first.ownership._opener
            reopen = opener.open

            async def late(partition: int, *claimed: Any) -> Any:
                if partition == 1:
                    await w.expire_leases(1)
                    # That one is not opened by its new owner either, or it is, and the batches were admitted.
                    await (other.ownership.claims.claim([1]) if opened else steal(w, 1))
                    await w.client.command("HSET", PartitionKeys(crawl_name, 1).state, "admitted", 0)
                return await reopen(partition, *claimed)

            opener.open = late  # type: ignore[method-assign,assignment]
            await first.ownership.reclaim_all()
            assert sorted(first.ownership.owned) == [0, 2, 3]
            assert sorted(other.ownership.owned) == [1] * opened
            assert not w.fatal

    asyncio.run(scenario())


@pytest.mark.parametrize("when", ["at the start", "after a restart of Redis"])
def test_leases_are_renewed_while_many_partitions_are_opened(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Those that are open, and those that are claimed and still to be opened, on a slow disk."""
    monkeypatch.setattr(beat, "BEAT_S", 0.01)

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = w.new_node()
            looks = [scripts.look_partition(PartitionKeys(crawl_name, partition)) for partition in range(4)]
            opener = node.ownership._opener
            opened = opener.open

            async def slow(partition: int, *claimed: Any) -> Any:
                if partition != 2:
                    return await opened(partition, *claimed)
                await w.expire_leases(*range(4))
                w.clock.advance(node.config.frontier.lease_ms)
                for _ in range(2_000):
                    if all(view.lease_left_ms > 0 for view in await w.client.run(looks)):
                        return await opened(partition, *claimed)
                    await asyncio.sleep(0.01)
                raise AssertionError("a lease was not renewed")

            if when != "at the start":
                await node.arrival.join()
            opener.open = slow  # type: ignore[method-assign,assignment]
            await asyncio.wait_for(node.arrival.join() if when == "at the start" else node.recovery.run(), 60)
            assert len(node.ownership.owned) == 4

    asyncio.run(scenario())


def test_node_whose_disk_hangs_leaves_its_partitions_to_others_and_rejoins(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """It says no more that it lives; what its thread writes in the end is read by nobody, and each URL comes once."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, lease_seconds=30) as w:
            node = await w.joined()
            other = await w.joined()
            await offered(w, node)
            hangs, goes_on = threading.Event(), threading.Event()
            files = node.ownership._thread.files
            write_at = files.write_at

            def hanging(*args: Any, **kinds: Any) -> None:
                hangs.set()
                assert goes_on.wait(60)
                write_at(*args, **kinds)

            files.write_at = hanging  # type: ignore[method-assign]
            folding = asyncio.create_task(node.fold.turn())
            assert await asyncio.to_thread(hangs.wait, 60)
            w.clock.advance(29_000)
            await node.beat.turn()
            assert node.room.urls() > 0
            beaten = await w.client.command("ZSCORE", CrawlKeys(crawl_name).beats, node.node_id)
            w.clock.advance(2_000)
            await node.beat.turn()
            assert node.room.urls() == 0
            assert await w.client.command("ZSCORE", CrawlKeys(crawl_name).beats, node.node_id) == beaten
            # So much for a lease's time: it runs out by Redis' clock.
            await w.client.command("ZADD", CrawlKeys(crawl_name).beats, 0, node.node_id)
            await w.expire_leases(*range(4))
            started = await w.take(other)
            assert sorted(held.url for held in started) == sorted(PAGES)
            assert sorted(other.ownership.owned) == [0, 1, 2, 3]
            goes_on.set()
            await folding
            await node.beat.turn()
            assert not node.ownership.owned
            await w.turn(other)
            await w.turn(node)
            assert not w.fatal
            assert not await w.take(node)

    asyncio.run(scenario())


def test_long_work_that_gets_on_is_no_standstill() -> None:
    """Each portion that is written is a sign of life; between two of them patience begins anew."""
    clock = ManualClock()
    work = FileWork(clock, 30_000)
    files = ThrottledFiles(lambda: False, work.record_sign)
    seen = []

    def chunks() -> Iterator[bytes]:
        for _ in range(4):
            clock.advance(20_000)
            seen.append(work.stands_still)
            yield b"portion"
        clock.advance(31_000)
        seen.append(work.stands_still)

    with TemporaryDirectory() as directory:
        work.run(lambda: files.write_new(f"{directory}/run", chunks()))
    assert seen == [False] * 4 + [True]
    assert not work.stands_still, "it has nothing to do"


def test_extra_urls_have_the_less_of_memory_the_longer_the_node_is_behind(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Half of it after two seconds, a quarter, an eighth; and back when hosts are taken as they fall due, or none."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            mine = next(iter(node.ownership.owned.values()))
            mine.hot.urls_max = 64
            rooms = []
            for late_ms in (0, *(2 * LATE_MS,) * 9, None, None, 2 * LATE_MS, 2 * LATE_MS, 0, 0, 0, 0):
                w.clock.advance(1_000)
                for _ in range(500 if late_ms is not None else 0):
                    node.handout.ends._failing_share.count_taken(late_ms or 0, w.clock.monotonic_ms(), fails=False)
                await node.ownership.folding.step_due(starved=False)
                rooms.append(mine.hot.extra_room)
                assert mine.hot.room == 64
            assert rooms[:10] == [64, 64, 64, 32, 32, 16, 16, 8, 8, 8]
            assert rooms[10:] == [8, 16, 16, 16, 16, 32, 64, 64]

    asyncio.run(scenario())


def test_partition_whose_step_fails_does_not_keep_the_others_from_being_told(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """A full disk under one partition: the others are admitted, the failed step is repeated."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            await offered(w, node)
            broken = node.ownership.owned[node.crawl.partition_of_host("h0.example")]
            fold = broken.fold

            def full(*_: Any) -> Any:
                raise TransientStoreError("no space left on device")

            broken.fold = full  # type: ignore[method-assign,assignment]
            with pytest.raises(TransientStoreError):
                await node.ownership.folding.step_due(starved=True)
            hot = sum(mine.hot.urls for mine in node.ownership.owned.values())
            assert 0 < hot < len(PAGES)
            broken.fold = fold  # type: ignore[method-assign]
            w.clock.advance(1_000)
            await node.ownership.folding.step_due(starved=True)
            assert sum(mine.hot.urls for mine in node.ownership.owned.values()) == len(PAGES)

    asyncio.run(scenario())


def test_batch_committed_while_redis_was_away_is_admitted_afterwards(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """The commit stands; its admission is repeated until Redis has it, and taken once."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            await offered(w, node)
            run_each = node.parts.crawl.client.run_each

            async def away(calls: Any) -> Any:
                raise TransientStoreError("gone")

            node.parts.crawl.client.run_each = away  # type: ignore[method-assign]
            with pytest.raises(TransientStoreError):
                await node.ownership.folding.step_due(starved=True)
            node.parts.crawl.client.run_each = run_each  # type: ignore[method-assign]
            assert (await node.progress.survey()).urls_queued == 0
            w.clock.advance(1_000)
            await node.ownership.folding.step_due(starved=True)
            await node.ownership.folding.step_due(starved=True)
            assert (await node.progress.survey()).urls_queued == len(PAGES)

    asyncio.run(scenario())


def test_release_that_redis_did_not_hear_is_repeated(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A partition stays owned until Redis has taken it back; then another node can claim it at once."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            run_each = node.parts.crawl.client.run_each

            async def away(calls: Any) -> Any:
                raise TransientStoreError("gone")

            node.parts.crawl.client.run_each = away  # type: ignore[method-assign]
            mine = list(node.ownership.owned.values())
            with pytest.raises(TransientStoreError):
                await node.ownership.releases.release(mine)
            assert list(node.ownership.owned.values()) == mine
            node.parts.crawl.client.run_each = run_each  # type: ignore[method-assign]
            await node.ownership.releases.release(mine)
            assert not node.ownership.owned
            assert (await node.progress.survey()).owned == 0

    asyncio.run(scenario())


def test_many_partitions_are_released_a_few_at_a_time(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A stop that runs out of time in the middle has released what it could."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=3 * DURABLE_AT_ONCE) as w:
            node = await w.joined()
            for mine in node.ownership.owned.values():
                mine.disk.committed.begin()
            run_each, rounds = node.parts.crawl.client.run_each, 0

            async def slow(calls: Any) -> Any:
                nonlocal rounds
                rounds += 1
                if rounds == 3:
                    raise TimeoutError
                return await run_each(calls)

            node.parts.crawl.client.run_each = slow  # type: ignore[method-assign]
            with pytest.raises(TimeoutError):
                await node.ownership.releases.release(list(node.ownership.owned.values()))
            assert len(node.ownership.owned) == (await node.progress.survey()).owned == DURABLE_AT_ONCE

    asyncio.run(scenario())


def test_partitions_without_files_are_released_in_one_round_trip(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Before the others, of which Redis is told the last counts."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=3 * DURABLE_AT_ONCE) as w:
            node = await w.joined()
            owned = list(node.ownership.owned.values())
            owned[5].disk.committed.begin()
            run_each, sent = node.parts.crawl.client.run_each, []

            async def noted(calls: Any) -> Any:
                sent.append([call.name for call in calls])
                return await run_each(calls)

            node.parts.crawl.client.run_each = noted  # type: ignore[method-assign]
            await node.ownership.releases.release(owned)
            empty, begun = ["release_partition"] * (len(owned) - 1), ["trim_partition", "release_partition"]
            assert sent == [empty, begun]
            assert (await node.progress.survey()).owned == 0

    asyncio.run(scenario())


def test_partition_that_redis_knows_is_not_opened_without_its_files(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Begun in Redis, gone from the disk: an error for the operator who wants that, never a fresh start."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, lost_partitions="stop") as w:
            node = await w.joined()
            await offered(w, node)
            await node.ownership.folding.step_due(starved=True)
            await node.departure.close()
            for directory in (tmp_path / crawl_name).glob("p0*"):
                shutil.rmtree(directory)
            with pytest.raises(ConfigError, match="holds no manifest"):
                await w.joined()

    asyncio.run(scenario())


def test_round_reads_a_bounded_number_of_inbox_entries(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """However many partitions step together, what a round holds in memory is bounded."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=64) as w:
            node = await w.joined()
            w.clock.advance(1_000)
            for mine in node.ownership.owned.values():
                mine.inbox.record_urls()
            commands, asked = node.parts.crawl.client.commands, 0

            async def counting(rows: Any) -> Any:
                nonlocal asked
                asked += sum(row[-1] for row in rows if row[0] == "XRANGE")
                return await commands(rows)

            node.parts.crawl.client.commands = counting  # type: ignore[method-assign]
            await node.ownership.folding.step_due(starved=True)
            assert 0 < asked <= INBOX_ENTRIES_AT_ONCE

    asyncio.run(scenario())


def test_manifests_are_made_durable_in_time_and_a_few_at_a_time(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Nothing is forced to the disk before its time; then a few partitions a round until all are."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=80, durable_seconds=10) as w:
            node = await w.joined()

            def undurable() -> int:
                return sum(mine.disk.committed.has_undurable_changes for mine in node.ownership.owned.values())

            await node.ownership.make_durable_due()
            assert undurable() == 0, "nothing was written"
            for mine in node.ownership.owned.values():
                mine.disk.committed.begin()
                node.ownership.table.record_files(mine)  # as the step that begins it does
            await node.ownership.make_durable_due()
            assert undurable() == 80
            w.clock.advance(10_000)
            left = []
            for _ in range(3):
                await node.ownership.make_durable_due()
                left.append(undurable())
            assert left == [48, 16, 0]

    asyncio.run(scenario())


def test_partitions_that_have_waited_longest_are_made_durable_first(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Where some are due again before all have had their turn, none is passed over: its inbox would only grow."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=80, durable_seconds=10) as w:
            node = await w.joined()
            owned = list(node.ownership.owned.values())
            w.clock.advance(20_000)
            for place, mine in enumerate(owned):
                mine.disk.committed.begin()
                mine.durability.forced_ms = w.clock.monotonic_ms() - 10_000 - place
            await node.ownership.make_durable_due()
            assert [mine.disk.committed.has_undurable_changes for mine in owned] == [True] * 48 + [False] * 32

    asyncio.run(scenario())


def test_partitions_that_have_waited_longest_step_first(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A node that is short of URLs steps again at once; those behind the first ones have their turn all the same."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=80) as w:
            node = await w.joined()
            owned = list(node.ownership.owned.values())
            w.clock.advance(20_000)
            for place, mine in enumerate(owned):
                mine.inbox.record_urls()
                mine.schedule.record_step(w.clock.monotonic_ms() - 10_000 - place)
            await node.ownership.folding.step_due(starved=True)
            assert [mine.inbox.has_urls for mine in owned] == [True] * 16 + [False] * 64

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("unfolded", "shares"),
    [
        ([0, 5, 40], [32, 32, 40]),
        ([10_000] * 20, [256] * 8),
        ([10_000] * 7 + [300] + [1] * 40, [256] * 8),
        ([1] * 200, [32] * 64),
    ],
)
def test_round_is_of_many_partitions_with_little_or_of_few_with_much(
    tmp_path: Path, crawl_name: str, redis_url: str, unfolded: list[int], shares: list[int]
) -> None:
    """How many entries are read of which partition: together they are bounded."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=200) as w:
            node = await w.joined()
            due = list(node.ownership.owned.values())[: len(unfolded)]
            for mine, urls in zip(due, unfolded, strict=True):
                mine.inbox.record_urls()
                mine.inbox.unfolded_urls = urls
            assert list(entries_per_partition(due).values()) == shares
            assert sum(shares) <= INBOX_ENTRIES_AT_ONCE
            due[0].inbox.has_urls, due[0].inbox.has_others = False, True
            assert entries_per_partition(due)[due[0]] == INBOX_ENTRIES_EACH
            due[0].inbox.has_others = False
            assert entries_per_partition(due)[due[0]] == 0

    asyncio.run(scenario())


def test_urls_are_counted_that_wait_in_a_redis_that_is_new(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """It counts what is appended from zero; spiders are held back for what waits there, whatever was folded before."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
            node = await w.joined()
            await offered(w, node)
            assert (await node.ownership.folding.step_due(starved=False)).admitted == len(PAGES)
            [mine] = node.ownership.owned.values()
            await w.client.commands([("HDEL", mine.keys.state, "appended_urls")])  # as a new one would have it
            node.fold.record_inboxes()
            await node.beat.leases.renew()
            assert mine.inbox.unfolded_urls == 0
            node.offer(queued("http://late.example/")[0])
            await node.pump.flush()
            node.fold.record_inboxes()
            await node.beat.leases.renew()
            assert mine.inbox.unfolded_urls == 1

    asyncio.run(scenario())


def test_starved_node_steps_sooner(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """What was sent a moment ago is folded at once when there is next to nothing to fetch, and gathers otherwise."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
            node = await w.joined()
            await offered(w, node)
            assert (await node.ownership.folding.step_due(starved=False)).admitted == len(PAGES)
            node.offer(queued("http://late.example/")[0])
            await node.pump.flush()
            node.fold.record_inboxes()
            w.clock.advance(20)
            assert (await node.ownership.folding.step_due(starved=False)).admitted == 0
            assert (await node.ownership.folding.step_due(starved=True)).admitted == 1

    asyncio.run(scenario())
