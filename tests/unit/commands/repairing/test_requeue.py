"""`scrapy frontier forget` and `retry`: URLs that ended may be met or fetched once more, and no others are."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.commands.repairing.requeue import forget, retry
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.keys import CrawlKeys, PartitionKeys
from bigcrawl.url.canonical import UrlError
from bigcrawl.views.explain import explain_url
from tests.unit.scheduler.world import queued, viewed, world

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bigcrawl.commands.result import Result
    from bigcrawl.scheduler.node.node import Node
    from tests.unit.scheduler.world import World

ENDED, WAITING, UNKNOWN = "http://a.example/ended", "http://b.example/waits", "http://c.example/unknown"


async def run(act: Callable[..., Result], w: World, *urls: str) -> Result:
    """The command, as another process: in a thread, with a loop of its own."""
    return await asyncio.to_thread(act, w.config, urls, argparse.Namespace())


async def explained(w: World, url: str) -> dict[str, Any]:
    return await viewed(w.config, explain_url, url)


async def fetch(w: World, node: Node, outcome: str = "status:200") -> list[str]:
    """Fetch until nothing more becomes ready; the URLs."""
    urls: list[str] = []
    while held := await w.take(node):
        for one in held:
            w.end(node, one, outcome)
        urls += [one.url for one in held]
    await w.turn(node, 4)
    return urls


async def begun(w: World) -> Node:
    """A crawl of which one URL has ended and another waits, taken."""
    node = await w.joined()
    for url in queued(ENDED, WAITING):
        node.offer(url)
    held = {one.url: one for one in await w.take(node)}
    w.end(node, held[ENDED], "error:timeout")
    await node.parts.exchange.run(acknowledge=True, urls_max=0)
    return node


def test_url_that_ended_is_fetched_once_more(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Its new end replaces the old one; it stays seen, so links to it queue nothing."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await begun(w)
            assert (await explained(w, ENDED))["outcome"]["name"] == "error:timeout"
            answer = await run(retry, w, ENDED + "#any-spelling")
            assert (answer.status, answer.text) == (0, f"queued again: {ENDED}")
            found = await explained(w, ENDED)
            assert (found["where"], found["outcome"]["name"], found["seen"]) == ("inbox", "queued-again", True)
            assert await fetch(w, node) == [ENDED]
            found = await explained(w, ENDED)
            assert (found["where"], found["outcome"]["name"]) == ("ended", "status:200")
            node.offer(queued(ENDED)[0])
            assert await fetch(w, node) == []

    asyncio.run(scenario())


def test_url_that_has_not_ended_is_left_where_it_is(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Queued twice it would be fetched twice; the answer says where it is, and others are queued all the same."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await begun(w)
            answer = await run(retry, w, WAITING, ENDED)
            assert answer.status == 1
            assert answer.data["again"] == [ENDED]
            assert f"not queued again: {WAITING} is taken by" in answer.text
            again = await run(retry, w, ENDED, ENDED)
            assert (again.status, again.data["again"]) == (1, [])
            assert await fetch(w, node) == [ENDED]

    asyncio.run(scenario())


def test_unknown_url_is_queued_as_a_new_one(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """And remembered as one: offered again it is a duplicate."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await begun(w)
            answer = await run(retry, w, UNKNOWN)
            assert (answer.status, answer.data["new"]) == (0, [UNKNOWN])
            node.offer(queued(UNKNOWN)[0])
            assert await fetch(w, node) == [UNKNOWN]
            assert (await explained(w, UNKNOWN))["seen"] is True
            seen = await node.progress.survey()
            assert (seen.counts["appended_urls"], seen.counts["folded_urls"]) == (4, 4)

    asyncio.run(scenario())


def test_forgotten_url_is_new_to_whoever_links_to_it(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Nothing is queued by forgetting; the next link does it, and its end is kept as any."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await begun(w)
            answer = await run(forget, w, ENDED, UNKNOWN)
            assert answer.data == {"forgotten": [ENDED, UNKNOWN]}
            found = await explained(w, ENDED)
            assert (found["where"], found["seen"], found["outcome"]) == ("nowhere", False, None)
            assert await fetch(w, node) == []
            found = await explained(w, ENDED)
            assert (found["where"], found["seen"], found["outcome"]) == ("nowhere", False, None)
            for url in queued(ENDED, WAITING):
                node.offer(url)
            assert await fetch(w, node, "status:404") == [ENDED]
            assert (await explained(w, ENDED))["outcome"]["name"] == "status:404"

    asyncio.run(scenario())


@pytest.mark.parametrize("act", [forget, retry])
def test_finished_crawl_goes_on(tmp_path: Path, crawl_name: str, redis_url: str, act: Callable[..., Result]) -> None:
    """The word that it is finished is taken back, or the next start would believe it."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await begun(w)
            for held in node.handout.held:
                w.end(node, held)
            await w.turn(node, 6)
            finished = CrawlKeys(crawl_name).crawl, "finished"
            assert await w.client.command("HGET", *finished)
            await run(act, w, ENDED)
            assert await w.client.command("HGET", *finished) is None
            assert not (await node.progress.survey()).is_empty

    asyncio.run(scenario())


@pytest.mark.parametrize("act", [forget, retry])
def test_what_is_no_url_changes_nothing(
    tmp_path: Path, crawl_name: str, redis_url: str, act: Callable[..., Result]
) -> None:
    """One wrong word among right ones: an error, and no inbox has grown."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            await begun(w)
            before = await survey_ids(w)
            with pytest.raises(UrlError, match="mailto"):
                await run(act, w, ENDED, "mailto:a@b.example")
            assert await survey_ids(w) == before

    async def survey_ids(w: World) -> list[Any]:
        partitions = range(w.config.crawl.partitions)
        return [await w.client.command("XLEN", f"bigcrawl:{{{crawl_name}:p{p}}}:inbox") for p in partitions]

    asyncio.run(scenario())


def test_crawl_that_is_not_there_is_told(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Nothing is forgotten of a crawl that Redis does not know."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            with pytest.raises(ConfigError, match="no crawl"):
                await run(forget, w, ENDED)

    asyncio.run(scenario())


def test_many_urls_go_to_many_partitions(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Each to its own, in few messages."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, in_process_max=200) as w:
            node = await w.joined()
            urls = [f"http://h{i}.example/" for i in range(60)]
            for url in queued(*urls):
                node.offer(url)
            assert sorted(await fetch(w, node)) == sorted(urls)
            answer = await run(retry, w, *urls)
            assert (answer.status, sorted(answer.data["again"])) == (0, sorted(urls))
            assert sorted(await fetch(w, node)) == sorted(urls)
            inboxes = [("XRANGE", PartitionKeys(crawl_name, number).inbox, "-", "+") for number in range(4)]
            entries = [fields for entries in await w.client.commands(inboxes) for _, fields in entries]
            assert sum(fields[0] == b"b" for fields in entries) <= 4 + 4
            seen = await node.progress.survey()
            assert (seen.counts["status:200"], seen.counts["seen"]) == (120, 60)

    asyncio.run(scenario())
