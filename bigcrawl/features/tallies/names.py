"""Counts names in bounded memory: how many are distinct, which are frequent, and a uniform sample.

The number of distinct ones is that of HyperLogLog. Source: Flajolet et al., *HyperLogLog* (2007), with the estimator of
Ertl, *New cardinality estimation algorithms* (2017), which has no bias at any size.

The sample, by hash, has the exact count of each. Source: Gibbons, *Distinct sampling* (2001).
"""

from __future__ import annotations

import hashlib
from math import sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.exceptions import BigcrawlError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

INDEX_BITS: Final = 12
REGISTERS: Final = 1 << INDEX_BITS
_REST_BITS: Final = 64 - INDEX_BITS
_REST_MASK: Final = (1 << _REST_BITS) - 1
_RANK_MAX: Final = _REST_BITS + 1
_AT_INFINITY: Final = 0.721347520444481703680  # 1 / (2 ln 2)
RECENT_MAX: Final = 8_192


class DistinctFormatError(BigcrawlError):
    pass


def hash_of(name: str) -> int:
    """Return a 64-bit hash of a name that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


class DistinctCounter:
    """Counts distinct names in 4 KB, with a standard error of 1.6 %; up to a few hundred, almost exactly."""

    def __init__(self, registers: bytes = bytes(REGISTERS)) -> None:
        if len(registers) != REGISTERS or max(registers) > _RANK_MAX:
            raise DistinctFormatError(f"a counter of distinct names has {len(registers)} bytes instead of {REGISTERS}")
        self._registers = bytearray(registers)
        self._recent: set[str] = set()

    def add(self, name: str) -> None:
        recent = self._recent
        if name in recent:
            return
        if len(recent) >= RECENT_MAX:
            recent.clear()
        recent.add(name)
        bits = hash_of(name)
        index, rank = bits >> _REST_BITS, _RANK_MAX - (bits & _REST_MASK).bit_length()
        self._registers[index] = max(self._registers[index], rank)

    def add_all(self, other: DistinctCounter) -> None:
        self._registers = bytearray(map(max, self._registers, other.to_bytes()))

    @property
    def count(self) -> int:
        with_rank = [0] * (_RANK_MAX + 1)
        for rank in self._registers:
            with_rank[rank] += 1
        if with_rank[0] == REGISTERS:
            return 0
        total = REGISTERS * _tau(1 - with_rank[_RANK_MAX] / REGISTERS)
        for rank in range(_REST_BITS, 0, -1):
            total = 0.5 * (total + with_rank[rank])
        total += REGISTERS * _sigma(with_rank[0] / REGISTERS)
        return round(_AT_INFINITY * REGISTERS * REGISTERS / total)

    def to_bytes(self) -> bytes:
        return bytes(self._registers)


def _sigma(x: float) -> float:
    factor, total = 1.0, x
    while True:
        x *= x
        before = total
        total += x * factor
        factor += factor
        if total == before:
            return total


def _tau(x: float) -> float:
    if x in (0.0, 1.0):
        return 0.0
    factor, total = 1.0, 1 - x
    while True:
        x = sqrt(x)
        before = total
        factor *= 0.5
        total -= (1 - x) ** 2 * factor
        if total == before:
            return total / 3


LEFT_OUT_MAX: Final = 8_192
DEPTH_MAX: Final = 64


class SampledCounts:
    """Counts one in `2 ** depth` names, at most `names_max`."""

    def __init__(self, names_max: int) -> None:
        self._names_max = names_max
        self._counts: dict[str, int] = {}
        self._left_out: set[str] = set()  # recently, so that their hashes need not be computed again
        self.depth = 0

    @property
    def counts(self) -> Mapping[str, int]:
        return self._counts

    def count_name(self, name: str) -> None:
        count = self._counts.get(name)
        if count is not None:
            self._counts[name] = count + 1
        elif name not in self._left_out:
            self._count_if_sampled(name, 1)

    def add_all(self, counts: Mapping[str, int], depth: int) -> None:
        self._drop_unsampled(max(depth, self.depth))
        for name, count in counts.items():
            self._count_if_sampled(name, count)

    def _count_if_sampled(self, name: str, count: int) -> None:
        if not self._is_sampled(name):
            if len(self._left_out) >= LEFT_OUT_MAX:
                self._left_out.clear()
            self._left_out.add(name)
            return
        self._counts[name] = self._counts.get(name, 0) + count
        while len(self._counts) > self._names_max and self.depth < DEPTH_MAX:
            self._drop_unsampled(self.depth + 1)

    def _is_sampled(self, name: str) -> bool:
        return not hash_of(name) & ((1 << self.depth) - 1)

    def _drop_unsampled(self, depth: int) -> None:
        self.depth = depth
        self._counts = {name: count for name, count in self._counts.items() if self._is_sampled(name)}


class FrequentName(NamedTuple):
    name: str
    times: int
    amount: int


class FrequentNames:
    """Keeps a bounded number of names; a dropped one starts at 0 again, so its count may be too low, never too high."""

    def __init__(self, names_max: int) -> None:
        self._names_max = names_max
        self._rows: dict[str, list[int]] = {}
        self.others = 0
        self.others_amount = 0

    def __len__(self) -> int:
        return len(self._rows)

    def count_name(self, name: str, amount: int = 0, count: int = 1) -> None:
        row = self._rows.get(name)
        if row is None:
            row = self._rows[name] = [0, 0]
            if len(self._rows) > self._names_max:
                self._drop_least(name)
        row[0] += count
        row[1] += amount

    def add_all(self, rows: Iterable[FrequentName], others: int = 0, others_amount: int = 0) -> None:
        for row in rows:
            self.count_name(row.name, row.amount, row.times)
        self.others += others
        self.others_amount += others_amount

    def rows(self) -> list[FrequentName]:
        rows = [FrequentName(name, times, amount) for name, (times, amount) in self._rows.items()]
        return sorted(rows, key=lambda row: (-row.times, row.name))

    def _drop_least(self, newest: str) -> None:
        """Drop half of the names, but not the newest, which has not been counted yet."""
        rows = self._rows
        ranked = sorted(sorted(rows), key=lambda name: -rows[name][0])
        for name in ranked[self._names_max // 2 :]:
            if name != newest:
                times, amount = rows.pop(name)
                self.others += times
                self.others_amount += amount
