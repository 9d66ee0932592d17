"""Partitions that begin, or whose inboxes are trimmed, while a command reads them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest
import redis

from bigcrawl.commands.moving.page_lists import _write_copies
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.partition import reader
from bigcrawl.views import partition as module
from bigcrawl.views.budget import read_budget
from bigcrawl.views.explain import explain_url
from bigcrawl.views.opened_crawl import open_crawl
from bigcrawl.views.partition import read_partition
from tests.unit.scheduler.world import make_config, queued, viewed, world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from pathlib import Path

    from bigcrawl.commands.moving.export_file import LineWriter
    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.views.opened_crawl import OpenedCrawl
    from tests.unit.scheduler.world import World

URLS = [f"http://a.example/{number}" for number in range(20)]


class Running:
    """A node with a crawl, and a command that looks at it."""

    def __init__(self, w: World, node: Node, crawl: OpenedCrawl) -> None:
        self.w, self.node, self.crawl = w, node, crawl
        self.partition = node.crawl.partition_of_host("a.example")

    async def find(self, *urls: str) -> None:
        """The partition folds URLs; all but one of the host's wait on its disk."""
        for url in queued(*urls):
            self.node.offer(url)
        await self.w.turn(self.node, 2)

    async def trim(self) -> None:
        """The partition is durable, and Redis drops what it had for it."""
        owned = self.node.ownership.owned[self.partition]
        owned.disk.committed.make_durable()
        upto = owned.disk.committed.durable_inbox_id
        await self.w.client.run([scripts.trim_partition(owned.keys, owned.identity, upto, 0, {})])

    def after_files(self, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do something once the files were looked for the first time."""
        look, loop = module._open_contents, asyncio.get_running_loop()
        has_looked = False

        def contents(*args: Any) -> Any:
            nonlocal has_looked
            found = look(*args)
            if not has_looked:
                has_looked = True
                asyncio.run_coroutine_threadsafe(meanwhile(), loop).result(120)
            return found

        monkeypatch.setattr(module, "_open_contents", contents)

    async def exported(self, place: Path) -> list[str]:
        contents, found = await read_partition(self.crawl, self.partition, place)
        urls = [*found.hot, *found.arrived, *(contents.waiting_urls() if contents is not None else ())]
        return sorted({url.body.decode("latin-1").rpartition("http")[2].partition("\n")[0] for url in urls})


@asynccontextmanager
async def running(tmp_path: Path, name: str, redis_url: str) -> AsyncIterator[Running]:
    async with world(tmp_path / "state", name, redis_url, host_hot_urls=1) as w:
        node = await w.joined()
        async with open_crawl(w.config, redis_url) as crawl:
            yield Running(w, node, crawl)


@pytest.mark.parametrize("begins", [False, True])
def test_no_url_is_missing_from_an_export(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, begins: bool
) -> None:
    """The owner folds URLs, and Redis drops them, after the files were linked and before the inbox is read."""

    async def scenario() -> None:
        async with running(tmp_path, crawl_name, redis_url) as r:
            if not begins:
                await r.find(*URLS[:3])

            async def go_on() -> None:
                await r.find(*URLS[3:])
                await r.trim()

            r.after_files(monkeypatch, go_on)
            found = await r.exported(tmp_path / "state" / "place")
            assert len(found) == len(URLS[3 * begins :]), found

    asyncio.run(scenario())


def test_partition_that_begins_is_not_taken_for_a_lost_one(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files come, and Redis hears of them, after they were looked for."""

    async def scenario() -> None:
        async with running(tmp_path, crawl_name, redis_url) as r:
            r.after_files(monkeypatch, lambda: r.find(*URLS))
            assert len(await r.exported(tmp_path / "state" / "place")) == len(URLS)

    asyncio.run(scenario())


@pytest.mark.parametrize("ask", ["explain", "budget"])
def test_partition_that_begins_while_a_url_is_looked_up_is_read(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, ask: str
) -> None:
    """Nothing is said to be on another machine."""

    async def scenario() -> None:
        async with running(tmp_path, crawl_name, redis_url) as r:
            look, state, has_looked = reader._read_newest, r.crawl.keys(r.partition).state, False

            def step_behind(*args: Any) -> Any:
                nonlocal has_looked
                found = look(*args)
                if not has_looked:
                    has_looked = True
                    client.hset(state, mapping={"manifest": 2, "committed": 1})
                return found

            monkeypatch.setattr(reader, "_read_newest", step_behind)
            with redis.Redis.from_url(redis_url) as client:
                if ask == "explain":
                    assert (await explain_url(r.crawl, URLS[0]))["where"] == "nowhere"
                else:
                    assert (await read_budget(r.crawl, "a.example"))["in_degree"] == 0

    asyncio.run(scenario())


def test_step_that_admitted_nothing_is_known_on_other_machines(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Its files hold what no other place does, so no command takes the partition for an empty one."""

    async def scenario() -> None:
        async with running(tmp_path, crawl_name, redis_url) as r:
            writer = cast("LineWriter", None)  # there is no line to write
            elsewhere = make_config(tmp_path / "ours", crawl_name, redis_url)
            found = await viewed(elsewhere, _write_copies, writer)
            assert found["elsewhere"] == 0, "no partition has begun"
            await r.w.client.command("HSET", r.crawl.keys(r.partition).state, "manifest", "2")
            assert (await viewed(elsewhere, _write_copies, writer))["elsewhere"] == 1
            async with open_crawl(elsewhere, redis_url) as crawl:
                with pytest.raises(ConfigError, match="are not in"):
                    await read_partition(crawl, r.partition, tmp_path / "place")

    asyncio.run(scenario())
