"""A node dies in mid-fetch: whoever goes on leaves its hosts alone for as long as they asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.scheduler.gates.interfaces import FetchedBody
from tests.unit.scheduler.gates.test_speed import awaited
from tests.unit.scheduler.world import World, queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node

HOST = "a.example"
PAGES = [f"http://{HOST}/{page}" for page in range(3)]
DELAY_S = 600


async def due_in_ms(w: World, node: Node) -> float:
    """How long the host must be left alone yet."""
    due_ms = await w.client.command("ZSCORE", w.keys(node, HOST).ready, HOST)
    return float(due_ms) - node.parts.crawl.client.now_ms()


async def time_comes(w: World, node: Node) -> None:
    """The host's rest is over, as if it had passed: in the ready heap, and in the host's record."""
    keys = w.keys(node, HOST)
    await w.client.commands([("ZADD", keys.ready, 0, HOST), ("HSET", keys.host + HOST, "next", 0)])
    for mine in node.ownership.owned.values():
        mine.record_due(0)


@awaited
@pytest.mark.parametrize("asks", ["Crawl-delay", "rule", "back-off"])
async def test_resumed_crawl_lets_hosts_rest_as_long_as_they_asked(
    tmp_path: Path, crawl_name: str, redis_url: str, asks: str
) -> None:
    """Not for the settings' delay alone: robots.txt, a rule by hand, or a failure asked for more."""
    settings: dict[str, object] = {"robots": "obey", "host_delay": 1, "crawl_delay_max": DELAY_S}
    settings |= {"delay_rules": {HOST: {"delay": DELAY_S}}} if asks == "rule" else {}
    settings |= {"backoff": DELAY_S, "backoff_max": DELAY_S} if asks == "back-off" else {}
    async with world(tmp_path, crawl_name, redis_url, **settings) as w:
        rules = f"User-agent: *\nCrawl-delay: {DELAY_S if asks == 'Crawl-delay' else 0}\n".encode()
        w.web.answers[f"http://{HOST}/robots.txt"] = FetchedBody(200, rules)
        node = await w.joined()
        for url in queued(*PAGES):
            node.offer(url)
        await w.take(node, 3)
        await time_comes(w, node)
        [held] = await w.take(node, 2)
        w.end(node, held, "status:429" if asks == "back-off" else "status:200")
        await w.turn(node, 1)
        await time_comes(w, node)
        await w.take(node, 2)
        assert len(node.handout.held) == 1, "a page is in process"
        await node.departure.abandon()
        again = await w.joined()
        assert await due_in_ms(w, again) > (DELAY_S - 30) * 1_000
