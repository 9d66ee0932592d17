"""How visits are divided among pages."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchmarks.recrawl.simulation import freshness
from bigcrawl.revisiting.allocation import frequency_at, price_of

RATES = st.lists(st.floats(1e-8, 1e-1), min_size=2, max_size=12)


def total(rates: list[float], frequencies: list[float]) -> float:
    return sum(map(freshness, rates, frequencies))


@given(RATES, st.floats(1e-7, 1e-2))
def test_all_visits_are_used_and_no_more(rates: list[float], mean: float) -> None:
    """The frequencies at the price add up to the visits that there are."""
    price = price_of(rates, [1.0] * len(rates), mean)
    frequencies = [frequency_at(rate, price) for rate in rates]
    assert sum(frequencies) <= mean * len(rates) * (1 + 1e-6)
    assert total(rates, frequencies) >= 0


@given(RATES, st.floats(1e-6, 1e-3), st.integers(0, 11), st.integers(0, 11))
def test_no_shift_between_two_pages_gains_anything(rates: list[float], mean: float, one: int, other: int) -> None:
    """The allocation is optimal: a hundredth of the visits moved from any page to any other loses freshness."""
    one, other = one % len(rates), other % len(rates)
    assume(one != other)
    price = price_of(rates, [1.0] * len(rates), mean)
    best = [frequency_at(rate, price) for rate in rates]
    assume(sum(best) > 0.999 * mean * len(rates))
    moved = best.copy()
    shift = 0.01 * moved[one]
    moved[one] -= shift
    moved[other] += shift
    assert total(rates, moved) <= total(rates, best) + 1e-9


def test_it_is_fresher_than_equal_and_than_proportional_visits() -> None:
    """Visits in proportion to the rates are worse than equal ones, and these are worse than the allocation."""
    rates = [1e-6 * 2**step for step in range(12)]
    mean = 1e-4
    price = price_of(rates, [1.0] * 12, mean)
    best = total(rates, [frequency_at(rate, price) for rate in rates])
    equal = total(rates, [mean] * 12)
    proportional = total(rates, [rate * mean * 12 / sum(rates) for rate in rates])
    assert best > 1.03 * equal > 1.03 * proportional


def test_weights_count_as_pages() -> None:
    """A group of three pages is the same as three groups of one."""
    assert price_of([1e-4, 1e-5], [3, 1], 1e-5) == pytest.approx(price_of([1e-4] * 3 + [1e-5], [1] * 4, 1e-5))


def test_pages_that_never_change_need_no_visits_and_those_beyond_the_price_get_none() -> None:
    """Both ends of the scale get none, and a web without changes has no price."""
    assert frequency_at(0.0, 1.0) == frequency_at(2.0, 1.0) == 0.0
    assert price_of([0.0, 0.0], [1, 1], 1.0) == 0.0
