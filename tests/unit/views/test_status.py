"""`scrapy frontier status`: the host that a crawl waits for, and what asking costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.commands.looking.status import page_bytes, redis_bytes
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.scheduler.crawl.survey import survey
from bigcrawl.views.activity.events import events_of
from bigcrawl.views.activity.jobs import crawls_of
from bigcrawl.views.activity.recent import recent_of
from bigcrawl.views.errors import read_errors
from bigcrawl.views.history import history_of
from bigcrawl.views.opened_crawl import open_crawl
from bigcrawl.views.status import _awaited_host, _slowest_host, read_nodes, status_of
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.unit.scheduler.gates.test_speed import awaited
from tests.unit.scheduler.world import connected, queued, viewed, world

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.views.opened_crawl import OpenedCrawl

COMMANDS_MAX = 5


@awaited
async def test_awaited_host_is_the_one_that_is_due_first(redis_url: str, crawl_name: str) -> None:
    """Over all partitions; and none while a host is due, or if no URL waits for one."""
    async with connected(redis_url) as client:
        assert _awaited_host(await survey(client, crawl_name, 4), client.now_ms()) is None
        for partition, host, due_in_ms in ((1, "late.example", 90_000), (3, "soon.example", 30_000)):
            keys, due_ms = partition_keys(crawl_name, partition), client.now_ms() + due_in_ms
            await client.command("ZADD", keys.ready, due_ms, host)
            await client.command("HSET", keys.host + host, "failures", 2, "why", f"error:{host}")
        found = _awaited_host(await survey(client, crawl_name, 4), client.now_ms())
        assert found is not None
        assert (found["host"], found["failures"], found["why"]) == ("soon.example", 2, "error:soon.example")
        assert 0 < found["due_in_s"] <= 30
        await client.command("ZADD", partition_keys(crawl_name, 0).ready, client.now_ms() - 1, "now.example")
        assert _awaited_host(await survey(client, crawl_name, 4), client.now_ms()) is None


@awaited
async def test_tail_is_of_the_host_with_the_most_urls(tmp_path: Path, crawl_name: str) -> None:
    """One rest apart: its own, if that is longer than the settings'; none while no node reports a host."""
    with PrivateRedis(aof=False) as server:
        async with world(tmp_path, crawl_name, server.url, host_delay=2) as w:
            await w.joined()
            async with open_crawl(w.config, server.url) as crawl:
                reports: list[dict[str, Any]] = [{}, {"longest": None}]
                assert await _slowest_host(crawl, reports) is None
                reports += [{"longest": ["few.example", 3]}, {"longest": ["most.example", 10]}]
                tail = {"host": "most.example", "urls": 10}
                assert await _slowest_host(crawl, reports) == {**tail, "rest_s": 2.0, "least_s": 20.0}
                key = crawl.keys(crawl.place_of("http://most.example/").partition).host + "most.example"
                await crawl.client.command("HSET", key, "delay", 30_000)
                assert await _slowest_host(crawl, reports) == {**tail, "rest_s": 30.0, "least_s": 300.0}


@awaited
async def test_status_asked_every_second_sends_five_commands_at_most(tmp_path: Path, crawl_name: str) -> None:
    """With the default number of partitions, the question for the time included; and says the same each time."""
    with PrivateRedis(aof=False) as server:
        async with world(tmp_path, crawl_name, server.url, partitions=256) as w:
            node = await w.joined()
            for url in queued(*(f"http://h{number}.example/" for number in range(9))):
                node.offer(url)
            await w.turn(node)
            async with open_crawl(w.config, server.url) as crawl:
                first = await status_of(crawl)
                crawl.client._crawl_clock._ask_ms = 0  # a second is over
                sent = count_sent(crawl.client)
                again = await status_of(crawl)
                assert 0 < len(sent) <= COMMANDS_MAX
            changing = {"awaited_host", "standstill"}
            assert {k: v for k, v in first.items() if k not in changing} == {
                k: v for k, v in again.items() if k not in changing
            }
            assert again == await viewed(w.config, status_of) | {name: again[name] for name in changing}
            assert again["urls"]["seen"] == 9


@awaited
async def test_each_view_that_a_dashboard_asks_for_again_sends_five_commands_at_most(
    tmp_path: Path, crawl_name: str
) -> None:
    """On a crawl that is kept open. A list of hosts reads each partition: the dashboard asks for it seldom."""
    views = (history_of, read_nodes, read_errors, recent_of, events_of, crawls_of)
    with PrivateRedis(aof=False) as server:
        async with world(tmp_path, crawl_name, server.url, partitions=256) as w:
            await w.joined()
            async with open_crawl(w.config, server.url) as crawl:
                await status_of(crawl)
                sent = {view.__name__: await commands_of(crawl, view) for view in views}
    assert {name for name, count in sent.items() if not 0 < count <= COMMANDS_MAX} == set(), sent


async def commands_of(crawl: OpenedCrawl, view: Callable[[OpenedCrawl], Awaitable[object]]) -> int:
    sent = count_sent(crawl.client)
    await view(crawl)
    return len(sent)


def count_sent(client: RedisClient) -> list[Any]:
    """Every command that the client sends from now on."""
    sent: list[Any] = []
    talk = client._servers.connections.send_commands

    async def counted(rows: Any) -> Any:
        sent.extend(rows)
        return await talk(rows)

    client._servers.connections.send_commands = counted  # type: ignore[method-assign]
    return sent


@awaited
async def test_sizes_are_asked_where_they_are(tmp_path: Path, crawl_name: str) -> None:
    """WARC files that are written count as pages; folders do not count; a directory that is not here is unknown."""
    pages = tmp_path / "warc"
    (pages / ".compacting").mkdir(parents=True)
    for name, size in (("a-0.warc.gz", 3), ("a-1.warc.gz.open", 4), ("a-0.cdxj", 10), ("a-0.parquet", 20)):
        (pages / name).write_bytes(bytes(size))
    assert page_bytes(pages) == {"pages": 7, "indexes": 30}
    assert page_bytes(tmp_path / "elsewhere") == page_bytes(None) == {"pages": None, "indexes": None}
    with PrivateRedis(aof=False) as server:
        async with world(tmp_path, crawl_name, server.url) as w:
            await w.joined()
            async with open_crawl(w.config, server.url) as crawl:
                assert await redis_bytes(crawl) > 100_000
