"""How the in-degrees of all PLDs are spread, in little space: what makes a rank global (step 5).

An in-degree is the number of other PLDs whose pages point to a PLD. Each owner counts, in bins, the PLDs of its
partition, and publishes the counts; their sum over the partitions gives every node the same ranks. A bin is one
in-degree below 64 and an eighth of an octave from there on, so 272 bins hold all of 32 bits:

    bin    0 .. 63       in-degree 0 .. 63, exactly
    bin   64 .. 71       64, 72, .. 120   and the 7 that follow each
    bin   72 .. 79       128, 144, .. 240 and the 15 that follow each
    ...                  up to 2^32 - 1, where in-degrees stop to grow

What is published is the byte 1, the format's version, and msgpack of [bin, count, bin, count, ...] without the
empty bins: some hundred bytes for most partitions, 3.3 KB at most.

Error: counts tell a rank to within the PLDs of one bin. Below 64 the bin's PLDs are exactly those of the same
in-degree, who share a rank; above, a bin spans less than 12.5 % of its in-degree.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Self

import msgpack
import numpy as np

from bigcrawl.exceptions import BigcrawlError, ContractError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    InDegreeArray = npt.NDArray[np.uint32]
    CountArray = npt.NDArray[np.int64]

COUNTS_VERSION = 1

_EXACT = 64
_PER_OCTAVE = 8
BINS = _EXACT + _PER_OCTAVE * (32 - 6)

_COUNT_MAX = (1 << 40) - 1  # PLDs of one bin: sums over 65,536 partitions stay within 64 bits


def _lowest_of_bins() -> CountArray:
    octaves = ((_PER_OCTAVE + at % _PER_OCTAVE) << (at // _PER_OCTAVE + 3) for at in range(BINS - _EXACT))
    return np.array([*range(_EXACT), *octaves, 1 << 32], dtype=np.int64)


LOWEST = _lowest_of_bins()
"""int64, shape (BINS + 1,): the lowest in-degree of each bin, and 2^32."""


class CountsFormatError(BigcrawlError):
    """The bytes are not counts that this version can read."""


def bins_of(in_degrees: InDegreeArray) -> npt.NDArray[np.intp]:
    """Return the bin of each in-degree; shape and order as given. Cost: 20 ns each."""
    return np.searchsorted(LOWEST, in_degrees.astype(np.int64), side="right") - 1


class InDegreeCounts:
    """PLDs in each bin: a value, never changed. PLDs of in-degree 0 are not counted: nobody points to them."""

    __slots__ = ("_counts",)

    def __init__(self, counts: CountArray) -> None:
        self._counts = counts
        self._counts.flags.writeable = False
        self._check()

    @classmethod
    def of(cls, in_degrees: InDegreeArray) -> Self:
        """Count the PLDs that have these in-degrees, in any order; those of several parts may be added up."""
        return cls(_binned(in_degrees))

    def __repr__(self) -> str:
        return f"<InDegreeCounts {self.total} PLDs>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InDegreeCounts) and bool(np.array_equal(self._counts, other._counts))

    def __hash__(self) -> int:
        return hash(self._counts.tobytes())

    def __add__(self, other: InDegreeCounts) -> InDegreeCounts:
        return InDegreeCounts(self._counts + other._counts)

    @property
    def total(self) -> int:
        """PLDs that another PLD points to."""
        return int(self._counts.sum())

    @property
    def by_bin(self) -> CountArray:
        """int64, shape (BINS,), read-only."""
        return self._counts

    def moved(self, before: InDegreeArray, after: InDegreeArray) -> InDegreeCounts:
        """Return the counts after PLDs went from one in-degree to another.

        Args:
            before: shape (n,); 0 for a PLD that had none. A PLD may occur several times, from 1 to 2 and from 2
                to 3 for instance, as DRUM tells of increments in a batch.
            after: shape (n,); 0 for one that was forgotten.

        Raises:
            ContractError: PLDs leave a bin that never held so many.

        Cost: 10 us and 40 ns a PLD, whatever is counted.
        """
        counts = self._counts + _binned(after) - _binned(before)
        if counts.min() < 0:
            at = int(counts.argmin())
            raise ContractError(
                f"{-int(counts[at])} more PLDs left in-degree {LOWEST[at]} than were counted there: count them anew"
            )
        return InDegreeCounts(counts)

    def to_bytes(self) -> bytes:
        """Return the counts as an owner publishes them."""
        used = np.flatnonzero(self._counts)
        pairs = np.stack((used, self._counts[used]), axis=1)
        packed: bytes = msgpack.packb(pairs.ravel().tolist())
        return bytes((COUNTS_VERSION,)) + packed

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what `to_bytes` wrote.

        Raises:
            CountsFormatError: unknown version, damaged bytes, or numbers out of range.
        """
        if not data or data[0] != COUNTS_VERSION:
            found = data[0] if data else "nothing"
            raise CountsFormatError(f"format version of in-degree counts is {found}; this one reads {COUNTS_VERSION}")
        try:
            flat = msgpack.unpackb(data[1:])
        except Exception as error:
            raise CountsFormatError(f"in-degree counts cannot be decoded: {error!r}") from error
        if not isinstance(flat, list) or len(flat) % 2 or not _are_pairs(flat):
            raise CountsFormatError("in-degree counts hold something else than ascending bins with their counts")
        counts = np.zeros(BINS, dtype=np.int64)
        counts[flat[::2]] = flat[1::2]
        return cls(counts)

    def _check(self) -> None:
        assert self._counts.shape == (BINS,), "a count a bin"
        assert self._counts[0] == 0, "nobody points to PLDs of in-degree 0, so nobody knows how many there are"
        assert self._counts.min() >= 0, "PLDs are counted, not owed"


EMPTY_COUNTS = InDegreeCounts(np.zeros(BINS, dtype=np.int64))


def sum_published(published: Iterable[bytes]) -> tuple[InDegreeCounts, int]:
    """Add up what the owners published, and count what could not be read and is left out.

    A damaged or newer one makes ranks a little too good until its owner publishes again; it stops nobody.
    Cost: 50 us each.
    """
    total = np.zeros(BINS, dtype=np.int64)
    unreadable = 0
    for data in published:
        try:
            total += InDegreeCounts.from_bytes(data).by_bin
        except CountsFormatError:
            unreadable += 1
    return InDegreeCounts(total), unreadable


class Ranks:
    """The rank of an in-degree among all PLDs: 1 is the best. Never better than the counts can prove.

    Attributes:
        total: PLDs that were counted.
    """

    __slots__ = ("_above", "_counts", "total")

    def __init__(self, counts: InDegreeCounts) -> None:
        self._counts = counts.by_bin
        self.total = counts.total
        self._above = self.total - np.cumsum(self._counts)

    def __repr__(self) -> str:
        return f"<Ranks of {self.total} PLDs>"

    def worst(self, in_degrees: InDegreeArray) -> CountArray:
        """Return the worst rank that a PLD of this in-degree may have: as if it were the last of its bin.

        PLDs of one in-degree share a rank, that of their last: where all have in-degree 1, all are the last.
        A PLD of in-degree 0 ranks with the last of those that were counted.

        Returns:
            int64, shape as given, at least 1. The true rank r of a PLD that was counted, the number of PLDs with its
            in-degree or a higher one, is worst - (PLDs of the bin) < r <= worst, at the time of the counts.
        """
        bins = bins_of(in_degrees)
        ranks: CountArray = np.maximum(self._above[bins] + self._counts[bins], 1)
        return ranks

    def likely(self, in_degrees: InDegreeArray) -> CountArray:
        """Return the rank if the PLDs of each bin are spread evenly over it; as exact as `worst`, below 64 too.

        Returns:
            int64, shape as given; 1 <= likely <= `worst`. Never rises with the in-degree.
        """
        bins = bins_of(in_degrees)
        width = LOWEST[bins + 1] - LOWEST[bins]
        left = LOWEST[bins + 1] - in_degrees  # in-degrees from this one to the bin's end: width .. 1
        within = np.ceil(self._counts[bins] * (left / width)).astype(np.int64)
        ranks: CountArray = np.maximum(self._above[bins] + within, 1)
        return ranks


def _binned(in_degrees: InDegreeArray) -> CountArray:
    counts = np.bincount(bins_of(in_degrees), minlength=BINS).astype(np.int64)
    counts[0] = 0
    return counts


def _are_pairs(flat: list[int]) -> bool:
    """Whether these are bins, each once and ascending, and a count for each."""
    if not all(type(number) is int for number in flat):
        return False
    bins, counts = flat[::2], flat[1::2]
    ascends = all(one < other for one, other in pairwise(bins))
    return ascends and all(1 <= at < BINS for at in bins) and all(1 <= count <= _COUNT_MAX for count in counts)
