"""A node keeps to the crawl's speed: what is handed out, what waits for it and where, and what is said meanwhile."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.node.control import SPEED
from tests.unit.scheduler.world import World, make_config, queued, world

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node

HOSTS = 20


def awaited(test: Callable[..., Coroutine[None, None, None]]) -> Callable[..., None]:
    """A test that pytest can run."""

    @functools.wraps(test)
    def run(*fixtures: object, **named: object) -> None:
        asyncio.run(test(*fixtures, **named))

    return run


async def steer(made: World, node: Node, *, ms: int = 1_000, step_ms: int = 50) -> int:
    """Let a node go on for a while and hand out what may start; how many did."""
    started = 0
    for _ in range(ms // step_ms):
        made.clock.advance(step_ms)
        await node.pump.turn()
        await node.steer.turn()
        while node.handout.buffer.pop() is not None:
            started += 1
    return started


async def filled(made: World) -> Node:
    """A node with many hosts to fetch from."""
    node = await made.joined()
    for number in range(HOSTS):
        node.offer(queued(*(f"http://h{number}.example/{page}" for page in range(5)))[0])
    await made.turn(node)
    return node


async def say(made: World, text: str | None) -> None:
    key = CrawlKeys(made.config.crawl.name).control
    words = ("HDEL", key, SPEED) if text is None else ("HSET", key, SPEED, text)
    await made.client.command(*words)


@awaited
async def test_pages_wait_for_speed_in_the_node_and_in_no_slot(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """With a speed, `pop` gives what is due by it; the others stay buffered, and no more is taken than soon starts."""
    async with world(tmp_path, crawl_name, redis_url, speed="5/s") as made:
        since_s = time.monotonic()
        node = await filled(made)
        assert node.handout.buffer.pop() is None
        await asyncio.sleep(0.3)  # the server's clock is the real one
        started = await steer(made, node, ms=200)
        due = 5 * (time.monotonic() - since_s)  # however long a busy machine takes
        assert 0 < started < 4 + due
        assert 0 < len(node.handout.held) - started <= 5 + due


@pytest.mark.parametrize(("speed", "nodes", "wait_s"), [("0.05/s", 1, 10), ("0.05/s", 2, 5), ("0.25/s", 2, 1)])
@awaited
async def test_refused_node_asks_seldom_at_a_low_speed(
    tmp_path: Path, crawl_name: str, redis_url: str, speed: str, nodes: int, wait_s: float
) -> None:
    """With others, after a quarter of the time between two starts, because they may give some back."""
    async with world(tmp_path, crawl_name, redis_url, speed=speed) as made:
        control = (await made.joined()).handout.speed
        for _ in range(2):
            assert not control.is_refused
            await control.request_permits(5, nodes)
        assert control.refused_s == wait_s


@awaited
async def test_without_a_speed_redis_is_not_asked(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """No limit, no permits: everything that is ready is handed out, and no key of the speed appears."""
    async with world(tmp_path, crawl_name, redis_url) as made:
        node = await filled(made)
        assert await steer(made, node, ms=2_000) > HOSTS // 2
        assert not await made.client.command("EXISTS", CrawlKeys(crawl_name).speed)


@awaited
async def test_a_pause_and_its_end_are_heard_while_the_crawl_runs(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """0/s stops starts and takes at the next hearing; taken away, the settings' plan, here none, is in force again."""
    async with world(tmp_path, crawl_name, redis_url) as made:
        node = await filled(made)
        await say(made, "0/s")
        made.clock.advance(500)
        await node.steer.turn()
        held = len(node.handout.held)
        assert await steer(made, node) == 0
        assert len(node.handout.held) == held
        await say(made, None)
        assert await steer(made, node, ms=2_000) > HOSTS // 2


@awaited
async def test_a_text_that_is_no_plan_changes_nothing(
    tmp_path: Path, crawl_name: str, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What somebody wrote into Redis past the command is told once and left out."""
    async with world(tmp_path, crawl_name, redis_url, speed="5/s") as made:
        node = await filled(made)
        with caplog.at_level(logging.WARNING):
            await say(made, "as fast as you can")
            await steer(made, node, ms=1_500)
        assert caplog.text.count("the speed stays as it is") == 1
        assert node.parts.handout.speed.speed.pages == 5


@awaited
async def test_another_speed_at_another_time_of_day(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The plan is followed by the time of the crawls as the node goes on, without anything being said."""
    plan = ";".join(f"{minute + 1}/s {minute // 60:02}:{minute % 60:02}-24:00" for minute in range(1439, -1, -1))
    async with world(tmp_path, crawl_name, redis_url, speed=plan) as made:
        node = await made.joined()
        await node.steer.turn()
        before = node.parts.handout.speed.speed.pages
        node.parts.handout.speed.record_time(made.clock.now_ms())
        minute = made.clock.now_ms() // 60_000 % 1440
        node.parts.handout.speed.adopt_plan(None)
        assert node.parts.handout.speed.speed.pages == minute + 1
        assert before >= 1


@awaited
async def test_robots_txt_waits_for_its_turn_and_counts(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A robots.txt is fetched by a permit like a page; without one it is not asked for, and a stop forgets it."""
    async with world(tmp_path, crawl_name, redis_url, speed="5/s", robots="obey") as made:
        node = await filled(made)
        await say(made, "0/s")
        made.clock.advance(500)
        await node.steer.turn()
        await made.turn(node, 2)
        await asyncio.sleep(0)
        assert made.web.asked == []
        await say(made, "1000/s")
        for _ in range(20):
            await steer(made, node, ms=100)
            await asyncio.sleep(0.02)
        assert made.web.asked
        await say(made, "0/s")
        await steer(made, node, ms=1_000)
        node.handout.return_unstarted()


@awaited
async def test_a_wrong_setting_ends_the_start(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A node with a plan that is none does not come to be."""
    made = World(tmp_path, crawl_name, redis_url, {"speed": "many"})
    with pytest.raises(ConfigError, match="BIGCRAWL_SPEED has 'many'"):
        made.new_node()
    await made.close()
    assert make_config(tmp_path, crawl_name, speed="80/s").pace.speed == "80/s"
