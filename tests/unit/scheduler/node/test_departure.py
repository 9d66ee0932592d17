"""How a node leaves: what it holds is given back, and nothing of it stays behind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.scheduler.node import life
from bigcrawl.scheduler.node.loops import beat
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.unit.scheduler.node.test_node import seed
from tests.unit.scheduler.world import queued, world

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PAGES = [f"http://h{i}.example/" for i in range(6)]


def test_resumed_node_owns_everything_at_once_after_one_that_could_not_say_goodbye(
    tmp_path: Path, crawl_name: str
) -> None:
    """A node that closed while Redis was away is provably dead: nobody waits for its lease."""

    async def scenario() -> None:
        with PrivateRedis() as server:
            async with world(tmp_path, crawl_name, server.url) as w:
                node = await w.joined()
                server.kill()
                await node.departure.close()
                server.start()
                again = await w.joined()
                assert len(again.ownership.owned) == w.config.crawl.partitions

    asyncio.run(scenario())


def test_host_rests_its_delay_when_the_node_stops_in_mid_robots_fetch(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """A URL whose robots.txt is being fetched goes back with its host's delay, not with none."""

    async def scenario() -> None:
        settings = {"robots": "obey", "host_delay": 60}
        async with world(tmp_path, crawl_name, redis_url, **settings) as w:
            node = await w.joined()
            w.web.gate = asyncio.Event()
            await seed(w, node, PAGES[0])
            await node.pump.turn()
            await asyncio.wait_for(w.web.was_asked.wait(), 60)
            node.workload.stop()
            node.handout.return_unstarted()
            await node.pump.end()
            assert (await node.progress.survey()).urls_taken == 1, "the fetch goes on: its host is busy"
            await node.departure.close()
            due_ms = await w.client.command("ZSCORE", w.keys(node, "h0.example").ready, "h0.example")
            now_s, _ = await w.client.command("TIME")
            assert float(due_ms) > (int(now_s) + 50) * 1000

    asyncio.run(scenario())


def test_take_cut_off_by_the_stop_is_given_back(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Stopped while a take is under way: what Redis handed out and nobody holds is back."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            for url in queued(*PAGES):
                node.offer(url)
            await w.turn(node, 1)
            run_some = node.parts.crawl.client._run_some

            async def reply_lost(calls: Any, now_ms: int) -> Any:
                await run_some(calls, now_ms)
                node.parts.crawl.client._run_some = run_some  # type: ignore[method-assign]
                raise asyncio.CancelledError

            node.parts.crawl.client._run_some = reply_lost  # type: ignore[method-assign]
            with pytest.raises(asyncio.CancelledError):
                await node.pump.turn()
            last = await node.departure.close()
            assert last is not None
            assert (last.urls_taken, last.urls_queued, last.owned) == (0, len(PAGES), 0)

    asyncio.run(scenario())


def test_closed_node_leaves_nothing_behind(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Closing returns what was not fetched and releases every partition; the next node goes on with it."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            await seed(w, node, *PAGES)
            await node.pump.turn()
            last = await node.departure.close()
            assert last is not None
            assert (last.owned, last.urls_taken, last.urls_queued) == (0, 0, len(PAGES))
            assert not list((tmp_path / crawl_name / "nodes").iterdir())
            again = await w.joined()
            assert sorted(held.url for held in await w.take(again)) == PAGES

    asyncio.run(scenario())


@pytest.mark.parametrize("looks", [None, 3], ids=["nobody waits", "a signal comes"])
def test_last_words_take_as_long_as_nobody_waits(
    tmp_path: Path,
    crawl_name: str,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    looks: int | None,
) -> None:
    """A slow disk is waited for, and the lease is kept; a signal ends that, and there is a summary all the same."""
    monkeypatch.setattr(life, "LEAST_S", 0)
    monkeypatch.setattr(life, "LOOK_S", 0)
    monkeypatch.setattr(beat, "BEAT_S", 0.001)

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            await seed(w, node, *PAGES)
            await node.pump.turn()
            asked, is_alive, say_alive = 0, asyncio.Event(), node.beat._beat_if_due
            release = node.ownership.releases.release

            async def say_alive_and_tell() -> None:
                await say_alive()
                is_alive.set()

            async def release_slowly(leaving: Iterable[Any]) -> None:
                await is_alive.wait()
                if looks is not None:
                    await asyncio.Event().wait()
                await release(leaving)

            def has_time() -> bool:
                nonlocal asked
                asked += is_alive.is_set()
                return looks is None or asked < looks

            monkeypatch.setattr(node.beat, "_beat_if_due", say_alive_and_tell)
            monkeypatch.setattr(node.ownership.releases, "release", release_slowly)
            last = await node.departure.close(has_time)
            assert last is not None
            assert (last.urls_taken, last.urls_queued) == (0, len(PAGES)), "what it held is back in any case"
            assert last.owned == (0 if looks is None else w.config.crawl.partitions)
            assert caplog.text.count("no time to release its partitions") == (looks is not None)
            again = await w.joined()
            assert len(again.ownership.owned) == w.config.crawl.partitions, "at once: the first is known to be dead"

    asyncio.run(scenario())


def test_summary_has_what_redis_said_last(tmp_path: Path, crawl_name: str) -> None:
    """It is away when the node leaves."""

    async def scenario() -> None:
        with PrivateRedis() as server:
            async with world(tmp_path, crawl_name, server.url) as w:
                node = await w.joined()
                known = await node.progress.survey()
                server.kill()
                assert await node.departure.close() is known
                server.start()

    asyncio.run(scenario())
