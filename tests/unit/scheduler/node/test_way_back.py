"""Each way to withhold a URL has its way back, also once the crawl is finished: the next start goes on with it."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from scrapy.crawler import Crawler

from bigcrawl.commands.running import parse_action, run_action
from bigcrawl.links import Links
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.spiders.site import SiteSpider
from tests.support.keys import url_key
from tests.unit.scheduler.gates.test_speed import awaited
from tests.unit.scheduler.world import World, queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.budgets.in_degrees import InDegreeArray
    from bigcrawl.scheduler.budgets.policy import BudgetArray
    from bigcrawl.scheduler.node.node import Node

HOST = "site.example"
SHALLOW = [f"http://{HOST}/{page}" for page in range(3)]
DEEP = [f"http://{HOST}/deep/{page}" for page in range(3)]
PAGE_BYTES = 4_096


class Nothing:
    """A policy that gives nobody a budget."""

    def __init__(self, config: object, counts: object) -> None:
        """Begin; everything is withheld."""

    def budgets(self, plds: object, in_degrees: InDegreeArray) -> BudgetArray:
        return np.zeros_like(in_degrees)


class Way(NamedTuple):
    """How URLs come to be withheld, and how they are let go.

    Attributes:
        withheld_by: settings of the first start.
        raised: what differs at the next start.
        before: a command before the first URL is found.
        after: a command once the crawl is finished.
    """

    withheld_by: dict[str, Any]
    raised: dict[str, Any] | None = None
    before: str = ""
    after: str = ""


def rules(name: str, **limits: int) -> dict[str, Any]:
    return {"budget_rules": {name: limits}}


def by_argument(**arguments: int) -> dict[str, Any]:
    """The rules that the spider's arguments make."""
    crawler = Crawler(SiteSpider)  # Scrapy makes the spider before the settings are frozen
    SiteSpider.from_crawler(crawler, seeds=SHALLOW, **arguments)
    return {"budget_rules": crawler.settings.getdict("BIGCRAWL_BUDGET_RULES")}


LIMITS = {
    "budget": ("urls", 0, 100),
    "pages": ("pages", 2, 100),
    "bytes": ("bytes", 1, 10**9),
    "depth": ("depth", 1, 9),
}
WAYS = {
    "policy, another": Way({"budget_policy": f"{__name__}.Nothing"}, {"budget_policy": "star"}),
    "policy, a command": Way({"budget_policy": f"{__name__}.Nothing"}, after=f"budget {HOST} --urls 9"),
    "blacklist, the setting": Way({"blacklist": [HOST]}, {"blacklist": []}),
    "blacklist, a command": Way({"blacklist": [HOST]}, after=f"blacklist remove {HOST}"),
    "blacklist of a pattern, the setting": Way({"blacklist": ["re:/deep/"]}, {"blacklist": []}),
    "blacklist of a command, a command": Way({}, before=f"blacklist add {HOST}", after=f"blacklist remove {HOST}"),
    "range of addresses, the setting": Way({"blacklist": ["192.0.2.0/24"]}, {"blacklist": []}),
    "range of addresses, a command": Way({"blacklist": ["192.0.2.0/24"]}, after="blacklist remove 192.0.2.0/24"),
    "pause of a host, resume": Way({}, before=f"pause {HOST}", after=f"resume {HOST}"),
}
for limit, (option, low, high) in LIMITS.items():
    for name in (HOST, "*", "re:/"):
        WAYS[f"{limit} of {name}, the setting"] = Way(rules(name, **{limit: low}), rules(name, **{limit: high}))
    WAYS[f"{limit}, no setting"] = Way(rules(HOST, **{limit: low}), {"budget_rules": {}})
    WAYS[f"{limit}, a command"] = Way(rules("*", **{limit: low}), after=f"budget '*' --{option} {high}")
    WAYS[f"{limit}, unset"] = Way(rules("*", **{limit: low}), after="budget '*' --unset")
    lower = f"budget {HOST} --{option} {low}"
    WAYS[f"{limit} of a command, a command"] = Way({}, before=lower, after=f"budget {HOST} --{option} {high}")
    WAYS[f"{limit} of a command, unset"] = Way({}, before=lower, after=f"budget {HOST} --unset")
for limit in ("pages", "depth"):
    option, low, high = LIMITS[limit]
    bounds = by_argument(**{limit: low})
    WAYS[f"{limit} of an argument, an argument"] = Way(bounds, by_argument(**{limit: high}))
    WAYS[f"{limit} of an argument, a command"] = Way(bounds, after=f"budget '*' --{option} {high}")


async def order(made: World, words: str) -> None:
    """Give a command, as an operator does."""
    name, *args = shlex.split(words)
    done = await asyncio.to_thread(run_action, made.config, name, parse_action(name, args))
    assert done.status == 0


def offer(node: Node, urls: list[str], depth: int) -> None:
    encode = links_encoder(Links(()), depth)
    for url in urls:
        node.offer(encode(url_key(url), url))


async def run(made: World, node: Node, rounds: int = 40) -> list[str]:
    """Let the node go on until it finds the crawl finished; the URLs that it was given."""
    fetched = []
    for _ in range(rounds):
        await node.steer.turn()
        await made.turn(node, 1)
        await asyncio.gather(*node.parts.gates.gatekeeper._tasks)
        while (held := node.handout.buffer.pop()) is not None:
            fetched.append(held.url)
            held.fetched_bytes = PAGE_BYTES
            made.end(node, held)
        if node.progress.is_finished and node.workload.is_empty:
            break
    assert node.progress.is_finished
    return fetched


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@awaited
async def test_withheld_urls_of_a_finished_crawl_are_fetched_once_they_may(
    tmp_path: Path, crawl_name: str, redis_url: str, way: Way
) -> None:
    """Whatever withholds them, and whatever lets them go; each page once, and none is in no count meanwhile."""
    settings = {"budget_policy": "none", **way.withheld_by}
    async with world(tmp_path, crawl_name, redis_url, **settings) as made:
        node = await made.joined()
        if way.before:
            await order(made, way.before)
            await node.steer.turn()
            await made.turn(node)
        offer(node, SHALLOW, 1)
        fetched = await run(made, node)
        offer(node, DEEP, 3)
        fetched += await run(made, node)
        assert len(fetched) < len(SHALLOW + DEEP)
        seen = await node.departure.close()
        assert seen is not None
        assert seen.counts["withheld"] == len(SHALLOW + DEEP) - len(fetched)
        if way.after:
            await order(made, way.after)
    async with world(tmp_path, crawl_name, redis_url, **settings | (way.raised or {})) as made:
        node = await made.joined()
        assert not node.progress.is_finished
        fetched += await run(made, node)
        assert sorted(fetched) == sorted(SHALLOW + DEEP)
        seen = await node.departure.close()
        assert seen is not None
        assert seen.counts["withheld"] == 0


@awaited
async def test_finished_crawl_with_the_same_limits_stays_finished(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Nothing is read again on disk: the start ends at once."""
    for has_begun in (False, True):
        async with world(tmp_path, crawl_name, redis_url, budget_policy="none", **rules("*", pages=2)) as made:
            node = await made.joined()
            assert node.progress.is_finished is has_begun
            if not has_begun:
                offer(node, SHALLOW, 1)
                assert len(await run(made, node)) == 2
            await node.departure.close()


@awaited
async def test_a_raised_limit_is_heard_by_a_crawl_about_to_end(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The end is not announced by limits of before."""
    async with world(tmp_path, crawl_name, redis_url, budget_policy="none", **rules("*", pages=2)) as made:
        node = await made.joined()
        offer(node, SHALLOW, 1)
        fetched = await run(made, node)
        node.progress.go_on()
        await order(made, "budget '*' --pages 9")
        fetched += await run(made, node)
        assert sorted(fetched) == SHALLOW


@awaited
async def test_partition_that_was_not_asked_yet_holds_up_the_end(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """A node is done with its own partitions before another has opened those that it claims."""
    settings = {"budget_policy": "none", "partitions": 2}
    async with world(tmp_path, crawl_name, redis_url, **settings, **rules("*", pages=1)) as made:
        node = await made.joined()
        for url in queued(*(f"http://site{site}.example/{page}" for site in range(8) for page in range(2))):
            node.offer(url)
        assert len(await run(made, node)) == 8
        await node.departure.close()
    async with world(tmp_path, crawl_name, redis_url, **settings) as made:
        node = await made.joined()
        late = node.ownership.owned.pop(1)
        assert late.schedule.withheld
        for _ in range(4):
            assert not await node.parts.progress.finish.look()
