"""The memory curve: minute 5 against the end."""

from __future__ import annotations

import pytest

from benchmarks.memory import Sample, curve


def run(minutes: int, megabytes_at: dict[int, float]) -> list[Sample]:
    """A sample each ten seconds; memory is that of the last minute that is named."""
    samples = []
    for at_s in range(0, 60 * minutes + 1, 10):
        named = max(minute for minute in megabytes_at if 60 * minute <= at_s)
        samples.append(Sample(at_s, int(megabytes_at[named] * 1e6), 0, 0))
    return samples


def test_growth_before_minute_five_is_no_growth() -> None:
    found = curve(run(30, {0: 50, 2: 150}), 30)
    assert (found.early_s, found.early_mb, found.late_mb) == (300, 150, 150)
    assert found.growth == pytest.approx(0)
    assert found.mb_an_hour == pytest.approx(0)


def test_growth_is_the_last_minute_over_minute_five() -> None:
    assert curve(run(30, {0: 100, 28: 120}), 30).growth == pytest.approx(0.2)


def test_slope_is_in_megabytes_an_hour() -> None:
    samples = [Sample(at_s, int((100 + at_s / 60) * 1e6), 0, 0) for at_s in range(0, 1801, 10)]
    assert curve(samples, 30).mb_an_hour == pytest.approx(60, abs=0.01)


def test_a_short_run_is_judged_from_a_sixth_on() -> None:
    assert curve(run(6, {0: 10, 1: 100}), 6).early_s == 60


def test_a_run_that_broke_off_has_no_curve() -> None:
    with pytest.raises(ValueError, match="a curve needs two"):
        curve(run(4, {0: 100}), 30)
