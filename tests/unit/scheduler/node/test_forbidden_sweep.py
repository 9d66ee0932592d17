"""Forbidden URLs leave in bulk: few takes, no fetches, each counted and told, and nothing else goes with them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np

from bigcrawl.links import Links
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.revisiting.visit import Visit
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.gates.interfaces import FetchedBody
from bigcrawl.scheduler.node.set_aside import REST_MS, TURN_MS
from bigcrawl.scheduler.records.body import with_known
from bigcrawl.scheduler.records.outcomes import read_outcome
from tests.support.keys import url_key
from tests.unit.scheduler.node.test_node import seed
from tests.unit.scheduler.world import World, queued, world

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from bigcrawl.scheduler.node.node import Node

HOST = "a.example"
FILE = f"http://{HOST}/robots.txt"
CLOSED = FetchedBody(200, b"User-agent: *\nDisallow: /no\n")


async def counters(w: World, node: Node) -> dict[str, int]:
    fields = await w.client.command("HGETALL", w.keys(node, HOST).state)
    return {name.decode(): int(value) for name, value in pairs_of(fields) if value.isdigit()}


async def run_out(w: World, node: Node, turns: int) -> tuple[list[str], int]:
    """Turn the node's loops, ending what is handed out at once; URLs fetched, and takes that brought any."""
    fetched: list[str] = []
    takes = 0
    offer: Any = node.parts.gates.gatekeeper.offer

    def counted(held: Any) -> None:
        nonlocal takes
        takes += 1
        offer(held)

    node.handout.lanes.open_lanes(offer=counted, wake=node.pump.wake, hosts=lambda: 1, is_alone=lambda: True)
    for _ in range(turns):
        for held in await w.take(node, 1):
            fetched.append(held.url)
            w.end(node, held)
        if sweeps := node.parts.gates.gatekeeper._tasks:  # Redis answers them by its own clock
            await asyncio.wait(sweeps, timeout=30)
    return fetched, takes


def test_many_forbidden_urls_drain_in_a_few_takes(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A thousand forbidden URLs of one host are gone after some forty takes; the open ones are fetched."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, robots="obey", host_delay=0, step_seconds=0.5) as w:
            w.web.answers[FILE] = CLOSED
            node = await w.joined()
            closed = [f"http://{HOST}/no/{number}" for number in range(1_000)]
            open_ = [f"http://{HOST}/ok/{number}" for number in range(3)]
            await seed(w, node, *closed, *open_)
            fetched, takes = await run_out(w, node, 60)
            assert sorted(fetched) == open_
            assert takes <= 40
            found = await counters(w, node)
            assert found["dropped:forbidden"] == len(closed)
            assert found["ended"] == len(closed) + len(open_)
            assert found["hot"] == 0
            assert node.parts.gates.sweeper.dropped >= len(closed) - takes
            assert w.web.asked == [FILE]
            await w.turn(node, 8)
            assert node.progress.is_finished

    asyncio.run(scenario())


def test_outcomes_of_a_sweep_are_waited_for(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in the inbox, and a step takes them up; where nothing was dropped there is nothing to take."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, partitions=1, robots="obey", host_delay=60) as w:
            w.web.answers[FILE] = CLOSED
            node = await w.joined()
            monkeypatch.setattr(node.parts.gates.sweeper, "is_due", lambda host: False)
            await seed(w, node, *(f"http://{HOST}/{where}/{number}" for where in ("ok", "no") for number in range(9)))
            await run_out(w, node, 2)
            mine = node.ownership.owned[0]
            for drops in (True, False):
                mine.inbox.has_others = False
                _, dropped = await node.parts.gates.sweeper._sweep(0, HOST, "forbidden")
                assert (dropped > 0, mine.inbox.has_others) == (drops, drops)

            async def gone(*_: object) -> list[tuple[bytes, bytes]]:
                return [(b"99:taken meanwhile", b"outcome")]

            monkeypatch.setattr(node.parts.gates.sweeper, "_ended", gone)
            assert await node.parts.gates.sweeper._sweep(0, HOST, "forbidden") == (9, 0)
            assert not mine.inbox.has_others

    asyncio.run(scenario())


def test_sweep_gives_others_their_turn(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules may be slow to match: the loop is not held for longer than ten milliseconds and one URL."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = w.new_node()
            turns = 0

            def slow(member: bytes, reason: str) -> bytes:
                w.clock.advance(TURN_MS // 2)
                return b""

            async def wait_for_the_loop() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            monkeypatch.setattr(node.parts.gates.sweeper, "_outcome", slow)
            other = asyncio.create_task(wait_for_the_loop())
            await node.parts.gates.sweeper._ended([b"1:member"] * 20, "forbidden")
            other.cancel()
            assert turns == 10

    asyncio.run(scenario())


def test_urls_that_new_rules_forbid_are_dropped_from_the_queue(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Rules that came a day later close what was queued under the old ones."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, robots="obey", host_delay=0) as w:
            w.web.answers[FILE] = FetchedBody(200, b"User-agent: *\nAllow: /\n")
            node = await w.joined()
            await seed(w, node, *(f"http://{HOST}/no/{number}" for number in range(100)))
            fetched, _ = await run_out(w, node, 8)
            assert fetched
            w.web.answers[FILE] = CLOSED
            w.clock.advance(24 * 3_600_000)
            later, _ = await run_out(w, node, 12)
            assert later == []
            assert (await counters(w, node))["dropped:forbidden"] == 100 - len(fetched)

    asyncio.run(scenario())


def test_what_has_an_errback_is_left_to_the_engine(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A forbidden URL whose errback is to be told is not ended behind its back."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, robots="obey", host_delay=0) as w:
            w.web.answers[FILE] = CLOSED
            node = await w.joined()

            encode = links_encoder(Links((), errback="told"), 0)
            urls = [f"http://{HOST}/no/{number}" for number in range(5)]
            for url in urls:
                node.offer(encode(url_key(url), url))
            await node.pump.flush()
            fetched, _ = await run_out(w, node, 20)
            assert sorted(fetched) == urls  # to be refused there, see `refusal`
            assert node.parts.gates.sweeper.dropped == 0

    asyncio.run(scenario())


def test_pages_that_were_visited_before_keep_their_visits(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Each ends as it is taken, with its next visit; the others of the host are swept."""
    known = Visit(1, 100, 100, 100, 200, False, b"digest", b"", b"").pack()

    async def scenario() -> None:
        settings: dict[str, Any] = {"robots": "obey", "host_delay": 0, "revisit": "periodic"}
        async with world(tmp_path, crawl_name, redis_url, partitions=1, **settings) as w:
            w.web.answers[FILE] = CLOSED
            node = await w.joined()
            new, visited = (queued(*(f"http://{HOST}/no/{kind}{n}" for n in range(9))) for kind in ("new", "visited"))
            for url in [*new, *(url._replace(body=with_known(url.body, known)) for url in visited)]:
                node.offer(url)
            await w.turn(node, 2)
            fetched, _ = await run_out(w, node, 40)
            assert (fetched, node.parts.gates.sweeper.dropped > 0) == ([], True)
            assert (await counters(w, node))["dropped:forbidden"] == len(new) + len(visited)
            assert node.ownership.owned[0].schedule.timed == len(visited)

    asyncio.run(scenario())


def test_host_with_few_forbidden_urls_is_not_swept_for_each(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A sweep that found little lets its host rest for a while."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, robots="obey", host_delay=0) as w:
            w.web.answers[FILE] = CLOSED
            node = await w.joined()
            ok = [f"http://{HOST}/ok/{number}" for number in range(20)]
            await seed(w, node, f"http://{HOST}/no/1", *ok, f"http://{HOST}/no/2")
            await run_out(w, node, 6)
            assert node.parts.gates.sweeper.dropped == 1
            await node.parts.gates.sweeper.sweep(node.crawl.partition_of_host(HOST), HOST)
            assert not node.parts.gates.sweeper.is_due(HOST)
            w.clock.advance(REST_MS)
            assert node.parts.gates.sweeper.is_due(HOST)
            assert "dropped=" in repr(node.parts.gates.sweeper)

    asyncio.run(scenario())


def test_sweep_of_a_partition_that_was_lost_does_nothing(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Neither a partition that is another's now nor one that never was ours is touched."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, robots="obey", host_delay=0) as w:
            w.web.answers[FILE] = CLOSED
            node = await w.joined()
            await seed(w, node, *(f"http://{HOST}/no/{number}" for number in range(10)))
            await run_out(w, node, 1)
            partition = node.crawl.partition_of_host(HOST)
            node.ownership.table.remove_lost(node.ownership.owned[partition])
            await node.parts.gates.sweeper.sweep(partition, HOST)
            await node.parts.gates.sweeper.sweep(10_000, HOST)
            assert node.parts.gates.sweeper.dropped == 0

    asyncio.run(scenario())


def test_urls_of_a_host_that_does_not_exist_end_in_a_few_takes(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Two thousand of them, each counted and told; what another host has waits for none of it."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, host_delay=0, step_seconds=0.5) as w:
            node = await w.joined()
            gone = [f"http://no.example/{number}" for number in range(1_981)]
            await seed(w, node, *gone, "http://a.example/")
            fetched, takes = await run_out(w, node, 40)
            seen = await node.progress.survey()
            while seen.counts["ended"] <= len(gone):  # the slower the machine, the more turns go by during a sweep
                more, further = await run_out(w, node, 10)
                fetched, takes = fetched + more, takes + further
                seen = await node.progress.survey()
            assert fetched == ["http://a.example/"]
            assert takes <= len(gone) / 8
            assert seen.counts["dropped:unresolved"] == len(gone)
            assert (seen.counts["ended"], seen.urls_queued, seen.urls_disk) == (len(gone) + 1, 0, 0)
            await w.turn(node, 8)
            assert node.progress.is_finished
            keys = np.array([url_key(url) for url in gone], dtype=np.uint64)
            has_ended, ends = node.ownership.owned[node.crawl.partition_of_host("no.example")].disk.ends_of(keys)
            assert has_ended.all()
            assert {read_outcome(end).name for end in ends} == {"dropped:unresolved"}

    asyncio.run(scenario())


def test_urls_of_an_authority_that_is_out_of_reach_end_together_and_no_others(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Its host answers on another port, whose URLs are fetched."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, robots="obey", host_delay=0, step_seconds=0.5) as w:
            w.web.answers[f"http://{HOST}:81/robots.txt"] = FetchedBody(None)
            node = await w.joined()
            dead = [f"http://{HOST}:81/{number}" for number in range(300)]
            fine = [f"http://{HOST}/{number}" for number in range(5)]
            await seed(w, node, *fine, *dead)
            fetched, takes = await run_out(w, node, 40)
            assert sorted(fetched) == fine
            assert takes <= 60
            assert (await counters(w, node))["dropped:unreachable"] == len(dead)

    asyncio.run(scenario())
