"""The distribution of in-degrees over all PLDs, from which every node computes the same ranks.

Each owner counts the PLDs of its partition in bins and publishes the counts; nodes add them up (docs/budgets.md). There
is a bin for each in-degree below 64, and eight for each octave above. The published form is the byte 1 (the format
version) and msgpack of [bin, count, bin, count, ...] without empty bins.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Self

import msgpack
import numpy as np

from bigcrawl.exceptions import BigcrawlError, ContractError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray

    InDegreeArray = npt.NDArray[np.uint32]
    CountArray = npt.NDArray[np.int64]

COUNTS_VERSION = 1

_EXACT = 64
_PER_OCTAVE = 8
BINS = _EXACT + _PER_OCTAVE * (32 - 6)

_COUNT_MAX = (1 << 40) - 1  # PLDs in one bin, so that sums over 65,536 partitions fit into 64 bits


def _lowest_of_bins() -> CountArray:
    octaves = ((_PER_OCTAVE + at % _PER_OCTAVE) << (at // _PER_OCTAVE + 3) for at in range(BINS - _EXACT))
    return np.array([*range(_EXACT), *octaves, 1 << 32], dtype=np.int64)


LOWEST = _lowest_of_bins()
"""int64, shape (BINS + 1,): the lowest in-degree of each bin, then 2^32."""
_BORDERS: InDegreeArray = LOWEST[1:-1].astype(np.uint32)


class CountsFormatError(BigcrawlError):
    pass


def bins_of(in_degrees: InDegreeArray) -> npt.NDArray[np.intp]:
    return _BORDERS.searchsorted(in_degrees, side="right")


UNRANKED_BITS: Final = 0xFFFF
"""Zero in the keys of units (`units`), which do not count in ranks, and in one of 65,536 keys of PLDs."""


class InDegreeCounts:
    """The number of PLDs in each bin; immutable. PLDs of in-degree 0 are not counted."""

    __slots__ = ("_counts",)

    def __init__(self, counts: CountArray) -> None:
        self._counts = counts
        self._counts.flags.writeable = False
        self._check()

    @classmethod
    def of(cls, in_degrees: InDegreeArray) -> Self:
        return cls(_count_by_bin(in_degrees))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, InDegreeCounts) and bool(np.array_equal(self._counts, other._counts))

    def __hash__(self) -> int:
        return hash(self._counts.tobytes())

    def __add__(self, other: InDegreeCounts) -> InDegreeCounts:
        return InDegreeCounts(self._counts + other._counts)

    @property
    def total(self) -> int:
        return int(self._counts.sum())

    @property
    def links(self) -> int:
        return int(self._counts @ LOWEST[:-1])

    @property
    def by_bin(self) -> CountArray:
        """int64, shape (BINS,), read-only."""
        return self._counts

    def after_changes(self, before: InDegreeArray, after: InDegreeArray) -> InDegreeCounts:
        """Return the counts after these in-degrees have changed; 0: not counted. A PLD may occur several times."""
        counts = self._counts + _count_by_bin(after) - _count_by_bin(before)
        if counts.min() < 0:
            at = int(counts.argmin())
            raise ContractError(
                f"{-int(counts[at])} more PLDs have left in-degree {LOWEST[at]} than were counted there, so the "
                f"counts are wrong: count again"
            )
        return InDegreeCounts(counts)

    def to_bytes(self) -> bytes:
        used = np.flatnonzero(self._counts)
        pairs = np.stack((used, self._counts[used]), axis=1)
        packed: bytes = msgpack.packb(pairs.ravel().tolist())
        return bytes((COUNTS_VERSION,)) + packed

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        if not data or data[0] != COUNTS_VERSION:
            found = data[0] if data else "nothing"
            raise CountsFormatError(
                f"format version of in-degree counts is {found}; this version reads {COUNTS_VERSION}"
            )
        try:
            flat = msgpack.unpackb(data[1:])
        except Exception as error:
            raise CountsFormatError(f"in-degree counts cannot be decoded: {error!r}") from error
        if not isinstance(flat, list) or len(flat) % 2 or not _are_pairs(flat):
            raise CountsFormatError("in-degree counts must be bins in ascending order, each with its count")
        counts = np.zeros(BINS, dtype=np.int64)
        counts[flat[::2]] = flat[1::2]
        return cls(counts)

    def _check(self) -> None:
        assert self._counts.shape == (BINS,), "one count for each bin"
        assert self._counts[0] == 0, "PLDs of in-degree 0 are not counted: their number is unknown"
        assert self._counts.min() >= 0, "counts are not negative"


EMPTY_COUNTS = InDegreeCounts(np.zeros(BINS, dtype=np.int64))


def sum_published(published: Iterable[bytes]) -> tuple[InDegreeCounts, int]:
    total = np.zeros(BINS, dtype=np.int64)
    unreadable = 0
    for data, times in Counter(published).items():  # those of partitions without links are the same
        try:
            total += times * InDegreeCounts.from_bytes(data).by_bin
        except CountsFormatError:
            unreadable += times
    return InDegreeCounts(total), unreadable


class InDegreeRanks:
    """The ranks of in-degrees among all PLDs; 1 is best. PLDs of equal in-degree share the rank of the last of them."""

    __slots__ = ("_above", "_counts", "total")

    def __init__(self, counts: InDegreeCounts) -> None:
        self._counts = counts.by_bin
        self.total = counts.total
        self._above = self.total - np.cumsum(self._counts)

    def worst_ranks(self, in_degrees: InDegreeArray) -> CountArray:
        bins = bins_of(in_degrees)
        ranks: CountArray = np.maximum(self._above[bins] + self._counts[bins], 1)
        return ranks

    def likely_ranks(self, in_degrees: InDegreeArray) -> CountArray:
        """Return the ranks if the PLDs of each bin were spread evenly over it: int64, at most `worst_ranks`."""
        bins = bins_of(in_degrees)
        width = LOWEST[bins + 1] - LOWEST[bins]
        left = LOWEST[bins + 1] - in_degrees  # in-degrees from here to the end of the bin: width .. 1
        within = np.ceil(self._counts[bins] * (left / width)).astype(np.int64)
        ranks: CountArray = np.maximum(self._above[bins] + within, 1)
        return ranks


def _count_by_bin(in_degrees: InDegreeArray) -> CountArray:
    counts = np.bincount(bins_of(in_degrees), minlength=BINS).astype(np.int64)
    counts[0] = 0
    return counts


def _are_pairs(flat: list[int]) -> bool:
    if not all(type(number) is int for number in flat):
        return False
    bins, counts = flat[::2], flat[1::2]
    ascends = all(one < other for one, other in pairwise(bins))
    return ascends and all(1 <= at < BINS for at in bins) and all(1 <= count <= _COUNT_MAX for count in counts)


def are_ranked(keys: KeyArray) -> npt.NDArray[np.bool_]:
    """Return which keys are not those of units: counting units, a farm's made-up hosts would enlarge the top ranks."""
    ranked: npt.NDArray[np.bool_] = keys & np.uint64(UNRANKED_BITS) != 0
    return ranked
