"""What nodes did last: what is sent, when, and what is shown of it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.redisdb.scripts import NodesMade
from bigcrawl.scheduler.handout.recent import FETCHES_MAX, SENT_MAX, item_text
from bigcrawl.views.activity.recent import recent_of, timeline_of, watch
from bigcrawl.views.opened_crawl import open_crawl
from tests.unit.scheduler.gates.test_speed import awaited
from tests.unit.scheduler.world import queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from tests.unit.scheduler.world import World


async def fetch_all(w: World, node: Node, *urls: str) -> None:
    for url in queued(*urls):
        node.offer(url)
    for held in await w.take(node):
        w.end(node, held, "status:200")
    node.pump.wake()
    await node.pump.turn()


@awaited
async def test_fetches_are_sent_while_somebody_watches(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """With the next heartbeats, and no more when nobody has looked for a while; nothing is sent again."""
    async with world(tmp_path, crawl_name, redis_url) as w:
        node = await w.joined()
        await fetch_all(w, node, "http://a.example/1", "http://b.example/2")
        await node.parts.heartbeat.send()
        assert node.parts.exchange.recent.calls() == []
        async with open_crawl(w.config, redis_url) as crawl:
            assert (await recent_of(crawl))["fetches"] == []
            await node.parts.control.read()
            await node.parts.heartbeat.send()
            found = (await recent_of(crawl))["fetches"]
            assert {(row["url"], row["status"], row["outcome"], row["node"]) for row in found} == {
                (f"http://{name}", 200, "page", node.node_id) for name in ("a.example/1", "b.example/2")
            }
            assert node.parts.exchange.recent.calls() == []
            timeline = timeline_of(await watch(crawl, "b.example"), "b.example")
            assert [row["url"] for row in timeline] == ["http://b.example/2"]


@awaited
async def test_look_at_a_deleted_crawl_leaves_nothing_behind(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A dashboard keeps a crawl open for a minute, and the crawl may be deleted meanwhile."""
    async with world(tmp_path, crawl_name, redis_url) as w:
        await w.joined()
        async with open_crawl(w.config, redis_url) as crawl:
            await recent_of(crawl)
            control = CrawlKeys(crawl_name).control
            assert await w.client.command("HGET", control, "watched")
            await w.client.command("DEL", control, CrawlKeys(crawl_name).crawl)
            await recent_of(crawl)
            await watch(crawl, "a.example")
            assert not await w.client.command("EXISTS", control)


@awaited
async def test_log_goes_along_whenever_there_is_a_new_line(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Nobody needs to watch. A full or silent Redis gets it the next time."""
    async with world(tmp_path, crawl_name, redis_url) as w:
        node = await w.joined()
        engine: Any = node.parts.engine
        engine.made = lambda: NodesMade(0, 2, 0)
        engine.log_rows = lambda: [(1.0, 3.0, "WARNING", "spider", "careful", 2)]
        recent = node.parts.exchange.recent
        assert len(recent.calls()) == 1
        recent.record_replies([RedisRefusedError("full")])
        assert len(recent.calls()) == 1
        await node.parts.heartbeat.send()
        assert recent.calls() == []
        async with open_crawl(w.config, redis_url) as crawl:
            expected = {
                "at": 3.0,
                "first_at": 1.0,
                "level": "WARNING",
                "logger": "spider",
                "text": "careful",
                "count": 2,
            }
            assert (await recent_of(crawl))["log"] == [{"node": node.node_id, **expected}]


@awaited
async def test_damaged_text_of_a_node_is_left_out(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """That of the others is shown."""
    async with world(tmp_path, crawl_name, redis_url) as w:
        await w.joined()
        damaged = {
            "a": "[",
            "b": "[]",
            "c": '{"at_ms": 1, "log": [[1]]}',
            "d": '{"at_ms": 1, "log": [], "fetches": [[1, 2]], "items": []}',
            "e": '{"at_ms": 1, "log": [], "fetches": [[1000, "http://a.example/", "error:dns", 0, 5]], "items": []}',
        }
        for node, text in damaged.items():
            await w.client.command("HSET", CrawlKeys(crawl_name).recent, node, text)
        async with open_crawl(w.config, redis_url) as crawl:
            [fetch] = (await recent_of(crawl))["fetches"]
            assert (fetch["node"], fetch["status"], fetch["outcome"], fetch["at"]) == ("e", None, "error:dns", 1.0)


def test_memory_of_fetches_is_bounded() -> None:
    """And what is sent of it even more."""
    assert SENT_MAX < FETCHES_MAX <= 300


@dataclasses.dataclass
class Product:
    name: str
    price: float
    image: bytes


class Odd:
    __slots__ = ()

    def __repr__(self) -> str:
        raise ValueError("no text")


def test_item_is_one_plain_line() -> None:
    """Of a dict, a dataclass or any class; of large values the beginning, and no more than three hundred characters."""
    assert item_text({"url": "http://me:pw@a.example/", "n": 5}) == "url: http://a.example/, n: 5"
    assert item_text(Product("a\x1b\nb", 1.5, b"x" * 2_000)) == "name: a\\x1b b, price: 1.5, image: 2,000 bytes"
    assert len(item_text({"body": "x" * 10_000_000, "more": list(range(10**6))})) == 300
    assert "Odd" in item_text(Odd())
