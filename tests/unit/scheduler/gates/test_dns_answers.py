"""Answers of DNS between nodes, in a real Redis: in few round trips, in a bounded number of keys."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.exceptions import TransientStoreError
from bigcrawl.politeness.dns_cache import DnsAnswer, DnsCache, DnsError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.gates import dns_answers as shared_answers
from bigcrawl.scheduler.gates.dns_answers import SharedDnsAnswers
from tests.support.redis_servers.one_clock import ask_no_more
from tests.unit.scheduler.world import connected, resolve, world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from bigcrawl.redisdb.client import RedisClient

BOTH = DnsAnswer(("192.0.2.1", "2001:db8::1"), 60_000)


@asynccontextmanager
async def store(redis_url: str, crawl: str, cells: int = 1_000) -> AsyncIterator[tuple[SharedDnsAnswers, RedisClient]]:
    async with connected(redis_url) as client:
        made = SharedDnsAnswers(client, CrawlKeys(crawl), cells)
        try:
            yield made, client
        finally:
            await made.close()


async def told(answers: SharedDnsAnswers) -> None:
    """Wait until Redis knows what it was told."""
    while answers._talk is not None and not answers._talk.done():
        await answers._talk


def test_what_one_node_was_told_another_one_knows(redis_url: str, crawl_name: str) -> None:
    """Addresses in their order, and denials, with what is left of their time; of other hosts nothing is known."""

    async def scenario() -> None:
        async with store(redis_url, crawl_name) as (one, _), store(redis_url, crawl_name) as (other, _):
            one.put("a.example", BOTH)
            one.put("gone.example", DnsAnswer((), 5_000))
            one.put("at-once.example", DnsAnswer(("192.0.2.1",), 0))
            await told(one)
            found = await other.get("a.example")
            assert found is not None
            assert found.addresses == BOTH.addresses
            assert 50_000 < (found.ttl_ms or 0) <= 60_000
            denied = await other.get("gone.example")
            assert denied is not None
            assert denied.addresses == ()
            assert await other.get("at-once.example") is None
            assert await other.get("b.example") is None
            assert other.found == 2

    asyncio.run(scenario())


def test_a_turns_questions_are_one_round_trip(redis_url: str, crawl_name: str) -> None:
    """Whatever is asked and told in a turn goes together, and two who ask for one host ask once."""

    async def scenario() -> None:
        async with store(redis_url, crawl_name) as (answers, client):
            await client.ping()
            ask_no_more(client)
            before = client.round_trips
            for number in range(50):
                answers.put(f"{number}.example", BOTH)
            await asyncio.gather(*(answers.get(f"{number % 60}.example") for number in range(100)))
            assert client.round_trips - before == 1

    asyncio.run(scenario())


def test_number_of_answers_is_bounded(redis_url: str, crawl_name: str) -> None:
    """A host takes another one's place, and no host gets another one's answer."""

    async def scenario() -> None:
        async with store(redis_url, crawl_name, cells=4) as (answers, client):
            for number in range(40):
                answers.put(f"{number}.example", DnsAnswer((f"192.0.2.{number}",), 60_000))
            await told(answers)
            assert len(await client.command("KEYS", f"bigcrawl:{{{crawl_name}}}:answer:*")) == 4
            found = {number: await answers.get(f"{number}.example") for number in range(40)}
            assert sum(answer is not None for answer in found.values()) == 4
            for number, answer in found.items():
                assert answer is None or answer.addresses == (f"192.0.2.{number}",)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "packed",
    [b"", b"2\na.example\n192.0.2.1", b"1\nb.example\n192.0.2.1", b"1\na.example\nhttp://", b"\xff", b"1"],
)
def test_what_cannot_be_read_is_nothing(redis_url: str, crawl_name: str, packed: bytes) -> None:
    """Another format, another host, damage: the name server is asked."""

    async def scenario() -> None:
        async with store(redis_url, crawl_name, cells=1) as (answers, client):
            await client.command("SET", CrawlKeys(crawl_name).answer(0), packed, "PX", 60_000)
            assert await answers.get("a.example") is None

    asyncio.run(scenario())


def test_answer_without_an_end_is_nothing(redis_url: str, crawl_name: str) -> None:
    """What would be believed for ever was not written by us."""

    async def scenario() -> None:
        async with store(redis_url, crawl_name, cells=1) as (answers, client):
            await client.command("SET", CrawlKeys(crawl_name).answer(0), b"1\na.example\n192.0.2.1")
            assert await answers.get("a.example") is None

    asyncio.run(scenario())


def test_names_are_resolved_without_redis_too(redis_url: str, crawl_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Redis that is away, or hangs, keeps nobody from asking a name server."""
    monkeypatch.setattr(shared_answers, "PATIENCE_S", 0.05)

    async def scenario() -> None:
        async with store(redis_url, crawl_name) as (answers, client):
            cache = DnsCache(resolve, ManualClock())
            cache.use_store(answers)

            async def away(rows: object) -> Any:
                raise TransientStoreError("gone")

            async def silent(rows: object) -> Any:
                await asyncio.sleep(60)

            for number, commands in enumerate((away, silent)):
                client.commands = commands  # type: ignore[method-assign]
                assert await cache.lookup(f"{number}.example") == ["192.0.2.1"]

    asyncio.run(scenario())


def test_answers_that_wait_are_bounded(redis_url: str, crawl_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While Redis hangs, no more answers are kept for it than that."""
    monkeypatch.setattr(shared_answers, "UNSENT_MAX", 3)

    async def scenario() -> None:
        async with store(redis_url, crawl_name) as (answers, _):
            for number in range(10):
                answers.put(f"{number}.example", BOTH)
            assert "unsent=3" in repr(answers)

    asyncio.run(scenario())


def test_nodes_of_a_crawl_share(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """What one node's cache was told needs no name server on the next one; a node that left shares nothing."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            asked: list[str] = []

            async def counted(host: str) -> list[str]:
                asked.append(host)
                return await resolve(host)

            first, second = await w.joined(), await w.joined()
            for node in (first, second):
                node.parts.gates.dns._resolve = counted
            await first.parts.gates.dns.lookup("a.example")
            with pytest.raises(DnsError):
                await first.parts.gates.dns.lookup("x.no.example")
            await told(first.parts.gates.answers)
            assert await second.parts.gates.dns.lookup("a.example") == ["192.0.2.1"]
            with pytest.raises(DnsError, match="not-found"):
                await second.parts.gates.dns.lookup("x.no.example")
            assert asked == ["a.example", "x.no.example"]
            await first.departure.close()
            assert first.parts.gates.dns.store is None

    asyncio.run(scenario())


def test_sharing_can_be_off(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """BIGCRAWL_DNS_SHARED = 0."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, dns_shared=0) as w:
            node = await w.joined()
            assert node.parts.gates.dns.store is None

    asyncio.run(scenario())
