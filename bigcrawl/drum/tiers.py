"""Which runs of a bucket are merged when, and the merging of ascending records, chunk by chunk.

Source: IRLbot §4.3 merges each batch into one cache file; runs of growing tiers, as in LSM trees, rewrite a key
once a tier instead of once a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.drum.format import Records
from bigcrawl.drum.fresh import FRESH_KEYS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.drum.run import Keep, KeyMask

# Four runs of a tier become one of the next: a key is rewritten once a tier, 20 ns, and a lookup, 40 us a run
# and 3 us a key, meets at most three runs a tier (six tiers at 8 M keys a partition).
FAN_IN = 4

# Runs of fewer keys are one tier.
_SMALL_KEYS = 2 * FRESH_KEYS_MAX


def runs_to_merge(counts: Sequence[int], added: int) -> int:
    """Return how many of the newest runs to merge into a new run of `added` keys.

    Args:
        counts: keys of each run, oldest first.
        added: keys of the new run.
    """
    merged, total = 0, added
    while True:
        tier = _tier(total)
        alike = 0
        for count in reversed(counts[: len(counts) - merged]):
            if _tier(count) > tier:
                break
            alike += 1
        if alike + 1 < FAN_IN:
            return merged
        total += sum(counts[len(counts) - merged - alike : len(counts) - merged])
        merged += alike


def _tier(count: int) -> int:
    tier, limit = 0, _SMALL_KEYS
    while count >= limit:
        tier, limit = tier + 1, limit * FAN_IN
    return tier


def merge_ascending(sources: Sequence[Iterator[Records]]) -> Iterator[Records]:
    """Merge sources of ascending chunks into ascending chunks; of a key in several, the last source's stays.

    Holds one chunk of each source: each round hands out all keys up to the smallest last key held. In a set no
    key may be in two sources.
    """
    heads = [(chunk, source) for source in sources if (chunk := _next_filled(source)) is not None]
    while heads:
        bound = min(chunk.keys[-1] for chunk, _ in heads)
        parts: list[Records] = []
        rest: list[tuple[Records, Iterator[Records]]] = []
        for chunk, source in heads:
            cut = int(chunk.keys.searchsorted(bound, side="right"))
            parts.append(_slice(chunk, 0, cut))
            left = _slice(chunk, cut, None) if cut < len(chunk.keys) else _next_filled(source)
            if left is not None:
                rest.append((left, source))
        heads = rest
        yield newest_of(*parts)


def newest_of(*parts: Records) -> Records:
    """Return the records of ascending parts in one; of a key in several, the last one's."""
    keys = np.concatenate([part.keys for part in parts])
    # Stable sorting of 64-bit keys finds the ascending stretches and merges them.
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


def _slice(records: Records, start: int, end: int | None) -> Records:
    return Records(records.keys[start:end], records.values[start:end] if records.values is not None else None)


def _masked(records: Records, mask: KeyMask) -> Records:
    return Records(records.keys[mask], records.values[mask] if records.values is not None else None)


def kept_of(records: Records, keep: Keep) -> Records:
    return _masked(records, keep(*records))


def rest_of(records: Records, unwanted: KeyArray) -> Records:
    places = unwanted.searchsorted(records.keys)
    return _masked(records, unwanted.take(places, mode="clip") != records.keys)
