from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.drum.memtable import MEMTABLE_KEYS_MAX
from bigcrawl.drum.record_merge import FAN_IN, runs_to_merge

TIERS = [2 * MEMTABLE_KEYS_MAX * FAN_IN**tier for tier in range(8)]  # keys from which on a run is in tier 1, 2, ...
FIRST, SECOND = TIERS[:2]


@pytest.mark.parametrize(
    ("counts", "added", "merged"),
    [
        ([], 1, 0),
        ([1, 1], 1, 0),
        ([1, 1, 1], 1, 3),
        ([1, FIRST - 1, 1], 1, 3),  # of one tier, though as unlike as can be
        ([FIRST] * 3, FIRST - 1, 0),
        ([FIRST] * 3, FIRST, 3),
        ([SECOND] * 3, SECOND - 1, 0),
        ([SECOND] * 3, SECOND, 3),
        ([1, 1, 1], FIRST, 3),  # smaller runs join a larger one
        ([1, 1, FIRST, 1], 1, 0),  # older ones behind a larger run are out of reach
        ([1, FIRST, 1, 1, 1], 1, 3),
        ([FIRST, FIRST, FIRST, 1, 1, 1], 1, 3),  # four keys are still of tier 0
        ([FIRST, FIRST, FIRST, FIRST // 4, FIRST // 4, FIRST // 4], FIRST // 4, 6),  # together of tier 1, then of 2
        ([SECOND] * 3 + [FIRST] * 3 + [FIRST // 4] * 3, FIRST // 4, 9),
        ([SECOND] * 3 + [FIRST] * 2 + [FIRST // 4] * 3, FIRST // 4, 3),
        ([SECOND] * 3 + [1, 1, FIRST] + [3 * FIRST // 4] * 3, FIRST // 4, 6),  # each run counts once
    ],
)  # fmt: skip
def test_four_runs_of_a_tier_become_one_of_the_next(counts: list[int], added: int, merged: int) -> None:
    """The merged run may be the fourth of its tier, and so on. An older run is never merged before a newer one."""
    assert runs_to_merge(counts, added) == merged


@given(st.lists(st.integers(MEMTABLE_KEYS_MAX + 1, 30_000), max_size=200))
def test_few_runs_exist_and_keys_are_rewritten_seldom(batches: list[int]) -> None:
    """Runs stay below eight a tier; a key is rewritten some times a tier, not once a batch."""
    counts: list[int] = []
    rewritten = 0
    for added in batches:
        merged = runs_to_merge(counts, added)
        total = added + sum(counts[len(counts) - merged :])
        rewritten += total - added
        counts = [*counts[: len(counts) - merged], total]
    tiers = 2 + int(np.searchsorted(TIERS, sum(counts), side="right"))
    assert len(counts) <= (FAN_IN - 1) * tiers
    assert rewritten <= sum(batches) * 2 * tiers
