"""Assignment: balance, determinism, and how much moves (UbiCrawler §2, §4)."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bigcrawl.scheduler.crawl.assignment import LiveNode, assign, read_ranges, write_ranges
from tests.support.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = st.text(alphabet="abcdefgh-0123456789", min_size=1, max_size=12)
CAPACITY = st.sampled_from([0.5, 1.0, 1.0, 2.0, 4.0])
NODES = st.dictionaries(NAME, CAPACITY, min_size=1, max_size=8)


def members_of(capacities: Mapping[str, float], owners: Sequence[str] = ()) -> dict[str, LiveNode]:
    """Nodes that are known by their ids, and own what `owners` says of them."""
    return {
        node: LiveNode(node, capacity, frozenset(p for p, owner in enumerate(owners) if owner == node))
        for node, capacity in capacities.items()
    }


def check_balance(owners: Sequence[str], capacities: Mapping[str, float]) -> None:
    """No node owns a whole partition more or less than its capacity asks for."""
    total, counts = sum(capacities.values()), Counter(owners)
    assert counts.keys() <= capacities.keys()
    for node, capacity in capacities.items():
        assert abs(counts[node] - len(owners) * capacity / total) < 1 + 1e-9


def fewest_moves(owners: Sequence[str], capacities: Mapping[str, float], partitions: int) -> int:
    """How many partitions must leave nodes that stay, if each share is rounded up or down."""
    total, counts = sum(capacities.values()), Counter(owners)
    least = {node: math.floor(partitions * capacity / total + 1e-9) for node, capacity in capacities.items()}
    beyond = [counts[node] - least[node] for node in capacities if counts[node] > least[node]]
    return sum(beyond) - min(len(beyond), partitions - sum(least.values()))


@settings(max_examples=examples(60), deadline=None)
@given(NODES, st.integers(min_value=1, max_value=512))
def test_every_node_gets_its_share(capacities: dict[str, float], partitions: int) -> None:
    """Balance: to less than one partition; every partition has a live owner."""
    owners = assign(partitions, members_of(capacities))
    assert len(owners) == partitions
    check_balance(owners, capacities)


@settings(max_examples=examples(30), deadline=None)
@given(NODES, st.randoms(use_true_random=False))
def test_every_node_computes_the_same(capacities: dict[str, float], order: object) -> None:
    """Locally computable: the answer depends on who lives, not on the order in which one heard of them."""
    shuffled = list(members_of(capacities).items())
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert assign(64, members_of(capacities)) == assign(64, dict(shuffled))


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 11), CAPACITY), min_size=2, max_size=30), st.sampled_from([7, 64, 256]))
def test_no_more_moves_than_shares_ask_for(steps: list[tuple[int, float]], partitions: int) -> None:
    """Contravariance, whoever comes and leaves: a step brings a node, or takes it away if it is there."""
    capacities: dict[str, float] = {}
    owners: list[str] = []
    for number, capacity in steps:
        node = f"node{number}"
        if capacities.pop(node, None) is None:
            capacities[node] = capacity
        if not capacities:
            owners = []
            continue
        before, owners = owners, assign(partitions, members_of(capacities, owners))
        check_balance(owners, capacities)
        moved = sum(old != new and old in capacities for old, new in zip(before, owners, strict=False))
        assert moved == fewest_moves(before, capacities, partitions)


@pytest.mark.parametrize("cycle", [(1.0,), (1.0, 2.0, 4.0)], ids=["equal", "unequal"])
@pytest.mark.parametrize("partitions", [256, 1_024])
def test_up_to_64_nodes_join_and_leave_without_a_needless_move(cycle: tuple[float, ...], partitions: int) -> None:
    """63 to 64 included: what moves goes to the newcomer or was the leaver's, and shares are even."""
    capacities: dict[str, float] = {"node0": cycle[0]}
    owners = assign(partitions, members_of(capacities))
    for number in range(1, 64):
        before, newcomer = owners, f"node{number}"
        capacities[newcomer] = cycle[number % len(cycle)]
        owners = assign(partitions, members_of(capacities, before))
        check_balance(owners, capacities)
        assert {new for old, new in zip(before, owners, strict=True) if old != new} == {newcomer}
    for number in range(63):
        before, leaver = owners, f"node{number}"
        del capacities[leaver]
        owners = assign(partitions, members_of(capacities, before))
        check_balance(owners, capacities)
        assert {old for old, new in zip(before, owners, strict=True) if old != new} == {leaver}


def test_node_that_comes_back_gets_nearly_all_that_it_had() -> None:
    """Under its name, with another id; nobody else's partitions move."""
    capacities = {f"node{number}": 1.0 for number in range(8)}
    before = assign(256, members_of(capacities))
    mine = {p for p, owner in enumerate(before) if owner == "node3"}
    others = {node: capacity for node, capacity in capacities.items() if node != "node3"}
    meanwhile = assign(256, members_of(others, before))
    after = assign(256, members_of(others, meanwhile) | {"another-id": LiveNode("node3")})
    again = {p for p, owner in enumerate(after) if owner == "another-id"}
    assert len(again) == len(mine) == 32
    assert len(again & mine) >= 28
    moved = [p for p in range(256) if before[p] != after[p] and p not in mine | again]
    assert all(meanwhile[p] == after[p] for p in range(256) if p not in again)
    assert not moved


def test_partition_that_two_nodes_report_goes_to_one() -> None:
    """For a moment both may: one of them has just lost it."""
    both = frozenset(range(8))
    owners = assign(8, {"a": LiveNode("a", 1.0, both), "b": LiveNode("b", 1.0, both)})
    assert Counter(owners) == {"a": 4, "b": 4}


def test_capacity_weighs() -> None:
    """A node of twice the capacity owns twice as much."""
    counts = Counter(assign(300, members_of({"large": 2.0, "small": 1.0})))
    assert counts == {"large": 200, "small": 100}


@given(st.frozensets(st.integers(0, 300)))
def test_ranges_are_read_as_they_were_written(partitions: frozenset[int]) -> None:
    """Whatever a node owns."""
    assert read_ranges(write_ranges(partitions)) == partitions


def test_ranges_are_short() -> None:
    """A node alone reports all its partitions in a few characters."""
    assert write_ranges(range(4_096)) == "0-4095"
    assert write_ranges([7, 3, 2, 1]) == "1-3,7"
    assert not write_ranges([])
