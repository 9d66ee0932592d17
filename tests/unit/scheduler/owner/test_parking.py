"""Hosts that are snoozed or retired: their URLs leave Redis for the disk and come back, each exactly once."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.scripts import RETIRED_MS
from bigcrawl.scheduler.crawl.joined_crawl import Arrivals
from bigcrawl.scheduler.owner import parking as snoozed
from bigcrawl.scheduler.owner.hot.hot_set import LOOK_MS
from tests.unit.scheduler.world import World, queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.held import HeldUrl

DEAD = "dead.example"
URLS = 30
RETIRING = {"partitions": 1, "host_failures_max": 1, "host_hot_urls": 20}
SNOOZING = {"partitions": 1, "backoff": 90, "host_hot_urls": 20}


async def offered(w: World, *, hosts: tuple[str, ...] = (DEAD,), urls: int = URLS) -> Node:
    """A node to which so many URLs of each host were offered."""
    node = await w.joined()
    for host in hosts:
        for url in queued(*(f"http://{host}/{i}" for i in range(urls))):
            node.offer(url)
    return node


async def fail_first(w: World, node: Node, host: str = DEAD) -> None:
    """Fetch until the host's first URL comes; it fails, all others are answered."""
    while True:
        for held in await w.take(node, 1):
            w.end(node, held, "error:timeout" if held.host == host else "status:200")
            if held.host == host:
                await w.turn(node, 6)
                return


async def fetch_all(w: World, node: Node, rounds: int = 60) -> list[HeldUrl]:
    """Answer all that comes, until nothing has come for a while."""
    fetched: list[HeldUrl] = []
    quiet = 0
    for _ in range(rounds):
        came = await w.take(node, 1)
        for held in came:
            w.end(node, held)
        fetched += came
        quiet = 0 if came else quiet + 1
        if quiet > 8:
            break
    return fetched


async def in_redis(w: World, node: Node, host: str = DEAD) -> int:
    return int(await w.client.command("ZCARD", w.keys(node, host).back + host))


async def let_time_pass(w: World, node: Node, host: str = DEAD) -> None:
    """Make the host due: Redis' own clock is not the test's."""
    keys = w.keys(node, host)
    await w.client.command("HSET", keys.host + host, "next", 1)
    await w.client.command("HDEL", keys.host + host, "failed")
    await w.client.command("ZADD", keys.ready, "XX", 1, host)


async def awaken(w: World, node: Node, host: str = DEAD) -> bool:
    """As by hand, long after the host's last failure."""
    await w.client.command("HDEL", w.keys(node, host).host + host, "failed")
    [answer] = await w.client.run([scripts.awaken_host(w.keys(node, host), host)])
    await Arrivals(w.client, w.config.crawl.name).tell([w.keys(node, host).partition])
    return bool(answer)


def test_retired_hosts_urls_go_to_the_disk_and_do_not_hold_up_the_end(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """None is left in Redis, all are withheld, the crawl is finished; awakened, each is fetched once."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, **RETIRING) as w:
            node = await offered(w)
            await fail_first(w, node)
            await w.turn(node, 30)
            assert await in_redis(w, node) == 0
            seen = await node.progress.survey()
            assert (seen.hosts_retired, seen.urls_disk, seen.counts["withheld"]) == (1, 0, URLS - 1)
            assert seen.is_empty
            assert node.progress.is_finished
            assert await awaken(w, node)
            assert not (await node.progress.survey()).is_empty, "it does not end before its owner has looked"
            paths = Counter(held.url for held in await fetch_all(w, node))
            assert len(paths) == URLS - 1
            assert set(paths.values()) == {1}
            assert (await node.progress.survey()).counts["withheld"] == 0
            assert not await awaken(w, node), "a host that has not failed is left as it is"

    asyncio.run(scenario())


def test_restart_does_not_forget_who_is_retired(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The next node finds the crawl finished, does not ask the host, and gets all its URLs when it is awakened."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, **RETIRING) as w:
            node = await offered(w)
            await fail_first(w, node)
            await w.turn(node, 30)
            assert node.progress.is_finished
            await node.departure.close()
            again = await w.joined()
            assert again.progress.is_finished, "URLs of a retired host do not wait"
            assert await fetch_all(w, again) == []
            assert (await again.progress.survey()).hosts_retired == 1
            await awaken(w, again)
            assert len({held.url for held in await fetch_all(w, again)}) == URLS - 1

    asyncio.run(scenario())


def test_snoozed_host_keeps_one_url_in_redis_and_leaves_the_room_to_others(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Its next try stays; what else it has waits on disk, and holds up the end."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, **SNOOZING) as w:
            node = await offered(w)
            await fail_first(w, node)
            await w.turn(node, 10)
            assert await in_redis(w, node) == 1
            seen = await node.progress.survey()
            assert (seen.hosts_snoozed, seen.hosts_retired) == (1, 0)
            assert seen.urls_disk == URLS - 2
            assert not node.progress.is_finished
            await let_time_pass(w, node)
            [probe] = await w.take(node, 4)
            w.end(node, probe, "error:timeout")
            await w.turn(node, 4)
            assert await in_redis(w, node) == 1, "the next one is its next try"
            await let_time_pass(w, node)
            urls = {held.url for held in await fetch_all(w, node)}
            assert len(urls) == URLS - 2
            assert (await node.progress.survey()).hosts_snoozed == 0
            assert node.progress.is_finished

    asyncio.run(scenario())


def test_retired_hosts_do_not_fill_the_hot_set(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Six dead hosts could fill the room for all; a seventh, that is well, is fetched to its end."""
    dead = tuple(f"dead{i}.example" for i in range(6))

    async def scenario() -> None:
        settings: dict[str, Any] = {**RETIRING, "hot_urls": 1_000, "partitions": 16, "host_hot_urls": 100}
        async with world(tmp_path, crawl_name, redis_url, **settings) as w:
            node = await offered(w, hosts=(*dead, "well.example"), urls=120)
            fetched: list[HeldUrl] = []
            for _ in range(400):
                for held in await w.take(node, 1):
                    w.end(node, held, "error:refused" if held.host in dead else "status:200")
                    fetched.append(held)
                if node.progress.is_finished:
                    break
            assert Counter(held.host for held in fetched) == {**dict.fromkeys(dead, 1), "well.example": 120}
            assert node.progress.is_finished
            seen = await node.progress.survey()
            assert (seen.hosts_retired, seen.counts["withheld"], seen.urls_queued) == (6, 6 * 119, 0)

    asyncio.run(scenario())


def test_urls_found_later_wait_with_their_retired_host(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A link to it is queued, withheld, and fetched after it was awakened."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, **RETIRING) as w:
            node = await offered(w, urls=1)
            await fail_first(w, node)
            for url in queued(f"http://{DEAD}/late"):
                node.offer(url)
            assert await fetch_all(w, node) == []
            assert (await node.progress.survey()).counts["withheld"] == 1
            assert node.progress.is_finished
            await awaken(w, node)
            assert [held.url for held in await fetch_all(w, node)] == [f"http://{DEAD}/late"]

    asyncio.run(scenario())


def test_snoozed_host_of_which_nothing_was_heard_is_as_any_other(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Its last URL ended while it was failing, and its record is gone: later ones are not held back for that."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, **SNOOZING) as w:
            node = await offered(w, urls=1)
            await fail_first(w, node)
            keys = w.keys(node, DEAD)
            assert next(iter(node.ownership.owned.values())).away.hot_max == {DEAD: 1}
            await w.client.command("DEL", keys.host + DEAD)
            await w.client.command("ZADD", keys.snoozed, 1, DEAD)
            for url in queued(*(f"http://{DEAD}/late{i}" for i in range(URLS))):
                node.offer(url)
            w.clock.advance(LOOK_MS)
            await w.turn(node, 6)
            assert next(iter(node.ownership.owned.values())).away.hot_max == {}
            assert len(await fetch_all(w, node)) == URLS

    asyncio.run(scenario())


@pytest.mark.parametrize("moved", [False, True], ids=["before", "after"])
def test_node_that_dies_while_urls_are_moved_loses_none(
    tmp_path: Path, crawl_name: str, redis_url: str, moved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before or after the script has run: its heir finds each URL in one place."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, **RETIRING) as w:
            node = await offered(w)
            run_each = node.parts.crawl.client.run_each

            async def away(calls: Any) -> list[Any]:
                if any(call.name == "park_urls" for call in calls):
                    if moved:
                        await run_each(calls)
                    raise TransientStoreError("away")
                return await run_each(calls)

            monkeypatch.setattr(node.parts.crawl.client, "run_each", away)
            with pytest.raises(TransientStoreError):
                await fail_first(w, node)
            await node.departure.abandon()
            heir = await w.joined()
            await w.turn(heir, 20)
            assert await in_redis(w, heir) == 0
            await awaken(w, heir)
            paths = Counter(held.url for held in await fetch_all(w, heir))
            assert len(paths) == URLS - 1
            assert set(paths.values()) == {1}

    asyncio.run(scenario())


def test_member_that_cannot_be_read_stops_nobody(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """It goes to the disk with the others, and is set aside and counted when its turn comes."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, **RETIRING) as w:
            node = await offered(w)
            await w.turn(node, 1)
            keys = w.keys(node, DEAD)
            last = (await w.client.command("ZRANGE", keys.back + DEAD, -1, -1))[0]
            await w.client.command("ZREM", keys.back + DEAD, last)
            await w.client.command("ZADD", keys.back + DEAD, 10**6, b"77:\xc1broken")
            await fail_first(w, node)
            await w.turn(node, 10)
            assert await in_redis(w, node) == 0
            await awaken(w, node)
            await fetch_all(w, node)
            await w.turn(node, 4)
            seen = await node.progress.survey()
            assert seen.counts["unrunnable"] == 1
            assert seen.is_empty

    asyncio.run(scenario())


def test_rounds_are_bounded(tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many URLs and hosts there are, a round moves so many; the next ones the rest."""

    async def scenario() -> None:
        monkeypatch.setattr(snoozed, "URLS_AT_ONCE", 7)
        monkeypatch.setattr(snoozed, "HOSTS_AT_ONCE", 1)
        async with world(tmp_path, crawl_name, redis_url, **RETIRING) as w:
            node = await offered(w)
            await w.turn(node, 4)
            before = await in_redis(w, node)
            await w.client.command("ZADD", w.keys(node, DEAD).snoozed, RETIRED_MS, DEAD)
            [mine] = node.ownership.owned.values()
            left: list[int] = []
            while mine.hot.by_host[DEAD] or not left:
                mine.away.record_changes(1)
                await snoozed.park_snoozed(node.parts.crawl.client, [mine], 0)
                left.append(await in_redis(w, node))
                if len(left) > 10:
                    break
            taken = len(node.handout.held)
            assert left[:2] == [max(0, before - 7), max(0, before - 14)]
            assert left[-1] == 0 or taken

    asyncio.run(scenario())
