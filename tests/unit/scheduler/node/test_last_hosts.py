"""A crawl with nothing left but hosts that fail ends soon: they are retired, and their URLs are kept."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.scheduler.gates.interfaces import FetchedBody
from bigcrawl.scheduler.node.last_hosts import SURE_MS
from tests.unit.scheduler.node.test_set_aside import say
from tests.unit.scheduler.owner.test_parking import DEAD, URLS, awaken, fail_first, fetch_all, let_time_pass, offered
from tests.unit.scheduler.world import World, queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node

WELL = "well.example"
SNOOZING: dict[str, Any] = {"partitions": 1, "backoff": 90, "host_hot_urls": 20, "last_failures_max": 2}
SURE_TURNS = SURE_MS // 500 + 4  # a turn is half a second


async def fail_again(w: World, node: Node) -> None:
    await let_time_pass(w, node)
    [probe] = await w.take(node, 4)
    w.end(node, probe, "error:timeout")
    await w.turn(node, 6)


def is_finished(node: Node) -> bool:
    return node.progress.is_finished


async def retired(node: Node) -> int:
    return (await node.progress.survey()).hosts_retired


def test_host_that_fails_when_nothing_else_is_left_is_retired_early(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Not with its first failure, but with as many as are set; the crawl is finished, and all its URLs are there."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, **SNOOZING) as w:
            node = await offered(w)
            await fail_first(w, node)
            await w.turn(node, SURE_TURNS)
            assert not is_finished(node)
            assert await retired(node) == 0
            await fail_again(w, node)
            await w.turn(node, SURE_TURNS)
            assert await retired(node) == 1
            assert is_finished(node)
            assert (await node.progress.survey()).counts["withheld"] == URLS - 2
            assert await awaken(w, node)
            assert len({held.url for held in await fetch_all(w, node)}) == URLS - 2

    asyncio.run(scenario())


def test_host_that_has_failed_so_often_before_is_retired_when_the_others_are_done(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """While another node holds a URL of a host that is well nobody is retired; then all are, at once."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, **{**SNOOZING, "partitions": 8}) as w:
            node = await offered(w)
            other = await w.joined()
            for _ in range(6):
                await w.turn(node, 1)
                await w.turn(other, 1)
            mine, others = (node, other) if _owns(node, DEAD) else (other, node)
            busy = next(h for h in (f"well{i}.example" for i in range(50)) if _owns(others, h))
            for url in queued(f"http://{busy}/"):
                others.offer(url)
            await fail_first(w, mine)
            await w.turn(others, 2)
            [held] = await w.take(others, 4)
            await fail_again(w, mine)
            for _ in range(SURE_TURNS):
                await w.turn(mine, 1)
                await w.turn(others, 1)
            assert await retired(mine) == 0
            w.end(others, held)
            for _ in range(SURE_TURNS + 4):
                await w.turn(mine, 1)
                await w.turn(others, 1)
            assert await retired(mine) == 1
            assert mine.progress.is_finished
            assert others.progress.is_finished

    asyncio.run(scenario())


def _owns(node: Node, host: str) -> bool:
    return node.crawl.partition_of_host(host) in node.ownership.owned


@pytest.mark.parametrize("settings", [{"last_failures_max": 0}, {"close": "forever"}])
def test_crawl_may_wait_as_long_as_ever(
    tmp_path: Path, crawl_name: str, redis_url: str, settings: dict[str, Any]
) -> None:
    """Where that is set, or the crawl has no end anyway."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, **{**SNOOZING, **settings}) as w:
            node = await offered(w)
            await fail_first(w, node)
            await fail_again(w, node)
            await fail_again(w, node)
            await w.turn(node, SURE_TURNS)
            assert await retired(node) == 0
            assert not is_finished(node)

    asyncio.run(scenario())


def test_blacklisted_host_that_is_away_holds_up_no_end(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Its URLs are withheld at once, not with its next try; taken off the list, each is fetched."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, **{**SNOOZING, "last_failures_max": 0}) as w:
            node = await offered(w)
            await fail_first(w, node)
            await w.turn(node, 6)
            assert not is_finished(node)
            await say(w, DEAD)
            w.clock.advance(1_000)
            await node.steer.turn()
            await w.turn(node, 12)
            assert is_finished(node)
            assert (await node.progress.survey()).counts["withheld"] == URLS - 1
            await say(w, DEAD, None)
            w.clock.advance(1_000)
            await node.steer.turn()
            await w.turn(node, 6)
            assert not (await node.progress.survey()).is_empty
            await let_time_pass(w, node)
            assert len({held.url for held in await fetch_all(w, node)}) == URLS - 1

    asyncio.run(scenario())


def test_host_that_never_answered_is_treated_like_any_other(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Its robots.txt is out of reach from the beginning: it backs off, is retired, and its URLs are kept."""

    async def scenario() -> None:
        settings = {**SNOOZING, "robots": "obey"}
        async with world(tmp_path, crawl_name, redis_url, **settings) as w:
            file = f"http://{DEAD}/robots.txt"
            w.web.answers[file] = FetchedBody(None)
            node = await offered(w)
            assert await w.take(node, 6) == []
            assert w.web.asked == [file] * 2, "another port might have answered; now it rests"
            await w.turn(node, SURE_TURNS)
            await let_time_pass(w, node)
            assert await w.take(node, 6) == []
            assert w.web.asked == [file] * 3
            await w.turn(node, SURE_TURNS)
            assert is_finished(node)
            seen = await node.progress.survey()
            assert (seen.hosts_retired, seen.counts["withheld"]) == (1, URLS)
            w.web.answers[file] = FetchedBody(404)
            await awaken(w, node)
            assert len({held.url for held in await fetch_all(w, node)}) == URLS

    asyncio.run(scenario())


def test_authority_that_is_out_of_reach_does_not_take_its_host_along(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """http answers and https does not: the pages of the one are fetched, the URLs of the other end as unreachable."""

    async def scenario() -> None:
        settings = {**SNOOZING, "robots": "obey", "backoff": 0, "last_failures_max": 5}
        async with world(tmp_path, crawl_name, redis_url, **settings) as w:
            w.web.answers[f"https://{WELL}/robots.txt"] = FetchedBody(None)
            node = await w.joined()
            schemes = ("https", "http")
            for url in queued(*(f"{scheme}://{WELL}/{i}" for i in range(8) for scheme in schemes)):
                node.offer(url)
            urls = {held.url for held in await fetch_all(w, node, 120)}
            assert urls == {f"http://{WELL}/{i}" for i in range(8)}
            assert await w.take(node, 30) == []
            assert (await node.progress.survey()).counts["dropped:unreachable"] == 8
            assert is_finished(node)

    asyncio.run(scenario())
