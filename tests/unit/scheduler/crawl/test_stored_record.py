"""The crawl record in the store: which store is the crawl's, whatever its URL says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl import stored_record
from bigcrawl.scheduler.crawl.crawl_record import RECORD_FILE, CrawlRecord, open_record
from bigcrawl.store.objects import ObjectStore
from tests.unit.scheduler.world import connected, make_config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def new_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Make an empty store and return its URL; that stores are alike is asked by tests/contract/test_store.py."""
    monkeypatch.setattr(stored_record, "SEEN_S", 0.1)
    numbers = iter(range(100))
    return lambda: f"file://{tmp_path}/store{next(numbers)}"


async def opened(place: Path, name: str, redis_url: str, store: str) -> CrawlRecord:
    """A node with a state directory of its own."""
    objects = ObjectStore(store)
    try:
        async with connected(redis_url) as client:
            return await open_record(client, make_config(place, name).crawl, objects)
    finally:
        objects.close()


def names_in(store: str, crawl: str) -> list[str]:
    objects = ObjectStore(store)
    try:
        return sorted(objects.list(crawl))
    finally:
        objects.close()


def test_nodes_with_different_stores_are_no_one_crawl(
    tmp_path: Path, crawl_name: str, redis_url: str, new_store: Callable[[], str]
) -> None:
    """However close together they start, one store remains. A node with another is refused and leaves nothing."""

    async def scenario() -> None:
        stores = [new_store() for _ in range(3)]
        places = [(tmp_path / f"{n}-{again}", store) for n, store in enumerate(stores) for again in range(2)]
        started = await asyncio.gather(
            *(opened(place, crawl_name, redis_url, store) for place, store in places), return_exceptions=True
        )
        refused = [error for error in started if isinstance(error, ConfigError)]
        records = [record for record in started if isinstance(record, CrawlRecord)]
        assert (len(records), len(refused)) == (2, 4), started
        for error in refused:
            assert "was begun in a store other than the one at" in str(error)
        used = [store for store in stores if names_in(store, crawl_name)]
        assert len(used) == 1
        assert len(names_in(used[0], crawl_name)) == 2  # the record and the id
        assert sum((place / crawl_name / RECORD_FILE).exists() for place, _ in places) == 2

    asyncio.run(scenario())


def test_crawl_that_another_node_begins_meanwhile_is_joined(
    tmp_path: Path, crawl_name: str, redis_url: str, new_store: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis did not know it yet when it was asked, and the store has points of it when that is asked."""

    async def scenario() -> None:
        store = new_store()
        has_points = stored_record._has_points
        records: list[CrawlRecord | None] = []

        def begun_first(objects: ObjectStore, crawl: str) -> bool:
            if not records:
                records.append(None)
                records[0] = asyncio.run(opened(tmp_path / "a", crawl_name, redis_url, store))
                objects.put(f"{crawl}/p0000/point-1", b"a point")
            return has_points(objects, crawl)

        monkeypatch.setattr(stored_record, "_has_points", begun_first)
        record = await opened(tmp_path / "b", crawl_name, redis_url, store)
        [first] = records
        assert first is not None
        assert record.crawl_id == first.crawl_id
        assert not record.is_new

    asyncio.run(scenario())


def test_crawl_begun_before_stores_had_an_id_gets_one(
    tmp_path: Path, crawl_name: str, redis_url: str, new_store: Callable[[], str]
) -> None:
    """Its first node from then on names the store; a node with a store that only looks like it is refused."""

    async def scenario() -> None:
        store, other = new_store(), new_store()
        first = await opened(tmp_path / "a", crawl_name, redis_url, store)
        async with connected(redis_url) as client:
            await client.command("HDEL", CrawlKeys(crawl_name).crawl, "store_id")
        for name in names_in(store, crawl_name):
            if not name.endswith("crawl.json"):
                ObjectStore(store).delete([name])
        again = await opened(tmp_path / "a", crawl_name, redis_url, store)
        assert again.crawl_id == first.crawl_id
        ObjectStore(other).put(f"{crawl_name}/crawl.json", ObjectStore(store).get(f"{crawl_name}/crawl.json") or b"")
        with pytest.raises(ConfigError, match="in a store other than"):
            await opened(tmp_path / "b", crawl_name, redis_url, other)
        assert (await opened(tmp_path / "b", crawl_name, redis_url, store)).crawl_id == first.crawl_id

    asyncio.run(scenario())


def test_copy_of_the_store_elsewhere_is_the_store(
    tmp_path: Path, crawl_name: str, redis_url: str, new_store: Callable[[], str]
) -> None:
    """An operator may move it to another bucket: what is in it counts, not its URL."""

    async def scenario() -> None:
        store, copy = new_store(), new_store()
        first = await opened(tmp_path / "a", crawl_name, redis_url, store)
        for name in names_in(store, crawl_name):
            ObjectStore(copy).put(name, ObjectStore(store).get(name) or b"")
        assert (await opened(tmp_path / "a", crawl_name, redis_url, copy)).crawl_id == first.crawl_id

    asyncio.run(scenario())


def test_node_that_died_while_it_began_the_crawl_hinders_nobody(
    tmp_path: Path, crawl_name: str, redis_url: str, new_store: Callable[[], str]
) -> None:
    """It had put its id, and Redis had not heard of it; or Redis has lost the crawl, in which nothing was stored."""

    async def scenario() -> None:
        store = new_store()
        ObjectStore(store).put(f"{crawl_name}/store-of-a-dead-node", b"")
        await opened(tmp_path / "a", crawl_name, redis_url, store)
        async with connected(redis_url) as client:
            await client.command("DEL", CrawlKeys(crawl_name).crawl)
        await opened(tmp_path / "a", crawl_name, redis_url, store)

    asyncio.run(scenario())
