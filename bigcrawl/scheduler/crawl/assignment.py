"""Assigns partitions to nodes: weighted rendezvous hashing with bounded load (pure).

Every node computes the same assignment from the same list of live nodes. When a node joins or leaves, only the
partitions it gains or held move, plus those that the load bound displaces. Source: UbiCrawler §2 (balanced, locally
computable), §4 (contravariance). Differs: rendezvous hashing in place of a ring, and a cap on load.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import mmh3

if TYPE_CHECKING:
    from collections.abc import Mapping


def assign(partitions: int, capacities: Mapping[str, float]) -> list[str]:
    """Return the node of each partition, by partition id.

    Args:
        partitions: their number, >= 1.
        capacities: live node -> relative capacity, > 0; at least one node.

    Cost: O(partitions * nodes).
    """
    total = sum(capacities.values())
    room = {node: math.ceil(partitions * capacity / total) for node, capacity in capacities.items()}
    owners = []
    for partition in range(partitions):
        by_score = sorted(capacities, key=lambda node: (-_score(node, partition, capacities[node]), node))
        owner = next(node for node in by_score if room[node] > 0)
        room[owner] -= 1
        owners.append(owner)
    return owners


def _score(node: str, partition: int, capacity: float) -> float:
    """Weighted rendezvous score: -capacity / ln(u) for a uniform u in (0, 1) made from node and partition."""
    hashed = mmh3.hash64(f"{node}/{partition}", signed=False)[0]
    return -capacity / math.log((hashed + 0.5) / 2.0**64)
