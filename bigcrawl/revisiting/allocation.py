"""How often to visit each page, so that a given number of visits keeps the pages as fresh as possible.

A page with change rate r and f visits a second is fresh for (1 - exp(-r / f)) / (r / f) of the time. The sum over all
pages is largest when one more visit gains the same everywhere. This gain is the price of a visit, which nodes share. A
page with a rate above 1 / price gets no visits.

Source: Cho and Garcia-Molina, Effective Page Refresh Policies for Web Crawlers (ACM TODS 28(4), 2003), §4.
"""

from __future__ import annotations

from math import exp, floor, log2, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_STEPS = 60
_SMALL = 1e-4  # below it, a series is more accurate


def frequency_at(rate: float, price: float) -> float:
    """Return the visits per second worth paying for a page of `rate` changes per second at a positive price; or 0.0."""
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
    """Return the price at which pages get `mean_frequency` visits on average; `weights` pages have each rate."""
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


FORGET_AFTER = 20_000
PRICED_AGAIN_AFTER = 500  # visits, in which the price moves by a few percent at most
KNOWN_FROM = 50  # visits; with fewer, one odd page would decide

_PER_OCTAVE = 4
_SLOWEST = -32  # binary logarithm: a change in 136 years
_BINS = _PER_OCTAVE * 36  # up to 16 changes a second
_RATES = [2 ** (_SLOWEST + (bin_ + 0.5) / _PER_OCTAVE) for bin_ in range(_BINS)]


class RateSample:
    """Rates in bins of a quarter of an octave; half of all weight is dropped every `FORGET_AFTER` visits."""

    def __init__(self) -> None:
        self._weights = [0.0] * _BINS
        self._noted = 0
        self._since_halved = 0
        self._priced_at = -PRICED_AGAIN_AFTER
        self._price = 0.0
        self._mean_frequency = 0.0

    @property
    def is_known(self) -> bool:
        return self._noted >= KNOWN_FROM

    def add_rate(self, rate: float, since_s: float) -> None:
        bin_ = floor((log2(rate) - _SLOWEST) * _PER_OCTAVE)
        self._weights[min(max(bin_, 0), _BINS - 1)] += max(since_s, 1.0)
        self._noted += 1
        self._since_halved += 1
        if self._since_halved >= FORGET_AFTER:
            self._weights = [weight / 2 for weight in self._weights]
            self._since_halved = 0

    def median(self) -> float:
        """Return the rate of the median page; meaningless unless `is_known`."""
        left = sum(self._weights) / 2
        for rate, weight in zip(_RATES, self._weights, strict=True):
            left -= weight
            if left <= 0:
                return rate
        return _RATES[-1]

    def price(self, mean_frequency: float) -> float:
        if self._noted - self._priced_at >= PRICED_AGAIN_AFTER or mean_frequency != self._mean_frequency:
            self._price = price_of(_RATES, self._weights, mean_frequency)
            self._priced_at, self._mean_frequency = self._noted, mean_frequency
        return self._price
