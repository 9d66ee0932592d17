"""The crawl record: what may not change in a crawl's life, and what belongs together."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.exceptions import ConfigError, CorruptionError
from bigcrawl.redisdb.keys import CrawlKeys, PartitionKeys
from bigcrawl.scheduler.crawl import crawl_record
from bigcrawl.scheduler.crawl.alike import record_spider
from bigcrawl.scheduler.crawl.crawl_record import RECORD_FILE, CrawlRecord, keys_in, new_secret, open_record
from bigcrawl.scheduler.crawl.deletion import delete_crawl
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.outcomes import pack_outcome
from bigcrawl.scheduler.records.queued_url import QueuedUrl, encode_batch
from bigcrawl.url.key import HASH_SEED, PUBLIC_KEYS
from bigcrawl.views.opened_crawl import OpenedCrawl
from tests.unit.scheduler.world import connected, make_config

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.redisdb.client import RedisClient

URL = "http://www.example.com/a"


@pytest.fixture(autouse=True)
def _drawn_secret(_known_secret: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Crawls draw their secrets here, as crawls do; in other tests they have a known one."""
    monkeypatch.setattr(crawl_record, "new_secret", new_secret)


async def opened(tmp_path: Path, name: str, redis_url: str, **settings: Any) -> CrawlRecord:
    async with connected(redis_url) as client:
        return await open_record(client, make_config(tmp_path, name, **settings).crawl)


def test_record_is_the_same_for_every_node_and_every_start(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The first node writes it; nodes that start at once and later agree on the id and on the suffix list."""

    async def scenario() -> None:
        first, second = await asyncio.gather(*(opened(tmp_path, crawl_name, redis_url) for _ in range(2)))
        later = await opened(tmp_path, crawl_name, redis_url)
        assert first.crawl_id == second.crawl_id == later.crawl_id
        assert later.suffixes.pld("www.a.co.uk") == "a.co.uk"
        assert json.loads((tmp_path / crawl_name / RECORD_FILE).read_text())["id"] == first.crawl_id

    asyncio.run(scenario())


@pytest.mark.parametrize("look", [1, 2])
@pytest.mark.parametrize("is_before", [True, False])
def test_node_that_starts_while_another_begins_the_crawl_joins_it(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, look: int, is_before: bool
) -> None:
    """Just before or after one of its looks at Redis the other writes the record, and commits."""
    looks = 0

    async def begin_and_commit() -> None:
        await opened(tmp_path, crawl_name, redis_url)
        async with connected(redis_url) as client:
            await client.command("HSET", PartitionKeys(crawl_name, 3).state, "committed", "1")

    async def look_meanwhile(client: RedisClient, key: str) -> dict[str, bytes]:
        nonlocal looks
        looks += 1
        if looks != look:
            return await read_redis(client, key)
        if is_before:
            await begin_and_commit()
        found = await read_redis(client, key)
        if not is_before:
            await begin_and_commit()
        return found

    read_redis = crawl_record._read_redis
    monkeypatch.setattr(crawl_record, "_read_redis", look_meanwhile)
    second = asyncio.run(opened(tmp_path, crawl_name, redis_url))
    assert looks >= look
    assert json.loads((tmp_path / crawl_name / RECORD_FILE).read_text())["id"] == second.crawl_id


def test_file_that_a_shared_directory_shows_late_is_waited_for(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Committed in Redis, and not yet to be seen here: that is another machine's file on its way."""

    async def scenario() -> None:
        first = await opened(tmp_path, crawl_name, redis_url)
        async with connected(redis_url) as client:
            await client.command("HSET", PartitionKeys(crawl_name, 3).state, "committed", "1")
        shown, hidden = tmp_path / crawl_name / RECORD_FILE, tmp_path / "hidden"
        shown.rename(hidden)
        asyncio.get_running_loop().call_later(0.1, hidden.rename, shown)
        second = await opened(tmp_path, crawl_name, redis_url)
        assert second.crawl_id == first.crawl_id

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"partitions": 8}, "BIGCRAWL_PARTITIONS is 8"),
        ({"private_suffixes": True}, "BIGCRAWL_PRIVATE_SUFFIXES"),
    ],
)
def test_node_that_differs_does_not_start_and_says_in_what(
    tmp_path: Path, crawl_name: str, redis_url: str, change: dict[str, Any], named: str
) -> None:
    """What decides a URL's place is fixed for the crawl's life."""

    async def scenario() -> None:
        await opened(tmp_path, crawl_name, redis_url)
        with pytest.raises(ConfigError, match=named):
            await opened(tmp_path, crawl_name, redis_url, **change)

    asyncio.run(scenario())


def test_another_spider_is_refused_by_its_name_before_any_setting(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Until the crawl is finished; its own spider is told of the setting."""

    async def opened_by(spider: str) -> CrawlRecord:
        async with connected(redis_url) as client:
            config = make_config(tmp_path, crawl_name, partitions=2).crawl
            return await open_record(client, config.replace(spider=spider))

    async def scenario() -> None:
        await opened(tmp_path, crawl_name, redis_url)
        async with connected(redis_url) as client:
            await record_spider(client, make_config(tmp_path, crawl_name).crawl.replace(spider="one"))
            with pytest.raises(ConfigError, match=r"belongs to spider 'one'.*give this spider its own BIGCRAWL_CRAWL"):
                await opened_by("two")
            with pytest.raises(ConfigError, match="BIGCRAWL_PARTITIONS"):
                await opened_by("one")
            await client.command("HSET", CrawlKeys(crawl_name).crawl, "finished", "1")
            with pytest.raises(ConfigError, match="BIGCRAWL_PARTITIONS"):
                await opened_by("two")

    asyncio.run(scenario())


def test_other_version_of_a_format_does_not_start(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A crawl begun by another version of canonical form, hash or batch is refused, not continued wrongly."""

    async def scenario() -> None:
        await opened(tmp_path, crawl_name, redis_url)
        async with connected(redis_url) as client:
            await client.command("HSET", CrawlKeys(crawl_name).crawl, "canonical_version", "0")
        with pytest.raises(ConfigError, match="canonical_version"):
            await opened(tmp_path, crawl_name, redis_url)

    asyncio.run(scenario())


def test_every_node_of_a_crawl_makes_the_keys_of_its_secret(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The first node draws it; nodes that start at once and later have that one, and the directory too."""

    async def scenario() -> None:
        nodes = await asyncio.gather(*(opened(tmp_path, crawl_name, redis_url) for _ in range(3)))
        keys = {node.keys.of_url(URL) for node in (*nodes, await opened(tmp_path, crawl_name, redis_url))}
        other = await opened(tmp_path, f"{crawl_name}-other", redis_url)
        assert keys == {keys_in(tmp_path / crawl_name).of_url(URL)}
        assert keys.isdisjoint({other.keys.of_url(URL), PUBLIC_KEYS.of_url(URL)})

    asyncio.run(scenario())


def test_crawl_begun_without_a_secret_goes_on_with_its_keys(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Its record names the seed of MurmurHash3; what is on disk was made with that."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            await client.command("HSETNX", CrawlKeys(crawl_name).crawl, "hash_seed", HASH_SEED)
            first = await opened(tmp_path, crawl_name, redis_url)
            config = make_config(tmp_path, crawl_name, redis_url)
            place = (await OpenedCrawl.of(config, client)).place_of(URL)
        assert first.keys.of_url(URL) == place.key == PUBLIC_KEYS.of_url(URL)
        assert keys_in(tmp_path / crawl_name).of_url(URL) == place.key

    asyncio.run(scenario())


@pytest.mark.parametrize("written", ["1", "abcd", "no hex at all, but thirty-two by"])
def test_record_with_a_hash_of_another_version_is_refused(
    tmp_path: Path, crawl_name: str, redis_url: str, written: str
) -> None:
    """Neither a seed nor a secret of this version: its keys cannot be made here."""

    async def scenario() -> None:
        async with connected(redis_url) as client:
            await client.command("HSET", CrawlKeys(crawl_name).crawl, "hash_seed", written)
        with pytest.raises(ConfigError, match="another version"):
            await opened(tmp_path, crawl_name, redis_url)

    asyncio.run(scenario())


@pytest.mark.parametrize("lost", ["hash_seed", "partitions", "suffixes"])
def test_record_of_which_redis_refused_a_part_is_completed(
    tmp_path: Path, crawl_name: str, redis_url: str, lost: str
) -> None:
    """One command of those that write it was refused for want of memory, and later ones were taken."""

    async def scenario() -> None:
        first = await opened(tmp_path, crawl_name, redis_url)
        async with connected(redis_url) as client:
            await client.command("HDEL", CrawlKeys(crawl_name).crawl, lost)
        again = await opened(tmp_path, crawl_name, redis_url)
        assert again.crawl_id == first.crawl_id
        assert again.keys.of_url(URL) == first.keys.of_url(URL)

    asyncio.run(scenario())


def test_redis_that_does_not_know_the_directory_is_refused(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A state directory of a begun crawl with an empty Redis is never a silent restart from empty."""

    async def scenario() -> None:
        await opened(tmp_path, crawl_name, redis_url)
        partition = Partition.open(tmp_path / crawl_name / "p0000", 1, PartitionLimits())
        partition.step([InboxEntry("1-0", b"", b"", pack_outcome(7, "status:200", 0), b"")], 0, {})
        async with connected(redis_url) as client:
            await client.command("DEL", CrawlKeys(crawl_name).crawl)
        with pytest.raises(ConfigError, match="does not know it"):
            await opened(tmp_path, crawl_name, redis_url)

    asyncio.run(scenario())


def test_crawl_that_has_fetched_nothing_begins_anew_in_a_redis_that_lost_it(
    tmp_path: Path, crawl_name: str, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its directory has all that it was: it keeps its id, and says what it does."""

    async def scenario() -> None:
        first = await opened(tmp_path, crawl_name, redis_url)
        urls = encode_batch([QueuedUrl(7, "a.example", 0, 0, b"body")])
        partition = Partition.open(tmp_path / crawl_name / "p0000", 1, PartitionLimits())
        assert partition.step([InboxEntry("1-0", urls)], 5, {}).batch is not None
        async with connected(redis_url) as client:
            await client.command("DEL", CrawlKeys(crawl_name).crawl)
        again = await opened(tmp_path, crawl_name, redis_url)
        assert again.crawl_id == first.crawl_id
        assert again.keys.of_url(URL) == first.keys.of_url(URL)
        assert "it starts from scratch" in caplog.text
        async with connected(redis_url) as client:
            await client.command("DEL", CrawlKeys(crawl_name).crawl)
        with pytest.raises(ConfigError, match="fixed for the crawl's life"):
            await opened(tmp_path, crawl_name, redis_url, partitions=8)

    asyncio.run(scenario())


def test_directory_that_was_lost_is_refused(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crawl that has committed anything is not opened on an empty directory."""
    monkeypatch.setattr(crawl_record, "FILE_WAIT_S", 0.1)

    async def scenario() -> None:
        await opened(tmp_path / "first", crawl_name, redis_url)
        async with connected(redis_url) as client:
            await client.command("HSET", PartitionKeys(crawl_name, 3).state, "committed", "1")
        with pytest.raises(ConfigError, match=r"BIGCRAWL_STATE_DIR.* start from scratch with BIGCRAWL_FRESH=1"):
            await opened(tmp_path / "third", crawl_name, redis_url)
        await delete_crawl(make_config(tmp_path / "third", crawl_name, redis_url))
        assert (await opened(tmp_path / "third", crawl_name, redis_url)).is_new

    asyncio.run(scenario())


def test_nodes_in_different_directories_are_no_one_crawl(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """However close together they start, one directory remains. A node in another is refused and leaves nothing."""

    async def scenario() -> None:
        places = [tmp_path / str(number) for number in range(6)]
        started = await asyncio.gather(
            *(opened(place, crawl_name, redis_url) for place in places for _ in range(2)), return_exceptions=True
        )
        with_file = [place for place in places if (place / crawl_name / RECORD_FILE).exists()]
        assert len(with_file) == 1
        joined = [isinstance(outcome, CrawlRecord) for outcome in started]
        assert joined == [place in with_file for place in places for _ in range(2)]
        refused = [str(outcome) for outcome in started if isinstance(outcome, ConfigError)]
        assert len(refused) == 10
        assert all("BIGCRAWL_STATE_DIR" in message and str(tmp_path) in message for message in refused)
        await opened(with_file[0], crawl_name, redis_url)

    asyncio.run(scenario())
    assert not list(tmp_path.rglob("*.tmp"))


def test_crawl_whose_directory_has_no_id_goes_on(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """An earlier version began it."""

    async def scenario() -> None:
        first = await opened(tmp_path, crawl_name, redis_url)
        path = tmp_path / crawl_name / RECORD_FILE
        record = json.loads(path.read_text())
        del record["directory"]
        path.write_text(json.dumps(record))
        async with connected(redis_url) as client:
            await client.command("HDEL", CrawlKeys(crawl_name).crawl, "directory")
        for _ in range(2):
            assert (await opened(tmp_path, crawl_name, redis_url)).crawl_id == first.crawl_id

    asyncio.run(scenario())


def test_directory_of_another_crawl_is_refused(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Name alone does not make a directory and a Redis one crawl: the random id does."""

    async def scenario() -> None:
        await opened(tmp_path, crawl_name, redis_url)
        async with connected(redis_url) as client:
            await client.command("HSET", CrawlKeys(crawl_name).crawl, "id", "another")
        with pytest.raises(ConfigError, match="belongs to another crawl"):
            await opened(tmp_path, crawl_name, redis_url)

    asyncio.run(scenario())


@pytest.mark.parametrize("text", ["", "{not json", "[1]"])
def test_damaged_record_file_is_told_with_its_path(tmp_path: Path, crawl_name: str, redis_url: str, text: str) -> None:
    """A torn or foreign file is a corruption, never a new crawl."""

    async def scenario() -> None:
        await opened(tmp_path, crawl_name, redis_url)
        (tmp_path / crawl_name / RECORD_FILE).write_text(text)
        with pytest.raises(CorruptionError, match=RECORD_FILE):
            await opened(tmp_path, crawl_name, redis_url)

    asyncio.run(scenario())


def test_directory_that_cannot_be_written_is_told(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A file in the way of the state directory: one error that names the setting."""
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(ConfigError, match="cannot "):
        asyncio.run(opened(tmp_path / "state", crawl_name, redis_url))


def test_nodes_whose_processes_have_one_number_begin_a_crawl_in_one_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in containers that share a volume: both have the record that was there first, and nothing else stays."""
    both = threading.Barrier(2)
    sync = os.fsync

    def sync_beside_the_other(fd: int) -> None:
        sync(fd)
        both.wait(60)

    monkeypatch.setattr(os, "fsync", sync_beside_the_other)
    path = tmp_path / "crawl" / RECORD_FILE
    with ThreadPoolExecutor(2) as nodes:
        made = list(nodes.map(lambda id_: crawl_record._make_file(path, {"id": id_}), ("one", "other")))
    assert made[0] == made[1] == json.loads(path.read_text())
    assert [each.name for each in path.parent.iterdir()] == [RECORD_FILE]
