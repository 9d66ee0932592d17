"""`scrapy frontier delete`: a crawl that nobody works on goes, with all that Redis knows of it, and nothing else."""

from __future__ import annotations

import argparse
import asyncio
import io
from typing import TYPE_CHECKING

import redis
from scrapy.settings import Settings

from bigcrawl.commands.frontier import Command
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys
from tests.unit.scheduler.world import connected, queued, world

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


async def begun(tmp_path: Path, name: str, redis_url: str) -> None:
    """A crawl with URLs that wait, whose node has left."""
    async with world(tmp_path, name, redis_url) as w:
        node = await w.joined()
        for url in queued(*(f"http://h{i}.example/" for i in range(5))):
            node.offer(url)
        await w.turn(node)
        await node.departure.close()


def keys_of(url: str, name: str) -> set[bytes]:
    """A crawl's keys in Redis."""
    beginnings = (f"bigcrawl:{{{name}}}:".encode(), f"bigcrawl:{{{name}:p".encode())
    with redis.Redis.from_url(url) as client:
        return {key for key in client.keys("*") if key.startswith(beginnings)}


def run(tmp_path: Path, name: str, url: str, *, yes: bool = True) -> int:
    """The exit status of `scrapy frontier delete NAME`, in the project of another crawl."""
    command = Command()
    settings = {"BIGCRAWL_STATE_DIR": str(tmp_path), "BIGCRAWL_CRAWL": "another", "BIGCRAWL_REDIS_URL": url}
    command.settings = Settings(settings)
    command.run(["delete", name], argparse.Namespace(json=False, yes=yes))
    return command.exitcode


def test_crawl_is_gone_and_no_other(
    tmp_path: Path, crawl_name: str, redis_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its directory and its keys; a crawl whose name begins alike keeps its own, and so do gates above the crawls."""
    other = f"{crawl_name}-2"
    for name in (crawl_name, other):
        asyncio.run(begun(tmp_path, name, redis_url))
    others = keys_of(redis_url, other)
    assert keys_of(redis_url, crawl_name)
    with redis.Redis.from_url(redis_url) as client:
        client.set("bigcrawl:{gate1}:server:192.0.2.1", "a gate", px=60_000)
        assert run(tmp_path, crawl_name, redis_url) == 0
        assert client.get("bigcrawl:{gate1}:server:192.0.2.1") == b"a gate"
    assert "WARC files and feeds stay" in capsys.readouterr().out
    assert keys_of(redis_url, crawl_name) == set()
    assert keys_of(redis_url, other) == others
    assert [path.name for path in tmp_path.iterdir()] == [other]
    asyncio.run(begun(tmp_path, crawl_name, redis_url))  # and may be begun again


def test_crawl_with_a_node_alive_stays(
    tmp_path: Path, crawl_name: str, redis_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A node here, by its lock, whatever Redis knows of it; one elsewhere, by its last beat."""

    async def while_it_lives() -> int:
        async with world(tmp_path, crawl_name, redis_url) as w:
            await w.joined()
            with redis.Redis.from_url(redis_url) as client:
                client.delete(CrawlKeys(crawl_name).beats, CrawlKeys(crawl_name).nodes)
            return await asyncio.to_thread(run, tmp_path, crawl_name, redis_url)

    assert asyncio.run(while_it_lives()) == 1
    assert "is running" in capsys.readouterr().err
    assert keys_of(redis_url, crawl_name)

    async def elsewhere() -> None:
        async with connected(redis_url) as client:
            report = '{"token": "another boot:far"}'
            await client.run([scripts.beat_node(CrawlKeys(crawl_name), "far", report, 60_000)])

    asyncio.run(elsewhere())
    assert run(tmp_path, crawl_name, redis_url) == 1
    assert "or wait for 30 s if they are dead: far" in capsys.readouterr().err
    assert (tmp_path / crawl_name / "crawl.json").exists()


def test_crawl_is_deleted_by_who_says_yes(
    tmp_path: Path,
    crawl_name: str,
    redis_url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without `--yes` it asks; no answer, or another, deletes nothing."""
    asyncio.run(begun(tmp_path, crawl_name, redis_url))
    before = keys_of(redis_url, crawl_name)
    for answer in ("", "\n", "no\n"):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        assert run(tmp_path, crawl_name, redis_url, yes=False) == 1
        said = capsys.readouterr().err
        assert f"delete crawl {crawl_name}: {tmp_path / crawl_name} and its keys in the Redis?" in said
        assert "was not deleted: answer y, or give --yes" in said
    assert keys_of(redis_url, crawl_name) == before
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert run(tmp_path, crawl_name, redis_url, yes=False) == 0
    assert keys_of(redis_url, crawl_name) == set()


def test_directory_of_another_crawl_of_that_name_stays(
    tmp_path: Path, crawl_name: str, redis_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Directory and Redis are each other's, or neither is touched; a crawl that is not there is told."""
    asyncio.run(begun(tmp_path / "one", crawl_name, redis_url))
    (tmp_path / "two" / crawl_name).mkdir(parents=True)
    (tmp_path / "two" / crawl_name / "crawl.json").write_text('{"id": "of another"}')
    assert run(tmp_path / "two", crawl_name, redis_url) == 1
    assert "belongs to another crawl" in capsys.readouterr().err
    assert keys_of(redis_url, crawl_name)
    assert run(tmp_path, f"{crawl_name}-never", redis_url) == 1
    assert "does not exist: there is no crawl" in capsys.readouterr().err
