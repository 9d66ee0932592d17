"""When a crawl is too slow to go on."""

from __future__ import annotations

import math

from bigcrawl.config import CloseRateConfig
from bigcrawl.scheduler.node.progress import GAP_MS_MAX, SAMPLES, CloseRate

SPAN_MS = 600_000
LIMIT = 2.0


def slow_since(closing: CloseRate, begin_ms: int, rates: list[float], *, allowed: float = math.inf) -> list[bool]:
    """What is found at each second, while the crawl goes at these rates."""
    return [closing.record_rate(begin_ms + 1_000 * at, rate, allowed) for at, rate in enumerate(rates)]


def test_only_a_whole_span_below_the_rate_counts() -> None:
    """Not a moment earlier; pages at the beginning of the span count as those at its end."""
    closing = CloseRate(CloseRateConfig(LIMIT, SPAN_MS))
    found = slow_since(closing, 5_000, [1.9] * 700)
    assert found.index(True) == SPAN_MS // 1_000
    closing = CloseRate(CloseRateConfig(LIMIT, SPAN_MS))
    found = slow_since(closing, 5_000, [0.0] * 590 + [300.0] * 10 + [0.0] * 700)
    assert 1_180 <= found.index(True) <= 1_220, "once the burst is older than the span"


def test_crawl_at_the_rate_or_without_one_goes_on() -> None:
    """At the limit, and for ever at its default of 0."""
    assert not any(slow_since(CloseRate(CloseRateConfig(LIMIT, SPAN_MS)), 0, [2.0] * 1_500))
    assert not CloseRate(CloseRateConfig(0.0, SPAN_MS)).is_on
    assert not any(slow_since(CloseRate(CloseRateConfig(0.0, SPAN_MS)), 0, [0.0] * 1_500))


def test_time_in_which_it_must_not_be_faster_does_not_count() -> None:
    """After a pause, a lower speed or a silence the span begins anew."""
    for allowed in (0.0, LIMIT):
        closing = CloseRate(CloseRateConfig(LIMIT, SPAN_MS))
        assert not any(slow_since(closing, 0, [0.0] * 599))
        assert not any(slow_since(closing, 599_000, [0.0] * 800, allowed=allowed))
        assert slow_since(closing, 1_399_000, [0.0] * 700).index(True) in (599, 600)
    closing = CloseRate(CloseRateConfig(LIMIT, SPAN_MS))
    assert not any(slow_since(closing, 0, [0.0] * 599))
    assert not any(slow_since(closing, 599_000 + GAP_MS_MAX, [0.0] * 599))


def test_few_samples_are_kept() -> None:
    """However long the crawl, and however often it is looked at."""
    closing = CloseRate(CloseRateConfig(LIMIT, SPAN_MS))
    for at in range(100_000):
        closing.record_rate(at * 100, 5.0, math.inf)
    assert len(closing._samples) <= SAMPLES + 2
