"""What nodes count, in Redis: whatever is lost, late or repeated, it is counted once."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.scripts import PutTallies

if TYPE_CHECKING:
    from tests.support.redis_servers.script_world import ScriptRunner

NOW_MS = 1_700_000_000_000
LEASE_MS = 60_000


def beat(runner: ScriptRunner, keys: CrawlKeys, node: str, *, leave: bool = False) -> None:
    runner.run(scripts.beat_node(keys, node, "{}", LEASE_MS, leave=leave, now_ms=NOW_MS))


def put(runner: ScriptRunner, keys: CrawlKeys, node: str, data: bytes, *, is_first: bool = False) -> PutTallies:
    found: PutTallies = runner.run(scripts.put_tallies(keys, node, data, is_first=is_first))
    return found


def kept(runner: ScriptRunner, keys: CrawlKeys) -> dict[bytes, bytes]:
    client: Any = runner.client
    found: dict[bytes, bytes] = client.hgetall(keys.tallies)
    return found


def sha1(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def test_a_node_replaces_what_it_wrote(runner: ScriptRunner, crawl_name: str) -> None:
    keys = CrawlKeys(crawl_name)
    for node in ("a-1", "b-2"):
        beat(runner, keys, node)
    assert put(runner, keys, "a-1", b"1", is_first=True) == PutTallies(True, False, 1)
    assert put(runner, keys, "b-2", b"5", is_first=True) == PutTallies(True, False, 2)
    assert put(runner, keys, "a-1", b"2") == put(runner, keys, "a-1", b"2") == PutTallies(True, False, 2)
    assert kept(runner, keys) == {b"a-1": b"2", b"b-2": b"5"}


def test_a_node_that_is_gone_writes_nothing(runner: ScriptRunner, crawl_name: str) -> None:
    """A message that arrives a minute late, when the node's tallies may be in the sum already."""
    keys = CrawlKeys(crawl_name)
    beat(runner, keys, "a-1")
    put(runner, keys, "a-1", b"1", is_first=True)
    beat(runner, keys, "a-1", leave=True)
    assert put(runner, keys, "a-1", b"0") == PutTallies(False, False, 0)
    assert put(runner, keys, "a-1", b"0", is_first=True) == PutTallies(False, False, 0)
    assert kept(runner, keys) == {b"a-1": b"1"}


def test_a_fold_moves_nodes_into_the_sum_once(runner: ScriptRunner, crawl_name: str) -> None:
    keys = CrawlKeys(crawl_name)
    for node in ("a-1", "b-2", "c-3"):
        beat(runner, keys, node)
        put(runner, keys, node, node.encode(), is_first=True)
        beat(runner, keys, node, leave=True)
    call = scripts.fold_tallies(keys, "gone", "", b"a+b", {"a-1": sha1(b"a-1"), "b-2": sha1(b"b-2")})
    assert runner.run(call) == 1
    assert kept(runner, keys) == {b"gone": b"a+b", b"c-3": b"c-3"}
    assert runner.run(call) == 0
    assert runner.run(scripts.fold_tallies(keys, "gone", sha1(b"a+b"), b"a+b+c", {"c-3": sha1(b"c-3")})) == 1
    assert kept(runner, keys) == {b"gone": b"a+b+c"}


@pytest.mark.parametrize("change", ["sum", "node", "beat"])
def test_a_fold_of_what_has_changed_meanwhile_changes_nothing(
    runner: ScriptRunner, crawl_name: str, change: str
) -> None:
    """Another node has folded first, or the node has written once more and left, or is back."""
    keys = CrawlKeys(crawl_name)
    beat(runner, keys, "a-1")
    put(runner, keys, "a-1", b"1", is_first=True)
    if change == "node":
        put(runner, keys, "a-1", b"2")
    if change == "sum":
        client: Any = runner.client
        client.hset(keys.tallies, "gone", b"9")
    if change != "beat":
        beat(runner, keys, "a-1", leave=True)
    before = kept(runner, keys)
    assert runner.run(scripts.fold_tallies(keys, "gone", "", b"1", {"a-1": sha1(b"1")})) == 0
    assert kept(runner, keys) == before


def test_a_node_that_was_folded_learns_it(runner: ScriptRunner, crawl_name: str) -> None:
    """It was stopped for so long that others thought it dead, and must not write its old counts again."""
    keys = CrawlKeys(crawl_name)
    beat(runner, keys, "a-1")
    put(runner, keys, "a-1", b"1", is_first=True)
    beat(runner, keys, "a-1", leave=True)
    runner.run(scripts.fold_tallies(keys, "gone", "", b"1", {"a-1": sha1(b"1")}))
    beat(runner, keys, "a-1")
    assert put(runner, keys, "a-1", b"3") == PutTallies(True, True, 0)
    assert kept(runner, keys) == {b"gone": b"1"}
    assert put(runner, keys, "a-1", b"2", is_first=True) == PutTallies(True, False, 2)
