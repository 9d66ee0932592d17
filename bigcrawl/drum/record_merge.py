"""Which runs are merged, and how.

Runs grow in tiers, so that a key is rewritten per tier, not per batch as in IRLbot §4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.drum.format import Records
from bigcrawl.drum.memtable import MEMTABLE_KEYS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bigcrawl.drum.format import KeyArray, KeyMask
    from bigcrawl.drum.run import Keep

# Four runs of a tier become one of the next: a look-up reads at most three runs per tier.
FAN_IN = 4

# All runs with fewer keys form one tier.
_SMALL_KEYS = 2 * MEMTABLE_KEYS_MAX


def runs_to_merge(counts: Sequence[int], added: int) -> int:
    """Return how many of the newest runs to merge into a new run of `added` keys; `counts` are oldest first."""
    merged, total = 0, added
    while True:
        tier = _tier_of(total)
        alike = 0
        for count in reversed(counts[: len(counts) - merged]):
            if _tier_of(count) > tier:
                break
            alike += 1
        if alike + 1 < FAN_IN:
            return merged
        total += sum(counts[len(counts) - merged - alike : len(counts) - merged])
        merged += alike


def _tier_of(count: int) -> int:
    tier, limit = 0, _SMALL_KEYS
    while count >= limit:
        tier, limit = tier + 1, limit * FAN_IN
    return tier


def merge_ascending(sources: Sequence[Iterator[Records]]) -> Iterator[Records]:
    """Merge sources of ascending chunks; of a key's records, the last source's wins. In a set, none may share a key."""
    heads = [(chunk, source) for source in sources if (chunk := _next_filled(source)) is not None]
    while heads:
        bound = min(chunk.keys[-1] for chunk, _ in heads)
        parts: list[Records] = []
        rest: list[tuple[Records, Iterator[Records]]] = []
        for chunk, source in heads:
            cut = int(chunk.keys.searchsorted(bound, side="right"))
            parts.append(_slice_records(chunk, 0, cut))
            left = _slice_records(chunk, cut, None) if cut < len(chunk.keys) else _next_filled(source)
            if left is not None:
                rest.append((left, source))
        heads = rest
        yield newest_of(*parts)


def newest_of(*parts: Records) -> Records:
    """Merge ascending parts into one; of a key's records, the one in the last part wins."""
    keys = np.concatenate([part.keys for part in parts])
    # A stable sort merges the ascending parts.
    if parts[-1].values is None:
        keys.sort(kind="stable")
        return Records(keys, None)
    order = keys.argsort(kind="stable")
    keys = keys[order]
    last = np.ones(len(keys), dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=last[:-1])
    values = np.concatenate([part.values for part in parts if part.values is not None])
    return Records(keys[last], values[order[last]])


def _next_filled(source: Iterator[Records]) -> Records | None:
    return next((chunk for chunk in source if len(chunk.keys)), None)


def _slice_records(records: Records, start: int, end: int | None) -> Records:
    return Records(records.keys[start:end], records.values[start:end] if records.values is not None else None)


def _select_records(records: Records, mask: KeyMask) -> Records:
    return Records(records.keys[mask], records.values[mask] if records.values is not None else None)


def kept_of(records: Records, keep: Keep) -> Records:
    return _select_records(records, keep(*records))


def rest_of(records: Records, unwanted: KeyArray) -> Records:
    places = unwanted.searchsorted(records.keys)
    return _select_records(records, unwanted.take(places, mode="clip") != records.keys)
