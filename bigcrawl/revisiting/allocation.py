"""How often to visit each page, so that a given number of visits keeps the pages as fresh as possible.

A page with change rate r and f visits a second is fresh for (1 - exp(-r / f)) / (r / f) of the time. The sum over all
pages is largest when one more visit gains the same everywhere. This gain is the price of a visit, which nodes share. A
page with a rate above 1 / price gets no visits.

Source: Cho and Garcia-Molina, Effective Page Refresh Policies for Web Crawlers (ACM TODS 28(4), 2003), §4.
"""

from __future__ import annotations

from math import exp, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_STEPS = 60
_SMALL = 1e-4  # below it, a series is more accurate


def frequency_at(rate: float, price: float) -> float:
    """Return the visits a second that a page of `rate` changes a second is worth at a positive price; 0.0 for none."""
    gain = rate * price
    if rate <= 0 or gain >= 1:
        return 0.0
    low, high = 0.0, max(1.0, 2 * sqrt(2 * gain))
    while _freshness_gain(high) < gain:
        high *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _freshness_gain(middle) < gain:
            low = middle
        else:
            high = middle
    return rate / high if high else 0.0


def _freshness_gain(ratio: float) -> float:
    if ratio < _SMALL:
        return ratio * ratio / 2 - ratio**3 / 3
    return 1 - exp(-ratio) * (1 + ratio)


def price_of(rates: Sequence[float], weights: Sequence[float], mean_frequency: float) -> float:
    """Return the cost of a visit at which pages get `mean_frequency` visits each: `weights` pages have each rate."""
    groups = [(rate, weight) for rate, weight in zip(rates, weights, strict=True) if rate > 0 and weight > 0]
    if not groups:
        return 0.0
    wanted = mean_frequency * sum(weights)
    low, high = 0.0, 2 / min(rate for rate, _ in groups)  # at the high price, no page is visited
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if sum(weight * frequency_at(rate, middle) for rate, weight in groups) > wanted:
            low = middle
        else:
            high = middle
    return high
