from __future__ import annotations

import pytest

from bigcrawl.politeness.backoff_policy import DelayPolicy, host_delay_ms, retry_backoff_ms, scaled_delay_ms

POLICY = DelayPolicy(minimum_ms=1_000, crawl_delay_cap_ms=30_000, download_factor=10.0)


@pytest.mark.parametrize(
    ("crawl_delay_ms", "download_ms", "backoff_ms", "delay_ms"),
    [
        (None, 0, 0, 1_000),
        (None, 50, 0, 1_000),
        (None, 150, 0, 1_500),
        (5_000, 150, 0, 5_000),
        (0, 0, 0, 1_000),
        (86_400_000, 0, 0, 30_000),
        (86_400_000, 4_000, 0, 40_000),
        (5_000, 150, 120_000, 120_000),
    ],
)
def test_the_largest_reason_to_wait_wins(
    crawl_delay_ms: int | None, download_ms: int, backoff_ms: int, delay_ms: int
) -> None:
    """Minimum, capped Crawl-delay, multiple of the download time, back-off: the largest counts alone."""
    found = host_delay_ms(POLICY, crawl_delay_ms=crawl_delay_ms, download_ms=download_ms, backoff_ms=backoff_ms)
    assert found == delay_ms


def test_a_factor_of_zero_turns_the_download_time_off() -> None:
    """By default only the minimum and what the host asks for count."""
    assert host_delay_ms(DelayPolicy(), crawl_delay_ms=None, download_ms=60_000) == 1_000


def test_nothing_to_wait_for_is_no_wait() -> None:
    """Without a minimum a host that asks for nothing is asked at once."""
    assert host_delay_ms(DelayPolicy(minimum_ms=0), crawl_delay_ms=None, download_ms=60_000) == 0


def test_slow_download_is_answered_by_a_longer_rest() -> None:
    """Beyond the bound ten times the excess, up to ten minutes; at or below it nothing, and 0 turns it off."""
    policy = DelayPolicy(slow_after_ms=5_000)
    found = [host_delay_ms(policy, crawl_delay_ms=None, download_ms=took) for took in (5_000, 5_001, 8_000, 10**9)]
    assert found == [1_000, 1_000, 30_000, 600_000]
    assert host_delay_ms(DelayPolicy(slow_after_ms=1), crawl_delay_ms=None, download_ms=1_001) == 10_000


@pytest.mark.parametrize(
    ("budget", "delay_ms"), [(0, 4_000), (10, 4_000), (11, 3_637), (20, 2_000), (80, 500), (10_000, 500)]
)
def test_delay_shrinks_as_a_budget_grows(budget: int, delay_ms: int) -> None:
    """In proportion beyond the base, rounded up, and down to the floor."""
    assert scaled_delay_ms(4_000, 500, budget, 10) == delay_ms


def test_a_floor_above_the_delay_scales_nothing() -> None:
    """The delay is what was set, and no more."""
    assert scaled_delay_ms(400, 500, 20, 10) == 400


def test_backoff_doubles_up_to_its_bound() -> None:
    """The first two numbers of attempts give the first wait, each further one twice the last."""
    waits = [retry_backoff_ms(attempts, 0.0, first_ms=100, longest_ms=1_000) for attempts in range(7)]
    assert waits == [100, 100, 200, 400, 800, 1_000, 1_000]
    assert retry_backoff_ms(10**9, 0.0) == 3_600_000


def test_jitter_only_lengthens_and_by_half_at_most() -> None:
    """No jitter is the plain wait; full jitter is half as long again, also at the bound."""
    assert retry_backoff_ms(1, 0.0) == 60_000
    assert retry_backoff_ms(1, 0.5) == 75_000
    assert retry_backoff_ms(99, 1.0) == 5_400_000
