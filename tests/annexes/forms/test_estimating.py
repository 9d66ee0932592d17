"""Capture and recapture: answers known by hand, and by drawing from populations of known size."""

from __future__ import annotations

import math
from collections import Counter
from random import Random

import pytest

from bigcrawl_forms.selecting import Total, estimate_total


def test_estimate_is_chaos() -> None:
    """By hand: 100 found, 30 once, 14 twice, by 10 queries: 100 + 0.9 * 30 * 29 / (2 * 15) = 126.1."""
    total = estimate_total(100, 30, 14, 10)
    assert total.value == pytest.approx(126.1)
    variance = 26.1 + 0.81 * 30 * 59**2 / 900 + 0.81 * 900 * 14 * 29**2 / (4 * 15**4)
    spread = math.exp(1.96 * math.sqrt(math.log(1 + variance / 26.1**2)))
    assert total.low == pytest.approx(100 + 26.1 / spread)
    assert total.high == pytest.approx(100 + 26.1 * spread)


def test_nothing_is_left_where_all_records_were_found_again() -> None:
    assert estimate_total(50, 0, 3, 20) == Total(50, 50, 50)
    assert estimate_total(50, 1, 3, 20) == Total(50, 50, 51)


@pytest.mark.parametrize(("found", "queries"), [(0, 0), (0, 9), (7, 1)])
def test_one_query_says_nothing_of_the_rest(found: int, queries: int) -> None:
    assert estimate_total(found, found, 0, queries) == Total(found, found, math.inf)


def test_interval_covers_the_truth() -> None:
    """Of a hundred draws of equally likely records, at least 90."""
    dice = Random(4)
    covered = 0
    for _ in range(100):
        times = Counter(record for _ in range(20) for record in dice.sample(range(500), 25))
        often = Counter(times.values())
        total = estimate_total(len(times), often[1], often[2], 20)
        covered += total.low <= 500 <= total.high
        assert total.low >= len(times)
    assert covered >= 90
