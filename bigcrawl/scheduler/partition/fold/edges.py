"""The PLD graph of a partition: which PLDs link to the partition's PLDs.

Source: IRLbot §5 (STAR's PLDindegree). Differs: edges are a set of hashes of pairs, not lists of neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.partition.tables import Tables

EDGE_BYTES = 16

_PAIR = np.dtype("<u8")


class EdgesFormatError(ValueError):
    pass


def decode_edges(data: bytes) -> KeyArray:
    if len(data) % EDGE_BYTES:
        raise EdgesFormatError(f"edges take {EDGE_BYTES} bytes each; these are {len(data)} bytes")
    return np.frombuffer(data, dtype=_PAIR).reshape(-1, 2)


def edge_keys(edges: KeyArray) -> KeyArray:
    """Return a hash of each pair. It must never change, because the table of edges stores it."""
    with np.errstate(over="ignore"):
        return _mix_bits(edges[:, 0] + _mix_bits(edges[:, 1]))


def new_targets(tables: Tables, edges: KeyArray) -> KeyArray:
    """Record edges, and return the target of each new one. A PLD occurs as often as its in-degree rises."""
    edges = edges[edges[:, 0] != edges[:, 1]]
    if not len(edges):
        return edges[:, 1]
    found = tables.edges.check_update(edge_keys(edges))
    tables.commit(tables.edges, found)
    targets: KeyArray = edges[found.new, 1]
    return targets


def _mix_bits(keys: KeyArray) -> KeyArray:
    # SplitMix64's last steps: each input bit changes about half of the output bits.
    keys = keys + np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: KeyArray = keys ^ (keys >> np.uint64(31))
    return mixed
