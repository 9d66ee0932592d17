"""The merge policy: when which runs of a bucket are merged.

Source: IRLbot §4.3 merges each batch into one cache file. Runs in growing tiers, as in LSM trees, rewrite a key once a
tier instead of once a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.drum.memtable import MEMTABLE_KEYS_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

# Four runs of a tier become one of the next. A key is rewritten once a tier, 20 ns. A lookup, 40 us a run and 3 us a
# key, meets at most three runs a tier (six tiers at 8 M keys a partition).
FAN_IN = 4

# All runs with fewer keys form one tier.
_SMALL_KEYS = 2 * MEMTABLE_KEYS_MAX


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
