"""Heavy-tailed shares and ranks, computed in O(1) without a table.

Rank r has a weight of about (r + 1) ** -exponent.

Randomness as a pure function of integers, the same on any machine and in any process.
"""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect_right
from math import gcd
from typing import Final

_MASK: Final = 2**64 - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15  # 2^64 / golden ratio: spreads consecutive integers far apart
_PACK: Final = struct.Struct("<QQQQ").pack


def mix_bits(number: int) -> int:
    """Return a 64-bit integer that looks random; a bijection modulo 2^64, the finaliser of splitmix64."""
    number = (number + _GOLDEN) & _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)


def random_words(layout: struct.Struct, seed: int, purpose: int, host: int = 0, number: int = 0) -> tuple[int, ...]:
    """Return unsigned integers in a layout such as ``struct.Struct("<60I")``, for a key modulo 2^64.

    Cost: 1 µs, and another for every 170 bytes; seeding a `random.Random` would cost more than a page.
    """
    key = _PACK(seed & _MASK, purpose & _MASK, host & _MASK, number & _MASK)
    return layout.unpack(hashlib.shake_128(key).digest(layout.size))


class PowerLaw:
    """Weights of `count` ranks, for 0 < exponent < 1; rank 0 is the heaviest.

    A rank exponent of s gives sizes with a density of about size ** -(1 + 1/s).
    """

    def __init__(self, count: int, exponent: float) -> None:
        self._count = count
        self._power = 1 - exponent
        self._whole = (1 + count) ** self._power - 1

    def rank(self, unit: float) -> int:
        """Return the rank at the fraction `unit` of the cumulative weight, 0 <= unit < 1."""
        return min(self._count - 1, int((1 + unit * self._whole) ** (1 / self._power)) - 1)

    def sum_before(self, rank: int, total: int) -> int:
        """Return the sum of the shares of the ranks before `rank`; each share is at least 1; total >= count."""
        share = ((1 + rank) ** self._power - 1) / self._whole
        return rank + int((total - self._count) * share) if rank < self._count else total

    def share(self, rank: int, total: int) -> int:
        """Return the share of `total` that `rank` gets. All shares add up to exactly `total`."""
        return self.sum_before(rank + 1, total) - self.sum_before(rank, total)

    def rank_at(self, position: int, total: int) -> int:
        return bisect_right(range(self._count), position, key=lambda rank: self.sum_before(rank, total)) - 1


class ScatteredOrder:
    def __init__(self, seed: int, count: int) -> None:
        self._count = count
        factor = mix_bits(seed) % count or 1
        while gcd(factor, count) != 1:
            factor += 1
        self._factor, self._shift = factor, mix_bits(seed + 1) % count
        self._inverse = pow(factor, -1, count) if count > 1 else 0

    def place(self, number: int) -> int:
        return (number * self._factor + self._shift) % self._count

    def number(self, place: int) -> int:
        return (place - self._shift) * self._inverse % self._count
