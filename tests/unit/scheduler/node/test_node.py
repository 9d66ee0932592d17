"""The node's loops, turned by hand: what happens between Redis, disk and engine when things go wrong."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys, PartitionKeys
from bigcrawl.redisdb.scripts import EndedUrl
from bigcrawl.scheduler.gates.interfaces import FetchedBody
from bigcrawl.scheduler.node.loops import watch
from bigcrawl.scheduler.records.held import Stage
from bigcrawl.scheduler.records.member import order_of, pack_member
from bigcrawl.scheduler.records.queued_url import QueuedUrl
from tests.support.logs import of_bigcrawl
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.unit.scheduler.world import World, queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node

PAGES = [f"http://h{i}.example/" for i in range(6)]


async def seed(w: World, node: Node, *urls: str) -> None:
    for url in queued(*urls):
        node.offer(url)
    await w.turn(node, 2)


def test_everything_offered_is_handed_out_once_and_then_the_crawl_is_finished(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """URLs offered twice are fetched once; when all are acknowledged two looks find the crawl finished."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            await seed(w, node, *PAGES, *PAGES)
            started = await w.take(node)
            assert sorted(held.url for held in started) == PAGES
            await w.turn(node)
            was_finished = node.progress.is_finished
            for held in started:
                w.end(node, held)
            await w.turn(node)
            assert (was_finished, node.progress.is_finished) == (False, True)
            assert (await node.progress.survey()).pages == len(PAGES)
            assert not node.handout.held

    asyncio.run(scenario())


def test_link_is_not_acknowledged_before_its_batch_is_in_redis(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A page stays taken while one of its links is still in the outbox."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            await seed(w, node, PAGES[0])
            [held] = await w.take(node)
            node.offer(queued(PAGES[1])[0])
            w.end(node, held)
            await node.pump.end()
            assert (await node.progress.survey()).urls_taken == 1
            await node.pump.flush()
            await node.pump.end()
            assert (await node.progress.survey()).urls_taken == 0

    asyncio.run(scenario())


def test_page_is_not_acknowledged_before_it_is_stored(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """While the page storage is not flushed, nothing is acknowledged."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            stored = False
            node = await w.joined(may_acknowledge=lambda: stored)
            await seed(w, node, PAGES[0])
            [held] = await w.take(node)
            w.end(node, held)
            await w.turn(node)
            assert (await node.progress.survey()).urls_taken == 1
            stored = True
            await w.turn(node, 1)
            assert (await node.progress.survey()).urls_taken == 0

    asyncio.run(scenario())


def test_partition_with_a_take_in_flight_is_not_released(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Redis says that URLs are still taken: the partition stays this node's until they have ended."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            await seed(w, node, PAGES[0])
            await node.pump.turn()
            [held] = list(node.handout.held)
            mine = node.ownership.owned[held.partition]
            node.handout.held.drop_partition(held.partition)  # as if the reply were still under way
            await node.ownership.releases.release([mine])
            assert node.ownership.owned[held.partition] is mine
            assert (await node.progress.survey()).owned == w.config.crawl.partitions

    asyncio.run(scenario())


def test_partition_lost_in_mid_reconcile_does_not_end_the_crawl(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Ownership that changes while the reply is under way must not be mixed up with the reply's order."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            node.parts.crawl.client.in_doubt.update(range(w.config.crawl.partitions))
            work = asyncio.ensure_future(node.ownership.reconciliation.settle_doubts())
            await asyncio.sleep(0)
            gone = node.ownership.owned.pop(0)
            await work
            assert len(node.ownership.owned) == w.config.crawl.partitions - 1
            node.ownership.owned[0] = gone

    asyncio.run(scenario())


def test_late_reply_of_an_old_epoch_does_not_lose_the_new_one(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """`lose` means the partition as it was asked for: one claimed again meanwhile stays."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            before = node.ownership.owned[0]
            await node.ownership.reclaim_all()
            node.ownership.table.remove_lost(before)
            assert node.ownership.owned[0].identity.epoch > before.identity.epoch

    asyncio.run(scenario())


def test_undecodable_url_is_set_aside_and_counted_and_the_others_go_on(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """What was admitted and cannot be read again waits on disk; it must not stop the node for ever."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            good = queued(PAGES[0])[0]
            node.offer(QueuedUrl(1, "h9.example", 0, 0, b"\xc1 no msgpack"))
            node.offer(good)
            await w.turn(node, 2)
            [held] = await w.take(node)
            assert held.url == PAGES[0]
            w.end(node, held)
            await w.turn(node)
            seen = await node.progress.survey()
            assert seen.unrunnable == {"?": 1}
            assert seen.is_empty
            assert "1 whose request cannot be decoded" in seen.holdup

    asyncio.run(scenario())


def test_fold_that_takes_long_does_not_cost_the_lease(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The lease is renewed while a step holds the files."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, lease_seconds=2) as w:
            node = await w.joined()
            w.clock.advance(1_400)
            async with node.parts.ownership.lock:
                await asyncio.wait_for(node.beat.turn(), 60)
            assert node.handout.lease.ends_ms > w.clock.monotonic_ms() + 500

    asyncio.run(scenario())


def test_redis_that_forgot_ended_urls_does_not_cost_room(tmp_path: Path, crawl_name: str) -> None:
    """After a rewind the owner's count of hot URLs is what Redis and the node hold, not more."""

    async def scenario() -> None:
        with PrivateRedis(aof=False) as server:
            async with world(tmp_path, crawl_name, server.url, partitions=1) as w:
                node = await w.joined()
                await seed(w, node, *PAGES)
                started = await w.take(node)
                first, second = started[:2]
                w.end(node, first)
                await w.turn(node, 1)
                # What a cut AOF brings back: the end is forgotten, the URL waits again.
                keys = PartitionKeys(crawl_name, 0)
                order = order_of(first.fields.priority, first.seq)
                server.client.zadd(keys.back + first.host, {first.member: order})
                server.client.zadd(keys.ready, {first.host: 0})
                server.client.hincrby(keys.state, "hot", 1)
                node.parts.troubles.record_restart()
                await node.pump.turn()
                assert node.ownership.owned[0].hot.by_host == {held.host: 1 for held in started if held is not first}
                assert second in list(node.handout.held)

    asyncio.run(scenario())


def test_returned_url_is_not_treated_as_ended_after_rewind(tmp_path: Path, crawl_name: str) -> None:
    """A URL that went back to its queue just before Redis was restarted is still fetched."""

    async def scenario() -> None:
        with PrivateRedis() as server:
            async with world(tmp_path, crawl_name, server.url, partitions=1) as w:
                node = await w.joined()
                await seed(w, node, PAGES[0])
                [held] = await w.take(node)
                node.handout.give_back(held, 0)
                await node.pump.end()
                node.parts.troubles.record_restart()
                [again] = await w.take(node)
                assert again.url == held.url

    asyncio.run(scenario())


def test_redis_that_forgot_is_told_again_of_links_and_ends(tmp_path: Path, crawl_name: str) -> None:
    """However long it was away: the URLs that were found, and then how the page has ended that linked to them."""

    async def scenario() -> None:
        with PrivateRedis(aof=False) as server:
            async with world(tmp_path, crawl_name, server.url, partitions=1) as w:
                node = await w.joined()
                await seed(w, node, PAGES[0])
                [held] = await w.take(node)
                for url in queued(PAGES[1]):
                    node.offer(url)
                w.end(node, held)
                await node.pump.flush()
                await node.pump.end()
                inbox = PartitionKeys(crawl_name, 0).inbox
                entries: Any = server.client.xrange(inbox)
                assert [set(fields) for _, fields in entries][-2:] == [{b"b"}, {b"o"}]
                server.client.xtrim(inbox, maxlen=0)
                server.client.delete(*server.client.keys(f"bigcrawl:{{{crawl_name}:p0}}:sender:*"))
                w.clock.advance(120_000)
                node.parts.troubles.record_restart()
                await node.recovery.run()
                entries = server.client.xrange(inbox)
                assert [set(fields) for _, fields in entries][-2:] == [{b"b"}, {b"o"}]

    asyncio.run(scenario())


def test_restart_during_recovery_is_recovered_from(tmp_path: Path, crawl_name: str) -> None:
    """Recovery that Redis interrupts begins anew; what was held stays held, nothing is lost or doubled."""

    async def scenario() -> None:
        with PrivateRedis() as server:
            async with world(tmp_path, crawl_name, server.url) as w:
                node = await w.joined()
                await seed(w, node, *PAGES)
                started = await w.take(node)
                run = node.parts.crawl.client.run
                calls = 0

                async def dies_once(batch: Any) -> Any:
                    nonlocal calls
                    calls += 1
                    if calls == 3:
                        raise TransientStoreError("the server is gone again")
                    return await run(batch)

                node.parts.crawl.client.run = dies_once  # type: ignore[method-assign,assignment]
                node.parts.troubles.record_restart()
                with pytest.raises(TransientStoreError):
                    await node.pump.turn()
                still_to_do = node.parts.troubles.is_restarted
                await node.pump.turn()
                assert (still_to_do, node.parts.troubles.is_restarted) == (True, False)
                seen = await node.progress.survey()
                assert (seen.urls_taken, seen.urls_queued) == (len(started), 0)

    asyncio.run(scenario())


def test_pump_survives_a_server_that_cannot_be_revived(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Whatever starting the embedded server raises, the loop goes on and tries again."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            turns = revivals = 0

            async def failing() -> float:
                nonlocal turns
                turns += 1
                if turns > 2:
                    raise asyncio.CancelledError
                raise TransientStoreError("gone")

            def broken() -> None:
                nonlocal revivals
                revivals += 1
                raise OSError("no fork")

            async def no_rest(rest_s: float) -> None:
                await asyncio.sleep(0)

            node = w.new_node(revive_server=broken)
            node.pump.turn = failing  # type: ignore[method-assign]
            node.pump.rest = no_rest  # type: ignore[method-assign]
            with pytest.raises(asyncio.CancelledError):
                await node.runner.run(node.pump)
            assert (turns, revivals) == (3, 2)

    asyncio.run(scenario())


def test_pump_with_nothing_to_send_notices_that_the_server_is_gone(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Folding fails, so nothing is taken; the pump alone starts the embedded server again."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            node.parts.troubles.record_failure("fold", TransientStoreError("gone"))

            async def gone(*_: object, **__: object) -> list[object]:
                raise TransientStoreError("gone")

            node.parts.crawl.client.commands = gone  # type: ignore[method-assign]
            node.parts.crawl.client.run_each = gone  # type: ignore[method-assign]
            node.pump.wake()
            with pytest.raises(TransientStoreError):
                await node.pump.turn()

    asyncio.run(scenario())


def test_end_is_looked_for_as_soon_as_nothing_is_left(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the watch rests while there is work."""
    monkeypatch.setattr(watch, "WATCH_S", 3_600.0)

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w, asyncio.timeout(60):
            node = w.new_node()
            await node.start()
            [url] = queued("http://a.example/")
            node.offer(url)
            while (held := node.handout.buffer.pop()) is None:
                w.clock.advance(100)
                await asyncio.sleep(0.01)
            w.end(node, held)
            while not node.progress.is_finished:
                w.clock.advance(100)
                node.pump.wake()
                await asyncio.sleep(0.01)
            await node.departure.close()

    asyncio.run(scenario())


def test_finished_is_taken_back_while_urls_wait(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The word `finished` in Redis is believed only when nothing waits: a resume must not refuse to go on."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            await seed(w, node, PAGES[0])
            await w.client.command("HSET", CrawlKeys(crawl_name).crawl, "finished", "1")
            assert not await node.parts.progress.finish.look()
            assert await w.client.command("HGET", CrawlKeys(crawl_name).crawl, "finished") is None
            await w.client.command("HSET", CrawlKeys(crawl_name).crawl, "finished", "1")
            await node.departure.close()
            again = await w.joined()
            assert not again.progress.is_finished

    asyncio.run(scenario())


def test_start_that_was_done_before_is_done_for_this_node_too(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A node that is told "done" says so again after a restart, and never claims the start for itself."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            assert await node.starts.claim("digest") == 1
            await node.starts.end()
            other = await w.joined()
            assert await other.starts.claim("digest") == 2
            assert other.starts.is_done
            forgotten = await w.client.command("HDEL", CrawlKeys(crawl_name).crawl, "start:digest")
            assert forgotten == 1
            other.parts.troubles.record_restart()
            await other.recovery.run()
            assert await node.starts.claim("digest") == 2

    asyncio.run(scenario())


def test_start_of_a_dead_node_is_run_at_once_by_the_next(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Killed before its start requests were out: who resumes does not wait for the dead one's lease."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            dead = await w.joined()
            assert await dead.starts.claim("digest") == 1
            dead.membership.unlock(left=False)
            again = await w.joined()
            assert await again.starts.claim("digest") == 1

    asyncio.run(scenario())


def test_start_of_a_living_node_is_left_to_it(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A node that joined only now, and is in nobody's last report, keeps the start it claimed."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            first = await w.joined()
            second = await w.joined()
            assert await second.starts.claim("digest") == 1
            assert second.node_id not in first.membership.reports
            assert await first.starts.claim("digest") == 0
            assert await second.starts.claim("digest") == 1

    asyncio.run(scenario())


def test_take_of_a_partition_lost_meanwhile_is_not_held(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """URLs of a partition that is another node's by now are left to it: held, they would stay for ever."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            node.offer(queued(PAGES[0])[0])
            await w.turn(node, 1)
            run_each = node.parts.crawl.client.run_each

            async def lost_meanwhile(calls: Any) -> Any:
                results = await run_each(calls)
                for mine in list(node.ownership.owned.values()):
                    node.ownership.table.remove_lost(mine)
                return results

            node.parts.crawl.client.run_each = lost_meanwhile  # type: ignore[method-assign]
            await node.pump.end_and_take()
            assert len(node.handout.held) == 0

    asyncio.run(scenario())


def test_node_that_cannot_fold_takes_nothing_and_says_so_once(
    tmp_path: Path, crawl_name: str, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """On a full disk the node pauses: links must not pile up in Redis, nor lines in the log."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            node.offer(queued(PAGES[0])[0])
            await w.turn(node, 1)
            assert node.room.urls()
            for _ in range(3):
                node.parts.troubles.record_failure(node.fold.name, TransientStoreError("no space left on device"))
                node.parts.troubles.record_success(node.pump.name)
            assert not node.room.urls()
            node.parts.troubles.record_success(node.fold.name)
            assert node.room.urls()

    with caplog.at_level("INFO", logger="bigcrawl.scheduler.node"):
        asyncio.run(scenario())
    assert [record.getMessage() for record in of_bigcrawl(caplog)] == [
        "waiting: no space left on device",
        "the crawl continues",
    ]


def test_heartbeat_tells_the_rate(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """`scrapy frontier status` shows pages a second by node: the heartbeat brings them."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            await seed(w, node, *PAGES)
            started = await w.take(node)
            await node.parts.heartbeat.send()
            for held in started:
                w.end(node, held)
            await node.pump.end()
            w.clock.advance(10_000)
            await node.parts.heartbeat.send()
            w.clock.advance(1)
            assert node.membership.reports[node.node_id]["rate"] == pytest.approx(len(PAGES) / 10)

    asyncio.run(scenario())


def test_time_in_which_a_node_is_paused_closes_no_crawl(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A full disk is not a slow crawl, on whichever node: BIGCRAWL_CLOSE_RATE_SPAN begins anew after the pause."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, close_rate=1, close_rate_span=60) as w:
            is_full = True
            node, _ = await w.joined(), await w.joined(is_paused=lambda: is_full)
            await seed(w, node, *PAGES)

            async def pass_s(seconds: int) -> bool:
                for _ in range(seconds // 10):
                    w.clock.advance(10_000)
                    for each in w.nodes:
                        await each.parts.heartbeat.send()
                    for each in w.nodes:
                        await each.watch._check_rate()
                return node.parts.control.is_closed

            assert not await pass_s(120)
            is_full = False
            assert not await pass_s(50)
            assert await pass_s(30)

    asyncio.run(scenario())


@pytest.mark.parametrize("pages_max", [1, 3])
def test_crawl_fetches_exactly_as_many_pages_as_it_may(
    tmp_path: Path, crawl_name: str, redis_url: str, pages_max: int
) -> None:
    """BIGCRAWL_MAX_PAGES is neither passed nor missed, however surveys and acknowledgements interleave."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, max_pages=pages_max) as w:
            node = await w.joined()
            await seed(w, node, *PAGES)
            fetched = 0
            for _ in range(12):
                w.clock.advance(500)
                await node.pump.turn()
                while (held := node.handout.buffer.pop()) is not None:
                    fetched += 1
                    w.end(node, held)
                # The acknowledgement and the survey of `_watch` are under way at the same time.
                await asyncio.gather(node.pump.end(), node.watch.turn())
                await node.fold.turn()
                pages, has_reached_max = (await node.progress.survey()).pages, node.progress.has_reached_max
                assert pages >= pages_max or not has_reached_max
                if has_reached_max:
                    break
            assert node.progress.has_reached_max
            assert fetched == pages_max == (await node.progress.survey()).pages

    asyncio.run(scenario())


def test_limit_is_not_believed_reached_before_redis_says_so(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A page acknowledged while a survey is under way is not counted twice."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, max_pages=2) as w:
            node = await w.joined()
            await seed(w, node, *PAGES)
            await w.take(node, 2)
            held = next(h for h in node.handout.held if h.stage is Stage.STARTED)
            w.end(node, held)
            look = node.progress.survey
            waiting = asyncio.Event()

            async def survey_after_the_end_is_in_redis() -> Any:
                mine = node.ownership.owned[held.partition]
                ended = [EndedUrl(held.seq, 0, b"", "status:200")]
                await w.client.run([scripts.exchange_urls(mine.keys, mine.identity, 1, 0, 0, 0, ended)])
                seen = await look()
                waiting.set()
                return seen

            node.progress.survey = survey_after_the_end_is_in_redis  # type: ignore[method-assign]
            await asyncio.gather(node.watch.turn(), node.pump.end())
            node.progress.survey = look  # type: ignore[method-assign]
            assert waiting.is_set()
            assert not node.progress.has_reached_max

    asyncio.run(scenario())


def test_node_without_a_lease_gives_up_its_fetches_whatever_redis_does(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """The guard asks nobody, and looks again no later than at the end of the lease."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, lease_seconds=10) as w:
            node = await w.joined()
            given_up: list[int] = []
            node.handout.break_off = lambda: given_up.append(w.clock.monotonic_ms())
            end_ms = node.handout.lease.ends_ms
            w.clock.advance(end_ms - w.clock.monotonic_ms() - 300)
            assert await node.guard.turn() == 0.3
            assert not given_up
            w.clock.advance(300)
            await node.guard.turn()
            assert given_up == [end_ms]

    asyncio.run(scenario())


def test_node_that_slept_gives_up_its_fetches_before_it_renews_its_lease(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """What it had begun must not go out under the new lease."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, lease_seconds=10) as w:
            node = await w.joined()
            given_up: list[int] = []
            node.handout.break_off = lambda: given_up.append(node.handout.lease.ends_ms)
            await w.turn(node, 2)
            assert not given_up
            before = node.handout.lease.ends_ms
            w.clock.advance(60_000)
            await node.beat.turn()
            assert given_up == [before]
            assert node.handout.lease.ends_ms > w.clock.monotonic_ms()
            await w.turn(node, 2)
            assert len(given_up) == 1

    asyncio.run(scenario())


def test_nothing_is_handed_out_after_the_lease(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A node that slept hands out nothing until it has renewed its lease."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, lease_seconds=10) as w:
            node = await w.joined()
            await seed(w, node, *PAGES)
            await node.pump.turn()
            w.clock.advance(60_000)
            assert node.handout.buffer.pop() is None
            assert not node.room.urls()

    asyncio.run(scenario())


def test_second_node_takes_half_and_nothing_is_fetched_twice(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A joining node gets its share once the first has drained it; every URL is fetched by one of them."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=8) as w:
            first = await w.joined()
            pages = [f"http://p{i}.example/" for i in range(40)]
            await seed(w, first, *pages)
            second = await w.joined()
            fetched: list[str] = []
            for _ in range(10):
                for node in (first, second):
                    for held in await w.take(node, 1):
                        fetched.append(held.url)
                        w.end(node, held)
            for node in (first, second):
                await w.turn(node)
            assert len(second.ownership.owned) == len(first.ownership.owned) == 4
            assert sorted(fetched) == sorted(pages)
            assert first.progress.is_finished
            assert second.progress.is_finished

    asyncio.run(scenario())


def test_robots_file_comes_first_and_is_asked_for_once(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A host's first fetch is its robots.txt; what it forbids ends uncounted as a page."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, robots="obey") as w:
            node = await w.joined()
            rules = b"User-agent: *\nDisallow: /private"
            w.web.answers["http://h0.example/robots.txt"] = FetchedBody(200, rules)
            await seed(w, node, "http://h0.example/open", "http://h0.example/private")
            started = await w.take(node)
            for held in started:
                w.end(node, held)
            started += await w.take(node)
            assert [held.url for held in started] == ["http://h0.example/open"]
            assert w.web.asked == ["http://h0.example/robots.txt"]
            for held in started:
                w.end(node, held)
            await w.turn(node)
            seen = await node.progress.survey()
            assert (seen.pages, seen.counts["dropped:forbidden"], seen.counts["robots"]) == (1, 1, 1)

    asyncio.run(scenario())


def test_repr_says_what_the_node_holds(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A node in a log line shows its counts, not its URLs."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            await seed(w, node, *PAGES)
            assert re.search(r"of 4 partitions.*held=\d+.*waiting=0", repr(node))
            assert "http" not in repr(node)

    asyncio.run(scenario())


def test_packed_member_is_what_reconcile_looks_for() -> None:
    """The member that a rewound Redis is searched for is the one that was admitted."""
    url = queued(PAGES[0])[0]
    assert pack_member(7, url).startswith(b"7:")
