"""Assigns partitions to nodes by capacity, with few moves (pure).

Every node computes the assignment from the live nodes' reports. A node keeps its partitions up to its share. The rest
goes to nodes with room, by weighted rendezvous hashing of their names. So a node that returns under the same name gets
most of its former partitions. If reports differ, the claim in Redis decides.

Source: UbiCrawler §2 (balanced, locally computable), §4 (contravariance). Differs: present ownership counts, not names
alone. So no more partitions move than the shares require, and a share is within one partition of the node's capacity.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import mmh3
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    Scores = npt.NDArray[np.float64]
    Owners = npt.NDArray[np.int64]

NAMES_CACHED = 256


class LiveNode(NamedTuple):
    """A live node; `name` stays the same over restarts, and `capacity` is relative, > 0."""

    name: str
    capacity: float = 1.0
    owned: frozenset[int] = frozenset()


def assign(partitions: int, members: Mapping[str, LiveNode]) -> list[str]:
    nodes = sorted(members)
    scores = np.stack([_scores(members[node].name, members[node].capacity, partitions) for node in nodes])
    owner = _present_owners(partitions, [members[node].owned for node in nodes], scores)
    owned = np.bincount(owner[owner >= 0], minlength=len(nodes))
    room = np.array(_shares(partitions, [members[node].capacity for node in nodes], owned.tolist())) - owned
    for at in np.flatnonzero(room < 0):
        given = _given_away(int(at), owner, scores, room)
        owner[given] = -1
        room[at] = 0
    _assign_free(owner, scores, room.tolist())
    return [nodes[at] for at in owner]


def _present_owners(partitions: int, owned: list[frozenset[int]], scores: Scores) -> Owners:
    owner = np.full(partitions, -1)
    best = np.full(partitions, -np.inf)
    for at, reported in enumerate(owned):
        named = np.fromiter((partition for partition in reported if partition < partitions), dtype=np.int64)
        better = named[scores[at, named] > best[named]]
        owner[better], best[better] = at, scores[at, better]
    return owner


def _shares(partitions: int, capacities: list[float], owned: list[int]) -> list[int]:
    """Return each node's number of partitions: its exact share rounded down, or up if it already owns that many.

    Any left over go to nodes that would otherwise lose partitions, then to those that lack most.
    """
    total = sum(capacities)
    exact = [partitions * capacity / total for capacity in capacities]
    shares = [math.floor(share + 1e-9) for share in exact]
    left = partitions - sum(shares)
    wants = sorted(range(len(shares)), key=lambda at: (owned[at] <= shares[at], owned[at] - exact[at], at))
    for at in wants[:left]:
        shares[at] += 1
    return shares


def _given_away(at: int, owner: Owners, scores: Scores, room: Owners) -> Owners:
    kept = np.flatnonzero(owner == at)
    others = scores[room > 0][:, kept].max(axis=0) if (room > 0).any() else np.zeros(len(kept))
    return kept[np.argsort(scores[at, kept] - others, kind="stable")[: -room[at]]]


def _assign_free(owner: Owners, scores: Scores, room: list[int]) -> None:
    free = np.flatnonzero(owner < 0)
    best_first = np.argsort(-scores[:, free], axis=0).T.tolist()
    for partition, nodes in zip(free, best_first, strict=True):
        owner[partition] = at = next(at for at in nodes if room[at] > 0)
        room[at] -= 1


@lru_cache(NAMES_CACHED)
def _scores(name: str, capacity: float, partitions: int) -> Scores:
    """Return weighted rendezvous scores: -capacity / ln(u), with u in (0, 1) by name and partition."""
    hashed = [mmh3.hash64(f"{name}/{partition}", signed=False)[0] for partition in range(partitions)]
    return -capacity / np.log((np.array(hashed, dtype=np.float64) + 0.5) / 2.0**64)


def write_ranges(partitions: Iterable[int]) -> str:
    ranges: list[list[int]] = []
    for partition in sorted(partitions):
        if ranges and ranges[-1][1] == partition - 1:
            ranges[-1][1] = partition
        else:
            ranges.append([partition, partition])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def read_ranges(text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)
