"""Another crawler's queue is read in the order in which it would leave, in portions, and nothing is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.redisdb.keys import ListKeys
from bigcrawl.redisdb.scripts import entries

if TYPE_CHECKING:
    from bigcrawl.redisdb.scripts.entries import QueuePart
    from tests.support.redis_servers.script_world import ScriptRunner


def part_of(
    runner: ScriptRunner, key: str, rank: int, end: str = "right", entries_max: int = 40, bytes_max: int = 10_000
) -> QueuePart:
    part: QueuePart = runner.run(entries.read_queue(ListKeys(key), rank, end, entries_max, bytes_max, 100))
    return part


def all_of(runner: ScriptRunner, key: str, end: str = "right", *bounds: int) -> list[bytes | int]:
    found: list[bytes | int] = []
    while entries := part_of(runner, key, len(found), end, *bounds).entries:
        found += entries
    return found


@pytest.mark.parametrize("bounds", [(), (1,), (17,), (40, 1)])
def test_queue_is_read_in_its_order(runner: ScriptRunner, crawl_name: str, bounds: tuple[int, ...]) -> None:
    """A list from the end that leaves first, a zset by score, whatever the portions."""
    key, client = f"{crawl_name}:requests", runner.client
    numbers = [b"%d" % number for number in range(100)]
    client.lpush(key, *numbers)
    assert all_of(runner, key, "right", *bounds) == numbers
    assert all_of(runner, key, "left", *bounds) == numbers[::-1]
    client.delete(key)
    client.zadd(key, {name: -number for number, name in enumerate(numbers)})
    assert all_of(runner, key, "right", *bounds) == numbers[::-1]
    assert part_of(runner, key, 0)[:2] == ("zset", 100)
    assert client.zcard(key) == 100


def test_large_entry_is_told_by_its_size(runner: ScriptRunner, crawl_name: str) -> None:
    """It is not sent; a portion ends with its bytes. Other types of keys are named."""
    key, client = f"{crawl_name}:requests", runner.client
    client.rpush(key, "b", "x" * 101, "a")
    assert all_of(runner, key) == [b"a", 101, b"b"]
    client.delete(key)
    assert part_of(runner, key, 0) == ("none", 0, [])
    client.set(key, "x")
    found: Any = part_of(runner, key, 0)
    assert found.kind == "string"
