"""Outcomes on their way: from the end of a URL through the exchange and the inbox into the partition."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.crawl.survey import survey
from bigcrawl.scheduler.gates.interfaces import FetchedBody
from bigcrawl.scheduler.owner import folding
from bigcrawl.scheduler.records.outcomes import Outcome, pack_keys, pack_outcomes, read_outcome, rule_hash
from tests.support.keys import url_key
from tests.unit.scheduler.world import World, queued, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.owner.owned_partition import OwnedPartition

URL = "http://a.example/1"


def end_of(node: Node, url: str) -> Outcome | None:
    """The outcome of a URL in its partition's table."""
    for mine in node.ownership.owned.values():
        found, values = mine.disk.ends_of(np.array([url_key(url)], dtype=np.uint64))
        if found[0]:
            return read_outcome(values[0])
    return None


def name_of(node: Node, url: str) -> str:
    end = end_of(node, url)
    return end.name if end else ""


async def begun(w: World, *urls: str) -> Node:
    node = await w.joined()
    for url in queued(*urls):
        node.offer(url)
    return node


async def told(w: World, node: Node) -> None:
    """Acknowledge, and let an idle node fold."""
    await node.parts.exchange.run(acknowledge=True, urls_max=0)
    w.clock.advance(1_000)
    await node.fold.turn()


def test_each_url_that_ended_can_be_asked_for(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Statuses, errors and refusals, with the time of Redis; a URL that is tried again has no end yet."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            ends = {
                "http://a.example/": "status:200",
                "http://b.example/": "error:dns",
                "http://c.example/": "status:404",
                "http://d.example/": "",
                "http://e.example/": "aborted",
                "http://f.example/": "",
            }
            node = await begun(w, *ends)
            held = {one.url: one for one in await w.take(node)}
            assert held.keys() == ends.keys()
            seconds, _ = await w.client.command("TIME")
            held["http://f.example/"].next_try = held["http://f.example/"].member
            for url, outcome in ends.items():
                w.end(node, held[url], outcome)
            await told(w, node)
            names = {url: name_of(node, url) for url in ends}
            assert names == {**ends, "http://d.example/": "dropped:ignored", "http://e.example/": ""}
            end = end_of(node, "http://a.example/")
            assert end is not None
            assert 0 <= end.time_s - int(seconds) <= 10
            assert not any(mine.disk.manifest.rejected for mine in node.ownership.owned.values())

    asyncio.run(scenario())


def test_rule_that_forbids_is_told_by_its_hash(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The longest line that matches, as the rules that are kept have it."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, robots="obey") as w:
            body = b"User-agent: *\nDisallow: /\nDisallow: /deep\nAllow: /open"
            w.web.answers["http://a.example/robots.txt"] = FetchedBody(200, body)
            node = await begun(w, "http://a.example/deep/1", "http://a.example/other")
            await w.take(node)
            await told(w, node)
            deep, other = (end_of(node, f"http://a.example/{path}") for path in ("deep/1", "other"))
            assert deep is not None
            assert other is not None
            assert deep[:2] == ("dropped:forbidden", rule_hash("Disallow: /deep"))
            assert other[:2] == ("dropped:forbidden", rule_hash("Disallow: /"))

    asyncio.run(scenario())


def test_url_that_cannot_be_read_has_no_key_to_be_told_by(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """It is set aside, all bytes of it, and nothing is said of any key."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
            node = await begun(w, URL)
            await w.turn(node, 1)
            keys = w.keys(node, "a.example")
            [member] = await w.client.command("ZRANGE", keys.back + "a.example", 0, -1)
            await w.client.command("ZREM", keys.back + "a.example", member)
            await w.client.command("ZADD", keys.back + "a.example", 1, b"1:damaged")
            await w.take(node)
            await told(w, node)
            assert (await survey(w.client, crawl_name, 1)).unrunnable == {"?": 1}
            fields = [entry for _, entry in await w.client.command("XRANGE", keys.inbox, "-", "+")]
            assert not any(b"o" in entry for entry in fields)

    asyncio.run(scenario())


# --- pace


async def with_one_ended(w: World) -> tuple[Node, OwnedPartition]:
    """A node that has acknowledged a URL and holds another, which has not ended."""
    node = await begun(w, URL, "http://b.example/")
    held = {one.url: one for one in await w.take(node)}
    w.end(node, held[URL])
    await node.parts.exchange.run(acknowledge=True, urls_max=0)
    await node.beat.leases.renew()
    return node, node.ownership.owned[held[URL].partition]


def test_outcomes_alone_wait_for_the_ordinary_pace(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """However hungry the node is; a step that URLs ask for takes them along."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1, step_seconds=5) as w:
            node, mine = await with_one_ended(w)
            number = mine.disk.manifest.number
            mine.schedule.record_step(w.clock.monotonic_ms())
            assert (mine.inbox.has_others, mine.inbox.has_urls) == (True, False)
            for _ in range(4):
                w.clock.advance(1_000)
                await node.beat.turn()
                await node.fold.turn()
            assert (mine.disk.manifest.number, name_of(node, URL)) == (number, "")
            w.clock.advance(1_000)
            await node.fold.turn()
            assert (mine.disk.manifest.number, name_of(node, URL)) == (number + 1, "status:200")
            assert not mine.inbox.has_others

    asyncio.run(scenario())


def test_urls_do_not_wait_for_company_of_outcomes(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Another node's batch behind outcomes is found by the look at Redis, and stepped as soon as ever."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1, step_seconds=60) as w:
            node, mine = await with_one_ended(w)
            other = await w.joined()
            for url in queued("http://c.example/"):
                other.offer(url)
            await other.outbox.flush(other.parts.crawl.client)
            await node.beat.turn()
            assert mine.inbox.has_urls
            w.clock.advance(1_000)
            await node.fold.turn()
            assert (len(mine.disk.state.tables.seen), name_of(node, URL)) == (3, "status:200")

    asyncio.run(scenario())


def test_url_that_was_miscounted_does_not_hurry_outcomes(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A batch that was set aside is appended and never folded: once nothing waits, that difference says nothing."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1, step_seconds=60) as w:
            node = await begun(w, URL)
            await w.client.run([scripts.append_batch(w.keys(node, "a.example"), "n", 1, 1, b"damaged", 3)])
            [held] = await w.take(node)
            mine = node.ownership.owned[0]
            assert mine.disk.manifest.rejected == 1
            assert not mine.inbox.has_urls
            w.end(node, held)
            await node.parts.exchange.run(acknowledge=True, urls_max=0)
            await node.beat.leases.renew()
            assert (mine.inbox.has_others, mine.inbox.has_urls) == (True, False)

    asyncio.run(scenario())


def test_crawl_is_finished_only_when_outcomes_are_folded(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """An idle node does that at once, so the end of a crawl need not wait for the pace of steps."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, step_seconds=60) as w:
            node = await begun(w, URL)
            [held] = await w.take(node)
            w.end(node, held)
            await node.parts.exchange.run(acknowledge=True, urls_max=0)
            seen = await node.progress.survey()
            assert (seen.inboxes_unfolded, seen.is_empty) == (1, False)
            w.clock.advance(20)
            await node.fold.turn()
            seen = await node.progress.survey()
            assert (seen.inboxes_unfolded, seen.is_empty) == (0, True)
            await w.turn(node, 3)
            assert node.progress.is_finished
            assert name_of(node, URL) == "status:200"

    asyncio.run(scenario())


def test_step_that_stops_before_a_word_to_forget_goes_on_with_it(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """One that forgets begins a step of its own; what is left of the inbox is stepped next."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1) as w:
            node = await begun(w, URL)
            await node.pump.flush()
            keys = w.keys(node, "a.example")
            for _ in range(2):
                await w.client.command("XADD", keys.inbox, "*", "f", pack_keys([url_key(URL)]))
            mine = node.ownership.owned[0]
            seen = []
            for _ in range(3):
                w.clock.advance(1_000)
                await node.fold.turn()
                seen.append(len(mine.disk.state.tables.seen))
            assert seen == [1, 0, 0]
            assert not (await node.progress.survey()).inboxes_unfolded

    asyncio.run(scenario())


# --- told again


def test_outcome_whose_reply_was_lost_is_told_again(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Twice in the inbox is once in the table."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await begun(w, URL)
            [held] = await w.take(node)
            w.end(node, held)
            run_each = node.parts.crawl.client.run_each
            lost: list[Any] = []

            async def lose_one(calls: Any) -> list[Any]:
                results = await run_each(calls)
                if not lost:
                    lost.append(results)
                    raise TransientStoreError("the reply was lost")
                return results

            node.parts.crawl.client.run_each = lose_one  # type: ignore[method-assign]
            with pytest.raises(TransientStoreError):
                await node.parts.exchange.run(acknowledge=True, urls_max=0)
            await told(w, node)
            assert name_of(node, URL) == "status:200"
            entries = await w.client.command("XRANGE", w.keys(node, "a.example").inbox, "-", "+")
            assert sum(b"o" in fields for _, fields in entries) == 2

    asyncio.run(scenario())


def test_outcomes_are_looked_for_once_a_second_at_most(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of every partition with every fold, some hundred times a second; a node that becomes idle looks at once."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1, step_seconds=60) as w:
            node, mine = await with_one_ended(w)
            looks: list[bool] = []
            monkeypatch.setattr(mine.schedule, "wants_outcomes", lambda *_, idle: looks.append(idle))
            for _ in range(30):
                await node.ownership.folding.step_due(starved=False, idle=False)
                w.clock.advance(100)
            assert 0 < len(looks) <= 3
            await node.ownership.folding.step_due(starved=True, idle=True)
            assert looks[-1]

    asyncio.run(scenario())


def test_outcomes_that_a_step_has_left_are_taken_up_a_second_later(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They come faster than at the ordinary pace a step may take: the inbox must not grow for ever."""
    monkeypatch.setattr(folding, "INBOX_ENTRIES_EACH", 5)

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1, step_seconds=60) as w:
            node, mine = await with_one_ended(w)
            for key in range(1, 12):
                told = pack_outcomes([(key, "status:200", 0)])
                await w.client.command("XADD", mine.keys.inbox, "*", "o", told)
            kept = []
            mine.schedule.record_step(w.clock.monotonic_ms() - 60_000)
            for _ in range(4):
                await node.fold.turn()
                kept.append(int(mine.disk.ends_of(np.arange(1, 12, dtype=np.uint64))[0].sum()))
                w.clock.advance(500)
                await node.fold.turn()
                kept.append(int(mine.disk.ends_of(np.arange(1, 12, dtype=np.uint64))[0].sum()))
                w.clock.advance(600)
            steps = [after - before for before, after in pairwise([0, *kept])]
            assert max(steps) == 5  # what a step may take
            assert kept[-1] == 11
            assert not mine.inbox.has_others

    asyncio.run(scenario())
