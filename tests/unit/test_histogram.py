"""Buckets of times."""

from __future__ import annotations

from bisect import bisect_right

from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.histogram import BOUNDS_S, Histogram


@given(st.lists(st.integers(-5, 10**9)))
def test_a_time_is_in_the_first_bucket_whose_bound_is_above_it(times_ms: list[int]) -> None:
    """Times are rounded down to ms, so one of 8 ms is not below the bound of 8 ms; negative ones count as 0."""
    histogram = Histogram()
    expected = [0] * (len(BOUNDS_S) + 1)
    for ms in times_ms:
        histogram.count_ms(ms)
        expected[bisect_right(BOUNDS_S, max(0, ms) / 1000)] += 1
    assert histogram.counts == expected
    assert histogram.sum_ms == sum(max(0, ms) for ms in times_ms)
