"""Assignment: balance, determinism, and how much moves (UbiCrawler §2, §4)."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from bigcrawl.scheduler.crawl.assignment import assign
from tests.support.sizes import examples

NODES = st.dictionaries(
    st.text(alphabet="abcdefgh-0123456789", min_size=1, max_size=12),
    st.sampled_from([0.5, 1.0, 1.0, 2.0, 4.0]),
    min_size=1,
    max_size=8,
)


@settings(max_examples=examples(60), deadline=None)
@given(NODES, st.integers(min_value=1, max_value=512))
def test_no_node_gets_more_than_its_share(capacities: dict[str, float], partitions: int) -> None:
    """Balance: a node owns at most its capacity's share, rounded up; every partition has a live owner."""
    owners = assign(partitions, capacities)
    total = sum(capacities.values())
    assert len(owners) == partitions
    for node, count in Counter(owners).items():
        assert count <= math.ceil(partitions * capacities[node] / total)


@settings(max_examples=examples(30), deadline=None)
@given(NODES, st.randoms(use_true_random=False))
def test_every_node_computes_the_same(capacities: dict[str, float], order: object) -> None:
    """Locally computable: the answer depends on who lives, not on the order in which one heard of them."""
    shuffled = list(capacities.items())
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert assign(64, capacities) == assign(64, dict(shuffled))


def test_assignment_moves_only_what_it_must() -> None:
    """Contravariance, measured: beside the joining or leaving node's share, at most a sixteenth moves."""
    for nodes in range(1, 9):
        before = assign(256, {f"node{i}": 1.0 for i in range(nodes)})
        after = assign(256, {f"node{i}": 1.0 for i in range(nodes + 1)})
        moved = sum(old != new for old, new in zip(before, after, strict=True))
        to_the_new_one = sum(owner == f"node{nodes}" for owner in after)
        assert moved - to_the_new_one <= 256 // 16, f"{moved} moved, not {to_the_new_one}, at {nodes} nodes"


def test_node_that_comes_back_gets_what_it_had() -> None:
    """The same live nodes have the same partitions, whatever happened in between."""
    nodes = {"a": 1.0, "b": 2.0, "c": 1.0}
    assert assign(256, nodes) == assign(256, dict(reversed(nodes.items())))


def test_capacity_weighs() -> None:
    """A node of twice the capacity owns twice as much."""
    counts = Counter(assign(300, {"large": 2.0, "small": 1.0}))
    assert counts == {"large": 200, "small": 100}
