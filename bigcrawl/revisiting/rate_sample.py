"""The change rates of the pages that this node visited recently, weighted by the time between visits."""

from __future__ import annotations

from math import floor, log2

from bigcrawl.revisiting.allocation import price_of

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
