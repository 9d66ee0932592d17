"""URLs whose request the spider cannot run wait on disk, counted by what is missing, and go on when it is there."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING

import msgpack
import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.links import Links
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.node.loops.watch import STUCK_LOOKS
from bigcrawl.scheduler.records.queued_url import QueuedUrl
from bigcrawl.scheduler.rules.callbacks import ANY_CALLBACKS, Callbacks
from tests.support.keys import url_key
from tests.unit.scheduler.gates.test_speed import awaited
from tests.unit.scheduler.world import World, queued, world, world_of_one_clock

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node

PLAIN = [f"http://a.example/plain/{page}" for page in range(3)]
OLD = [f"http://{host}.example/old/{page}" for host in "ab" for page in range(4)]
OLDER = ["http://b.example/older"]


def spider_with(*methods: str, entries: tuple[str, ...] = ()) -> Callbacks:
    return Callbacks(entries, SimpleNamespace(**dict.fromkeys(methods, print)))


NEW_CODE = spider_with("parse")


def named(urls: list[str], callback: str) -> list[QueuedUrl]:
    encode = links_encoder(Links((), callback=callback), 0)
    return [encode(url_key(url), url) for url in urls]


def offer(node: Node, *urls: QueuedUrl) -> None:
    for url in urls:
        node.offer(url)


async def run(made: World, node: Node, rounds: int = 12) -> list[str]:
    """Let the node go on and end at once what it hands out; the URLs."""
    fetched = []
    for _ in range(rounds):
        for held in await made.take(node, 1):
            fetched.append(held.url)
            made.end(node, held)
    return sorted(fetched)


async def begun(made: World, callbacks: Callbacks) -> Node:
    node = await made.joined(callbacks=callbacks)
    offer(node, *queued(*PLAIN), *named(OLD, "parse_old"), *named(OLDER, "parse_older"))
    return node


async def restarted(made: World, node: Node, callbacks: Callbacks) -> Node:
    await node.departure.close()
    return await made.joined(callbacks=callbacks)


async def set_aside(node: Node) -> int:
    """How often a URL was ever set aside."""
    return (await node.progress.survey()).counts["set_aside"]


@awaited
async def test_they_wait_and_the_crawl_is_not_finished(
    tmp_path: Path, crawl_name: str, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """None is fetched, dropped or left in Redis; each is taken once; what is missing is said once, and counted."""
    async with world(tmp_path, crawl_name, redis_url, robots="obey") as made:
        node = await begun(made, NEW_CODE)
        assert await run(made, node, 20) == PLAIN
        seen = await node.progress.survey()
        assert seen.unrunnable == {"parse_old": 8, "parse_older": 1}
        assert seen.counts["unrunnable"] == 9
        assert seen.counts["dropped:undecodable"] == 0
        assert (seen.waiting, seen.urls_taken, seen.counts["hot"], seen.counts["withheld"]) == (0, 0, 0, 0)
        assert seen.counts["seen"] == seen.counts["ended"] + seen.counts["unrunnable"]
        assert await set_aside(node) == 9
        assert not node.progress.is_finished
        assert await made.client.command("HGET", CrawlKeys(crawl_name).crawl, "finished") is None
        assert "8 for the method parse_old, 1 for the method parse_older" in seen.holdup
        assert made.web.asked == ["http://a.example/robots.txt"], "nothing is asked of a host for them alone"
        told = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
        assert len(told) == 2
        assert "the spider has no method parse_old" in told[0]


@awaited
async def test_the_run_ends_with_an_error_that_names_them(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """After some looks, since another node may be about to take them over; that is exit status 1."""
    async with world(tmp_path, crawl_name, redis_url) as made:
        node = await begun(made, NEW_CODE)
        await run(made, node)
        for _ in range(STUCK_LOOKS):
            await made.turn(node, 1)
        [*_, error] = made.fatal
        assert "9 URLs wait that no spider could run: 8 for the method parse_old" in str(error)
        assert "BIGCRAWL_CALLBACKS" in str(error)


@awaited
async def test_they_go_on_when_the_method_is_back(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """After a start, with nothing done by hand; those for another method wait on, and are not even taken."""
    async with world(tmp_path, crawl_name, redis_url) as made:
        node = await begun(made, NEW_CODE)
        await run(made, node)
        node = await restarted(made, node, spider_with("parse", "parse_old"))
        assert await run(made, node) == sorted(OLD)
        seen = await node.progress.survey()
        assert seen.unrunnable == {"parse_older": 1}
        assert seen.counts["set_aside"] == 9
        node = await restarted(made, node, ANY_CALLBACKS)
        assert await run(made, node, 16) == OLDER
        seen = await node.progress.survey()
        assert (seen.unrunnable, seen.holdup) == ({}, "")
        assert seen.counts["seen"] == seen.counts["ended"] == 12
        assert node.progress.is_finished


@awaited
async def test_the_setting_names_another_method_or_drops_them(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Those of one method go to another, those of a second end as undecodable, and the crawl is finished."""
    async with world(tmp_path, crawl_name, redis_url) as made:
        node = await begun(made, NEW_CODE)
        await run(made, node)
        entries = ("parse_old = parse", "parse_older=")
        node = await restarted(made, node, spider_with("parse", entries=entries))
        assert await run(made, node, 16) == sorted(OLD)
        seen = await node.progress.survey()
        assert seen.counts["dropped:undecodable"] == 1
        assert (seen.counts["unrunnable"], seen.holdup) == (0, "")
        assert node.progress.is_finished


BODIES = {
    "no msgpack": b"\xc1",
    "no list": msgpack.packb(7),
    "a file": msgpack.packb(["file:///etc/passwd", 0, None]),
    "another host": msgpack.packb(["http://b.example/", 0, None]),
    "no URL": msgpack.packb([7, 0, {}]),
}


@pytest.mark.parametrize("name", BODIES)
@awaited
async def test_damaged_ones_are_tried_once_by_each_owner(
    tmp_path: Path, crawl_name: str, redis_url: str, name: str
) -> None:
    """A later version may read them. All bytes are kept, and no node is kept busy."""
    async with world(tmp_path, crawl_name, redis_url) as made:
        node = await made.joined()
        node.offer(QueuedUrl(7, "a.example", 0, 0, BODIES[name]))
        for tries in (1, 2):
            assert await run(made, node, 16) == []
            seen = await node.progress.survey()
            assert (seen.unrunnable, seen.counts["set_aside"]) == ({"?": 1}, tries)
            assert seen.is_empty
            node = await restarted(made, node, ANY_CALLBACKS)
        node = await restarted(made, node, Callbacks(["?="], None))
        assert await run(made, node, 16) == []
        seen = await node.progress.survey()
        assert (seen.counts["unrunnable"], seen.counts["dropped:undecodable"]) == (0, 1)


@awaited
async def test_a_node_with_the_method_takes_over_from_one_without(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """The node without it ends; the other one waits for that, takes over, and fetches them. None goes to and fro."""
    async with world(tmp_path, crawl_name, redis_url) as made:
        old, new = await made.joined(callbacks=NEW_CODE), await made.joined(callbacks=ANY_CALLBACKS)
        for _ in range(4):
            await made.turn(old, 1)
            await made.turn(new, 1)
        assert old.ownership.owned
        assert new.ownership.owned
        offer(old, *named(OLD, "parse_old"))
        fetched = []
        for _ in range(20):
            assert await run(made, old, 1) == []
            fetched += await run(made, new, 1)
        waiting = (await new.progress.survey()).counts["unrunnable"]
        assert waiting == len(OLD) - len(fetched) > 0
        assert await set_aside(old) == waiting
        for _ in range(STUCK_LOOKS):
            await made.turn(old, 1)
            await made.turn(new, 1)
        assert old.parts.progress.finish.stuck_passes >= STUCK_LOOKS
        assert new.parts.progress.finish.stuck_passes == 0
        await old.departure.close()
        await new.steer.turn()  # hears that a node has left
        fetched += await run(made, new, 24)
        assert sorted(fetched) == sorted(OLD)
        assert (await new.progress.survey()).counts["unrunnable"] == 0
        assert new.progress.is_finished


@awaited
async def test_one_that_cannot_be_decided_is_set_aside(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that nobody foresaw is tried some times, and not for ever; the other URLs go on."""
    async with world_of_one_clock(ManualClock(), tmp_path, crawl_name, redis_url) as made:
        node = await made.joined()
        robots = node.parts.gates.robots
        known = robots.known_rules

        def broken(authority: str) -> object:
            if authority == "http://b.example":
                raise ZeroDivisionError
            return known(authority)

        monkeypatch.setattr(robots, "known_rules", broken)
        offer(node, *queued(*PLAIN, *OLDER))
        fetched = []
        for _ in range(12):
            made.clock.advance(5_000)
            fetched += await run(made, node, 1)
        seen = await node.progress.survey()
        assert sorted(fetched) == PLAIN
        assert seen.unrunnable == {"?": 1}
        assert seen.is_empty
