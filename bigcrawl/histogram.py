"""Counts durations in buckets, cheaply enough for every page."""

from __future__ import annotations

from typing import Final

BOUNDS_S: Final = tuple((1 << bits) / 1000 for bits in range(3, 18))
"""Upper bounds of the buckets in seconds, doubling from 8 ms to 131 s. The last bucket has none."""

_FIRST: Final = 3  # bits of the longest time in the first bucket: 7 ms
_BITS_MAX: Final = 64  # more than any clock has


class Histogram:
    def __init__(self) -> None:
        self._by_bits = [0] * (_BITS_MAX + 1)
        self.sum_ms = 0

    def __repr__(self) -> str:
        return f"<Histogram of {sum(self.counts)} times, {self.sum_ms} ms>"

    def count_ms(self, ms: int) -> None:
        """Count a time in whole ms, a negative one as 0. Only one thread may write."""
        if ms > 0:
            self._by_bits[ms.bit_length()] += 1
            self.sum_ms += ms
        else:
            self._by_bits[0] += 1

    @property
    def counts(self) -> list[int]:
        first, last = _FIRST + 1, _FIRST + len(BOUNDS_S)
        found = self._by_bits
        return [sum(found[:first]), *found[first:last], sum(found[last:])]
