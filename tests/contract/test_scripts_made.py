"""What all nodes made is the sum of what each made, whatever becomes of their heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.scripts import NodesMade, looking

if TYPE_CHECKING:
    from tests.support.redis_servers.script_world import ScriptRunner

LEASE_MS = 60_000
NOW_MS = 1_000_000


class Nodes:
    """Nodes of one crawl, as their heartbeats come to Redis."""

    def __init__(self, runner: ScriptRunner, crawl: str) -> None:
        self.runner = runner
        self.keys = CrawlKeys(crawl)

    def beat(self, node: str, *made: int, now_ms: int = NOW_MS, **options: Any) -> NodesMade:
        call = scripts.beat_node(self.keys, node, "{}", LEASE_MS, made, now_ms=now_ms, **options)
        total: NodesMade = self.runner.run(call).made
        return total


@pytest.fixture
def nodes(runner: ScriptRunner, crawl_name: str) -> Nodes:
    return Nodes(runner, crawl_name)


def test_sums_are_of_all_nodes_and_outlive_them(nodes: Nodes) -> None:
    """Also what a node made before it joined, and until it left; the next one begins at zero again."""
    assert nodes.beat("a", 2, 3, 1, is_first=True) == (2, 3, 1)
    assert nodes.beat("b", 10, 0, 0, is_first=True) == (12, 3, 1)
    assert nodes.beat("a", 5, 3, 2) == (15, 3, 2)
    assert nodes.beat("a", 6, 4, 2, leave=True) == (16, 4, 2)
    assert nodes.beat("b", 10, 0, 0, leave=True) == (16, 4, 2)
    assert nodes.beat("c", 1, 0, 0, is_first=True) == (17, 4, 2)


def test_repeated_and_late_heartbeats_count_nothing_twice(nodes: Nodes) -> None:
    """After a lost reply, out of order, and after the node has left."""
    nodes.beat("a", 2, 0, 0, is_first=True)
    assert nodes.beat("a", 2, 0, 0, is_first=True) == (2, 0, 0)
    assert nodes.beat("a", 9, 0, 0) == (9, 0, 0)
    assert nodes.beat("a", 5, 0, 0) == (9, 0, 0)
    assert nodes.beat("a", 9, 0, 0) == (9, 0, 0)
    nodes.beat("a", 9, 0, 0, leave=True)
    assert nodes.beat("a", 9, 0, 0, leave=True) == (9, 0, 0)
    assert nodes.beat("a", 7, 0, 0) == (9, 0, 0)


def test_node_that_was_forgotten_goes_on_from_what_it_had(nodes: Nodes) -> None:
    """Its sums stay, and nothing of it is counted again; its own fields do not pile up."""
    nodes.beat("a", 100, 0, 0, is_first=True)
    later = NOW_MS + 10 * LEASE_MS
    assert nodes.beat("b", 1, 0, 0, is_first=True, now_ms=later) == (101, 0, 0)
    assert {name.decode() for name in nodes.runner.client.hkeys(nodes.keys.counts)} == {
        *("items", "warnings", "errors"),
        *("items:b", "warnings:b", "errors:b"),
    }
    assert nodes.beat("a", 150, 0, 0, now_ms=later) == (101, 0, 0)
    assert nodes.beat("a", 151, 0, 0, now_ms=later) == (102, 0, 0)


def test_another_node_speaks_for_a_dead_one_without_its_counts(nodes: Nodes) -> None:
    """Its last heartbeat stands."""
    nodes.beat("a", 4, 1, 0, is_first=True)
    assert nodes.beat("a", leave=True) == (4, 1, 0)


def test_look_has_the_sums(nodes: Nodes) -> None:
    """And zeros of a crawl that has made nothing."""
    look = looking.look_crawl(nodes.keys, LEASE_MS, NOW_MS)
    assert nodes.runner.run(look).made == NodesMade()
    nodes.beat("a", 4, 1, 2, is_first=True)
    assert nodes.runner.run(look).made == (4, 1, 2)


@pytest.mark.parametrize("damaged", ["many", "1.5", "inf", "-3", "9" * 40, ""])
def test_damaged_sum_begins_at_zero_and_is_told_once(nodes: Nodes, damaged: str) -> None:
    """No heartbeat and no look fails, and what nodes make from then on counts."""
    nodes.beat("a", 4, 1, 0, is_first=True)
    nodes.runner.client.hset(nodes.keys.counts, mapping={"items": damaged, "errors": damaged})
    assert nodes.runner.run(looking.look_crawl(nodes.keys, LEASE_MS, NOW_MS)).made == (0, 1, 0)
    assert nodes.beat("a", 6, 1, 0) == (2, 1, 0)
    assert nodes.beat("a", 7, 1, 1) == (3, 1, 1)
    told = [event for event in nodes.runner.client.zrange(nodes.keys.events, 0, -1) if b"damaged" in event]
    assert len(told) == 2
    assert b"the sum of items was damaged in Redis" in b"".join(told)


def test_damaged_count_of_a_node_goes_on_from_what_it_says(nodes: Nodes) -> None:
    """It is as if the node had been forgotten."""
    nodes.beat("a", 4, 1, 0, is_first=True)
    nodes.runner.client.hset(nodes.keys.counts, "items:a", "four")
    assert nodes.beat("a", 6, 1, 0) == (4, 1, 0)
    assert nodes.beat("a", 7, 1, 0) == (5, 1, 0)
