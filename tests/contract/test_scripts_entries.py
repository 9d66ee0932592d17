"""Entries of a list of the user's: none is lost and none is taken twice, whoever dies, whatever is repeated or late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.redisdb.keys import ListKeys
from bigcrawl.redisdb.scripts import entries
from tests.support.redis_servers.script_world import LEASE_MS, T0

if TYPE_CHECKING:
    from bigcrawl.redisdb.scripts.entries import EntryBatch, TakenEntries
    from tests.support.redis_servers.script_world import ScriptRunner


class ListWorld:
    """A list, and a clock."""

    def __init__(self, runner: ScriptRunner, name: str) -> None:
        self.runner = runner
        self.client: Any = runner.client
        self.keys = ListKeys(f"{name}:start_urls")
        self.now_ms = T0

    def take(self, batch: str, ended: str = "", *, entries_max: int = 2, bytes_max: int = 1_000) -> TakenEntries:
        call = entries.take_entries(self.keys, batch, LEASE_MS, ended, entries_max, bytes_max, 100, self.now_ms)
        taken: TakenEntries = self.runner.run(call)
        return taken

    def batch(self, name: str, ended: str = "", **more: int) -> EntryBatch:
        found = self.take(name, ended, **more).batch
        assert found is not None
        return found

    def push(self, *entries: str) -> None:
        self.client.rpush(self.keys.list, *entries)


@pytest.fixture
def world(runner: ScriptRunner, crawl_name: str) -> ListWorld:
    return ListWorld(runner, crawl_name)


def data_of(batch: EntryBatch | None) -> list[bytes | None]:
    return [] if batch is None else [entry.data for entry in batch.entries]


def test_entries_stay_until_their_batch_ends(world: ListWorld) -> None:
    """What is taken is kept, and forgotten with the call that ends it."""
    world.push("a", "b", "c")
    assert data_of(world.batch("one")) == [b"a", b"b"]
    assert world.client.hexists(world.keys.entries, "one")
    assert data_of(world.batch("two", ended="one")) == [b"c"]
    assert not world.client.hexists(world.keys.entries, "one")
    assert world.take("three", ended="two").batch is None
    assert world.client.hkeys(world.keys.entries) == [b""]
    assert world.client.zcard(world.keys.leases) == 0


def test_lost_reply_gives_the_same_batch_again(world: ListWorld) -> None:
    """Under the same name nothing more is taken, and what was ended stays so."""
    world.push("a", "b", "c")
    world.batch("one")
    again = [world.batch("two", ended="one") for _ in range(3)]
    assert again[0] == again[1] == again[2]
    assert data_of(again[0]) == [b"c"]


def test_batch_of_a_dead_node_is_taken_over_once(world: ListWorld) -> None:
    """When its lease ends, by one of the others, before anything new; its name and number stay, so its entries do."""
    world.push("a", "b", "c")
    dead = world.batch("dead")
    world.now_ms += LEASE_MS - 1
    assert data_of(world.batch("living")) == [b"c"]
    world.now_ms += 1
    assert world.batch("third", ended="living") == dead
    assert world.take("fourth").batch is None


def test_lease_is_renewed(world: ListWorld) -> None:
    """Without taking anything, and without bringing back what has ended."""
    world.push("a", "b", "c")
    world.batch("one")
    world.now_ms += LEASE_MS - 1
    assert world.take("one", entries_max=0).batch is None
    world.now_ms += LEASE_MS - 1
    assert data_of(world.batch("two")) == [b"c"]
    assert world.take("gone", entries_max=0).batch is None
    assert world.client.zscore(world.keys.leases, "gone") is None


def test_late_call_does_not_reuse_the_identity_of_entries(world: ListWorld) -> None:
    """A call that arrives after its batch has ended takes others, which have another number."""
    world.push("a", "b")
    first = world.batch("one")
    world.push("c")
    assert world.take("two", ended="one", entries_max=0).batch is None
    late = world.batch("one")
    assert data_of(late) == [b"c"]
    assert late.number != first.number


def test_large_entry_is_told_by_its_size(world: ListWorld) -> None:
    """It is taken out of the way, and a batch ends with the bytes it may have."""
    world.push("x" * 101, "a", "b")
    [large] = world.batch("one", entries_max=9, bytes_max=50).entries
    assert (large.data, large.size) == (None, 101)
    assert data_of(world.batch("two", entries_max=9)) == [b"a", b"b"]


def test_each_kind_of_key_gives_its_entries(world: ListWorld) -> None:
    """A set any, a zset the highest score first, a stream the oldest first; another type is named."""
    key = world.keys.list
    world.client.sadd(key, "a", "b")
    assert {*data_of(world.batch("set"))} == {b"a", b"b"}
    assert not world.client.exists(key)
    world.client.zadd(key, {"low": 1, "high": 7.5})
    assert [(entry.data, entry.score) for entry in world.batch("zset").entries] == [(b"high", 7.5), (b"low", 1.0)]
    world.client.xadd(key, {"data": "a"})
    world.client.xadd(key, {"url": "b"})
    assert data_of(world.batch("stream")) == [b"a", b'{"url":"b"}']
    assert world.take("empty").batch is None
    world.client.delete(key)
    world.client.set(key, "a")
    assert world.take("string").wrong_type == "string"
    assert world.client.hkeys(world.keys.entries)[0] == b""
