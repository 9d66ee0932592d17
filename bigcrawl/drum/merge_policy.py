"""The merge policy: runs grow in tiers, so that a key is rewritten per tier, not per batch as in IRLbot §4.3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.drum.memtable import MEMTABLE_KEYS_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

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
