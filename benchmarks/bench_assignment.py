"""`python -m benchmarks.bench_assignment`: how even shares are, and how much moves, from 2 to 64 nodes.

For each number of nodes, of equal capacity and of capacities 1, 2 and 4, it prints by how many partitions the worst
share differs from what its capacity asks for. Then it prints how many partitions move when a node joins and when it
leaves, of how many that must, and how many of its own a node has again after a restart under its name.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from bigcrawl.scheduler.crawl.assignment import LiveNode, assign

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PARTITIONS = 1_024
NODES = (2, 3, 4, 8, 16, 32, 63, 64)
CAPACITIES = {"equal": (1.0,), "1, 2, 4": (1.0, 2.0, 4.0)}


def members_of(capacities: Mapping[str, float], owners: Sequence[str] = ()) -> dict[str, LiveNode]:
    owned: dict[str, set[int]] = {node: set() for node in capacities}
    for partition, owner in enumerate(owners):
        if owner in owned:
            owned[owner].add(partition)
    return {node: LiveNode(node, capacity, frozenset(owned[node])) for node, capacity in capacities.items()}


def worst_difference(owners: Sequence[str], capacities: Mapping[str, float]) -> float:
    total, counts = sum(capacities.values()), Counter(owners)
    return max(abs(counts[node] - PARTITIONS * capacity / total) for node, capacity in capacities.items())


def row(kind: str, nodes: int) -> tuple[object, ...]:
    cycle = CAPACITIES[kind]
    capacities = {f"node{number}": cycle[number % len(cycle)] for number in range(nodes)}
    newcomer = f"node{nodes - 1}"
    others = {node: capacity for node, capacity in capacities.items() if node != newcomer}
    before = assign(PARTITIONS, members_of(others))
    began_s = time.process_time()
    joined = assign(PARTITIONS, members_of(capacities, before))
    cost_ms = 1000 * (time.process_time() - began_s)
    left = assign(PARTITIONS, members_of(others, joined))
    again = assign(PARTITIONS, members_of(others, left) | {"again": LiveNode(newcomer, capacities[newcomer])})
    got = {partition for partition in range(PARTITIONS) if joined[partition] == newcomer}
    return (
        kind,
        nodes,
        f"{worst_difference(joined, capacities):.2f}",
        f"{sum(a != b for a, b in zip(before, joined, strict=True))} of {len(got)}",
        f"{sum(a != b for a, b in zip(joined, left, strict=True))} of {len(got)}",
        f"{sum(again[partition] == 'again' for partition in got)} of {len(got)}",
        f"{cost_ms:.1f}",
    )


def main() -> None:
    heads: tuple[object, ...] = (
        "capacities",
        "nodes",
        "share off by",
        "moved at a join",
        "at a leave",
        "again",
        "ms of CPU",
    )
    for cells in (heads, *(row(kind, nodes) for kind in CAPACITIES for nodes in NODES)):
        sys.stdout.write("  ".join(str(cell).rjust(16) for cell in cells) + "\n")


if __name__ == "__main__":
    main()
