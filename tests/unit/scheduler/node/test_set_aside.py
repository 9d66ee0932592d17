"""A blacklisted URL is not fetched and not lost: from the node back to disk, and out again when the entry is gone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.node.control import BLACKLISTED
from bigcrawl.scheduler.rules.blacklist import OFF, ON
from tests.support.redis_servers.lost_replies import LostReplies, once
from tests.unit.scheduler.gates.test_speed import awaited
from tests.unit.scheduler.world import World, queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node

GOOD, BAD = "http://good.example/", "http://bad.example/"
PAGES = [f"{site}{page}" for site in (GOOD, BAD) for page in range(3)]


async def say(made: World, entry: str, value: bytes | None = ON) -> None:
    keys = CrawlKeys(made.config.crawl.name)
    row = ("HDEL", keys.blacklist, entry) if value is None else ("HSET", keys.blacklist, entry, value)
    await made.client.commands([row, ("HINCRBY", keys.control, BLACKLISTED, "1")])


async def run(made: World, node: Node, rounds: int = 12) -> list[str]:
    """Let the node go on and end at once what it hands out; the URLs."""
    fetched = []
    for _ in range(rounds):
        await node.steer.turn()
        await made.turn(node, 1)
        await asyncio.gather(*node.parts.gates.gatekeeper._tasks)
        while (held := node.handout.buffer.pop()) is not None:
            fetched.append(held.url)
            made.end(node, held)
    return sorted(fetched)


async def begun(made: World, *urls: str) -> Node:
    node = await made.joined()
    for url in queued(*urls):
        node.offer(url)
    return node


async def counts(node: Node) -> dict[str, int]:
    seen = await node.progress.survey()
    return {name: seen.counts[name] for name in ("withheld", "set_aside", "waiting", "hot")}


@pytest.mark.parametrize("entry", ["bad.example", "*.example", "re:^http://bad", "re:/bad.example/"])
@awaited
async def test_what_the_settings_cover_is_withheld(tmp_path: Path, crawl_name: str, redis_url: str, entry: str) -> None:
    """Nothing of it is fetched, the crawl is empty without it, and it is counted."""
    entries = ["bad.example"] if entry == "*.example" else [entry]
    async with world(tmp_path, crawl_name, redis_url, blacklist=entries) as made:
        node = await begun(made, *PAGES)
        assert await run(made, node) == [page for page in PAGES if page.startswith(GOOD)]
        assert await counts(node) == {"withheld": 3, "set_aside": 0, "waiting": 0, "hot": 0}
        assert (await node.progress.survey()).is_empty


@pytest.mark.parametrize("policy", ["star", "none"])
@awaited
async def test_what_is_hot_goes_back_to_disk_and_out_again(
    tmp_path: Path, crawl_name: str, redis_url: str, policy: str
) -> None:
    """Blacklisted when its URLs are taken, buffered and in Redis: none is fetched; taken off, each is, once."""
    async with world(tmp_path, crawl_name, redis_url, budget_policy=policy) as made:
        node = await begun(made, *PAGES)
        for _ in range(4):
            await made.turn(node, 1)
            await asyncio.gather(*node.parts.gates.gatekeeper._tasks)
        assert any(held.url.startswith(BAD) for held in node.handout.held)
        await say(made, "bad.example")
        assert await run(made, node) == [page for page in PAGES if page.startswith(GOOD)]
        told = await counts(node)
        assert (told["withheld"], told["waiting"], told["hot"]) == (3, 0, 0)
        assert told["set_aside"] >= 1
        assert (await node.progress.survey()).is_empty
        await say(made, "bad.example", None)
        assert await run(made, node, 16) == [page for page in PAGES if page.startswith(BAD)]
        assert await counts(node) | {"set_aside": 0} == {"withheld": 0, "set_aside": 0, "waiting": 0, "hot": 0}
        assert made.fatal == []


@awaited
async def test_an_entry_of_the_settings_can_be_taken_off(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """What is said while the crawl runs stands above the settings."""
    async with world(tmp_path, crawl_name, redis_url, blacklist=["bad.example"]) as made:
        await say(made, "bad.example", OFF)
        node = await begun(made, *PAGES)
        assert await run(made, node) == sorted(PAGES)


@pytest.mark.parametrize("server_delay", [0, 0.01])
@awaited
async def test_an_address_is_covered_when_the_name_is_resolved(
    tmp_path: Path, crawl_name: str, redis_url: str, server_delay: float
) -> None:
    """With and without a gate: set aside after DNS, withheld as long as ranges are the same, then tried again."""
    settings: dict[str, Any] = {"blacklist": ["192.0.2.0/24"], "server_delay": server_delay}
    async with world(tmp_path, crawl_name, redis_url, **settings) as made:
        node = await begun(made, *PAGES)
        assert await run(made, node, 20) == []
        told = await counts(node)
        assert (told["withheld"], told["set_aside"], told["waiting"]) == (6, 6, 0)
        await say(made, "198.51.100.0/24")
        assert await run(made, node, 24) == []
        assert (await counts(node))["set_aside"] == 12
        await say(made, "192.0.2.0/24", OFF)
        for _ in range(6):
            await asyncio.sleep(0.05)  # the gate's clock is the server's
            fetched = await run(made, node, 6)
            if fetched:
                break
        assert fetched


@awaited
async def test_robots_txt_of_a_blacklisted_host_is_not_asked_for(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Nor is one that its address is covered of."""
    async with world(tmp_path, crawl_name, redis_url, robots="obey", blacklist=["bad.example"]) as made:
        node = await begun(made, *PAGES)
        await run(made, node)
        assert made.web.asked == [f"{GOOD}robots.txt"]
    async with world(tmp_path / "b", f"{crawl_name}-b", redis_url, robots="obey", blacklist=["192.0.2.1"]) as made:
        node = await begun(made, *PAGES)
        await run(made, node)
        assert made.web.asked == []
        assert (await counts(node))["withheld"] == 6


@awaited
async def test_a_reply_that_was_lost_loses_no_url_and_doubles_none(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Redis did it and the node does not know: once both sides are compared there is one of each."""
    async with world(tmp_path, crawl_name, redis_url) as made:
        node = await begun(made, *PAGES)
        await made.turn(node, 3)
        losing = LostReplies(node.parts.crawl.client, once("set_aside_urls"))
        await say(made, "bad.example")
        fetched: list[str] = []
        for _ in range(20):
            try:
                fetched += await run(made, node, 1)
            except TransientStoreError:
                assert node.parts.crawl.client.in_doubt
        assert losing.lost == 1
        assert sorted(fetched) == [page for page in PAGES if page.startswith(GOOD)]
        assert (await counts(node))["withheld"] == 3
        await say(made, "bad.example", None)
        assert await run(made, node, 16) == [page for page in PAGES if page.startswith(BAD)]


@awaited
async def test_a_node_that_leaves_takes_nothing_along(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Set aside at the last moment: told before the partitions are released, and the next node finds it withheld."""
    async with world(tmp_path, crawl_name, redis_url) as made:
        node = await begun(made, *PAGES)
        await made.turn(node, 3)
        await say(made, "bad.example")
        made.clock.advance(500)
        await node.steer.turn()
        await node.departure.close()
        other = await made.joined()
        assert await run(made, other) == [page for page in PAGES if page.startswith(GOOD)]
        assert (await counts(other))["withheld"] == 3


@awaited
async def test_a_wrong_entry_ends_the_start(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """As any wrong setting does."""
    made = World(tmp_path, crawl_name, redis_url, {"blacklist": ["192.0.2.0/99"]})
    with pytest.raises(ConfigError, match="which is not a valid address range"):
        made.new_node()
    await made.close()
