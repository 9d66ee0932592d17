"""The estimate of how often a page changes."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.revisiting.change_rate import COMPARISONS_MAX, History, change_rate, with_comparison


def history_of(comparisons: list[tuple[int, bool]]) -> History:
    history: History = ()
    for interval_s, changed in comparisons:
        history = with_comparison(history, interval_s, changed=changed)
    return history


@pytest.mark.parametrize(("visits", "changes"), [(30, 13), (5, 5), (40, 1)])
def test_one_interval_gives_the_known_formula(visits: int, changes: int) -> None:
    """With equal intervals the estimate is that of Cho and Garcia-Molina."""
    history = history_of([(100, at < changes) for at in range(visits)])
    assert change_rate(history) == pytest.approx(-math.log((visits - changes + 0.5) / (visits + 0.5)) / 100, rel=1e-3)


def test_a_page_that_never_changed_has_no_rate() -> None:
    """Without a change there is nothing to estimate, nor without a second visit."""
    assert change_rate(()) == change_rate(history_of([(100, False)] * 9)) == 0.0


@pytest.mark.parametrize("intervals", [(1_000,), (500, 1_000, 2_000), (250, 4_000)])
def test_missed_changes_are_corrected_for(intervals: tuple[int, ...]) -> None:
    """Over many pages with 30 comparisons each the estimate has no bias worth mentioning, whatever the intervals."""
    dice, rate = random.Random(1), 1e-3
    estimates = []
    for _ in range(300):
        chosen = [dice.choice(intervals) for _ in range(30)]
        estimates.append(change_rate(history_of([(s, dice.random() < 1 - math.exp(-rate * s)) for s in chosen])))
    assert sum(estimates) / len(estimates) == pytest.approx(rate, rel=0.06)


@given(st.lists(st.tuples(st.integers(0, 1 << 40), st.booleans()), max_size=300))
def test_a_history_stays_small_and_its_rate_lies_between_bounds(comparisons: list[tuple[int, bool]]) -> None:
    """Any history is bounded, and its rate is a number between those of its longest and its shortest interval."""
    history = history_of(comparisons)
    assert sum(group.made for group in history) <= COMPARISONS_MAX
    assert all(0 <= group.changes <= group.made for group in history)
    assert [group.octave for group in history] == sorted({group.octave for group in history})
    rate = change_rate(history)
    changes, seconds = sum(group.changes for group in history), sum(group.seconds for group in history)
    assert (rate > 0) == (changes > 0)
    if changes:
        assert changes / (1.5 * seconds) * 0.999 <= rate <= 2 * changes * len(history) * 64


def test_the_past_is_outweighed() -> None:
    """A page that has stopped changing is found to be slower and slower."""
    history = history_of([(100, True)] * 100)
    before = change_rate(history)
    for _ in range(200):
        history = with_comparison(history, 100, changed=False)
    assert change_rate(history) < before / 50
