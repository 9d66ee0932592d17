"""The distribution of in-degrees over all PLDs in compact form; every node computes the same ranks from it (step 5).

The in-degree of a PLD is the number of other PLDs whose pages link to it. Each owner counts the PLDs of its partition
in bins and publishes the counts. Their sum over all partitions gives every node the same ranks. A bin holds one
in-degree below 64, and an eighth of an octave from there on, so 272 bins cover all of 32 bits:

    bin    0 .. 63       in-degree 0 .. 63, exactly
    bin   64 .. 71       64, 72, .. 120   and the 7 that follow each
    bin   72 .. 79       128, 144, .. 240 and the 15 that follow each
    ...                  up to 2^32 - 1, where in-degrees stop growing

Owners publish the byte 1 (the format version) and msgpack of [bin, count, bin, count, ...] without empty bins: some
hundred bytes for most partitions, 3.3 KB at most.

Error: a rank is known to within the PLDs of one bin. Below 64, all PLDs of a bin have the same in-degree and share a
rank. Above, a bin spans less than 12.5 % of its in-degree.
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

_COUNT_MAX = (1 << 40) - 1  # PLDs in one bin, so that sums over 65,536 partitions fit into 64 bits


def _lowest_of_bins() -> CountArray:
    octaves = ((_PER_OCTAVE + at % _PER_OCTAVE) << (at // _PER_OCTAVE + 3) for at in range(BINS - _EXACT))
    return np.array([*range(_EXACT), *octaves, 1 << 32], dtype=np.int64)


LOWEST = _lowest_of_bins()
"""int64, shape (BINS + 1,): the lowest in-degree of each bin, then 2^32."""


class CountsFormatError(BigcrawlError):
    """The bytes are not counts that this version can read."""


def bins_of(in_degrees: InDegreeArray) -> npt.NDArray[np.intp]:
    """Return the bin of each in-degree, in the shape and order given. Cost: 20 ns each."""
    return LOWEST.searchsorted(in_degrees.astype(np.int64), side="right") - 1


class InDegreeCounts:
    """The number of PLDs in each bin; immutable. PLDs of in-degree 0 are not counted, since no link leads to them."""

    __slots__ = ("_counts",)

    def __init__(self, counts: CountArray) -> None:
        self._counts = counts
        self._counts.flags.writeable = False
        self._check()

    @classmethod
    def of(cls, in_degrees: InDegreeArray) -> Self:
        """Count PLDs by in-degree, given in any order. Counts of several parts can be added."""
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
        """How many PLDs another PLD links to."""
        return int(self._counts.sum())

    @property
    def links(self) -> int:
        """How many links between PLDs there are: the sum of in-degrees, each as if it were the lowest of its bin."""
        return int(self._counts @ LOWEST[:-1])

    @property
    def by_bin(self) -> CountArray:
        """The number of PLDs in each bin: int64, shape (BINS,), read-only."""
        return self._counts

    def moved(self, before: InDegreeArray, after: InDegreeArray) -> InDegreeCounts:
        """Return the counts after the in-degrees of PLDs have changed.

        Args:
            before: shape (n,); 0 for a PLD that had none. A PLD may occur several times, for instance from 1 to 2
                and from 2 to 3, as DRUM reports increments in a batch.
            after: shape (n,); 0 for one that was forgotten.

        Raises:
            ContractError: more PLDs leave a bin than it holds.

        Cost: 10 us and 40 ns a PLD, however many are counted.
        """
        counts = self._counts + _binned(after) - _binned(before)
        if counts.min() < 0:
            at = int(counts.argmin())
            raise ContractError(
                f"{-int(counts[at])} more PLDs left in-degree {LOWEST[at]} than were counted there: count them again"
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
            raise CountsFormatError(
                f"format version of in-degree counts is {found}; this version reads {COUNTS_VERSION}"
            )
        try:
            flat = msgpack.unpackb(data[1:])
        except Exception as error:
            raise CountsFormatError(f"in-degree counts cannot be decoded: {error!r}") from error
        if not isinstance(flat, list) or len(flat) % 2 or not _are_pairs(flat):
            raise CountsFormatError("in-degree counts are not ascending bins with their counts")
        counts = np.zeros(BINS, dtype=np.int64)
        counts[flat[::2]] = flat[1::2]
        return cls(counts)

    def _check(self) -> None:
        assert self._counts.shape == (BINS,), "one count for each bin"
        assert self._counts[0] == 0, "PLDs of in-degree 0 are not counted: their number is unknown"
        assert self._counts.min() >= 0, "counts are not negative"


EMPTY_COUNTS = InDegreeCounts(np.zeros(BINS, dtype=np.int64))


def sum_published(published: Iterable[bytes]) -> tuple[InDegreeCounts, int]:
    """Return the sum of all published counts, and how many could not be read.

    Counts that are damaged or of a later version are skipped. Until their owner publishes again, ranks are slightly
    too good; nothing stops. Cost: 50 us each.
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
    """The rank of an in-degree among all PLDs; 1 is best. Never better than the counts prove.

    Attributes:
        total: how many PLDs were counted.
    """

    __slots__ = ("_above", "_counts", "total")

    def __init__(self, counts: InDegreeCounts) -> None:
        self._counts = counts.by_bin
        self.total = counts.total
        self._above = self.total - np.cumsum(self._counts)

    def __repr__(self) -> str:
        return f"<Ranks of {self.total} PLDs>"

    def worst(self, in_degrees: InDegreeArray) -> CountArray:
        """Return the worst possible rank of a PLD of this in-degree, as if it were the last of its bin.

        PLDs of one in-degree share the rank of the last of them. If all have in-degree 1, all rank last. A PLD of
        in-degree 0 ranks with the last PLD that was counted.

        Returns:
            int64, shape as given, at least 1. The true rank r of a counted PLD is the number of PLDs with its in-degree
            or a higher one; at the time of the counts, worst - (PLDs of the bin) < r <= worst.
        """
        bins = bins_of(in_degrees)
        ranks: CountArray = np.maximum(self._above[bins] + self._counts[bins], 1)
        return ranks

    def likely(self, in_degrees: InDegreeArray) -> CountArray:
        """Return the rank if the PLDs of each bin were spread evenly over it. Equals `worst` below 64.

        Returns:
            int64, shape as given; 1 <= likely <= `worst`. Never rises with the in-degree.
        """
        bins = bins_of(in_degrees)
        width = LOWEST[bins + 1] - LOWEST[bins]
        left = LOWEST[bins + 1] - in_degrees  # in-degrees from here to the end of the bin: width .. 1
        within = np.ceil(self._counts[bins] * (left / width)).astype(np.int64)
        ranks: CountArray = np.maximum(self._above[bins] + within, 1)
        return ranks


def _binned(in_degrees: InDegreeArray) -> CountArray:
    counts = np.bincount(bins_of(in_degrees), minlength=BINS).astype(np.int64)
    counts[0] = 0
    return counts


def _are_pairs(flat: list[int]) -> bool:
    """Whether the list holds ascending, distinct bins, each followed by its count."""
    if not all(type(number) is int for number in flat):
        return False
    bins, counts = flat[::2], flat[1::2]
    ascends = all(one < other for one, other in pairwise(bins))
    return ascends and all(1 <= at < BINS for at in bins) and all(1 <= count <= _COUNT_MAX for count in counts)
