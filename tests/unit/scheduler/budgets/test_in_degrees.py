"""Counts of in-degrees: bins, what moves, what is published; and the ranks that follow."""

from __future__ import annotations

import msgpack
import numpy as np
import pytest

from bigcrawl.exceptions import ContractError
from bigcrawl.scheduler.budgets.in_degrees import (
    BINS,
    COUNTS_VERSION,
    EMPTY_COUNTS,
    LOWEST,
    CountsFormatError,
    InDegreeCounts,
    InDegreeRanks,
    bins_of,
    sum_published,
)

# What msgpack can hold instead of ascending bins, each with a count.
NO_PAIRS: tuple[object, ...] = (
    {}, 5, [1], [1, "2"], [1, True], [0, 1], [BINS, 1], [1, 0], [1, -1], [2, 1, 1, 1], [1, 1, 1, 1], [1, 1 << 40]
)  # fmt: skip


def array(*in_degrees: int) -> np.ndarray:
    return np.array(in_degrees, dtype=np.uint32)


def counts(*in_degrees: int) -> InDegreeCounts:
    return InDegreeCounts.of(array(*in_degrees))


def test_bins_are_exact_below_64_and_then_eighths_of_an_octave() -> None:
    """The bins' lowest in-degrees are those that the module's table gives, up to the end of 32 bits."""
    assert LOWEST[:65].tolist() == list(range(65))
    assert LOWEST[64:73].tolist() == [64, 72, 80, 88, 96, 104, 112, 120, 128]
    assert LOWEST[72:81].tolist() == [128, 144, 160, 176, 192, 208, 224, 240, 256]
    assert LOWEST[-1] == 1 << 32
    assert len(LOWEST) == BINS + 1 == 273


def test_an_in_degree_is_in_the_bin_whose_bounds_hold_it() -> None:
    """Each bin's lowest in-degree is in it, the one before that in the bin before."""
    lowest = LOWEST[:-1].astype(np.uint32)
    assert bins_of(lowest).tolist() == list(range(BINS))
    assert bins_of(lowest[1:] - np.uint32(1)).tolist() == list(range(BINS - 1))
    assert bins_of(array((1 << 32) - 1)).tolist() == [BINS - 1]


def test_plds_move_from_bin_to_bin() -> None:
    """A PLD leaves the bin of its in-degree and enters that of the next one; from 0 it is new, to 0 forgotten."""
    at_first = counts(1, 1, 5, 70)
    assert at_first.after_changes(array(1, 0, 5), array(2, 1, 70)) == counts(1, 2, 1, 70, 70)
    assert at_first.after_changes(array(5), array(0)) == counts(1, 1, 70)
    assert at_first == counts(70, 5, 1, 1)


def test_a_pld_may_move_twice_in_a_batch() -> None:
    """DRUM answers an increment with the value before each entry: 1 to 2 and 2 to 3 is 1 to 3."""
    assert counts(1, 9).after_changes(array(1, 2), array(2, 3)) == counts(3, 9)


def test_plds_that_were_never_there_cannot_leave() -> None:
    """Counts and table have parted: said at once, not when ranks are wrong."""
    with pytest.raises(ContractError, match="2 more PLDs have left in-degree 7 than were counted there"):
        counts(7, 8).after_changes(array(7, 7, 7), array(8, 8, 8))


def test_plds_of_in_degree_0_are_not_counted() -> None:
    """Nobody points to them, and nobody knows how many there are."""
    assert counts(0, 0, 1).total == 1
    assert counts(0) == EMPTY_COUNTS


def test_what_is_published_is_read_again() -> None:
    """Empty, small and extreme counts survive, and take no more than the bound."""
    widest = InDegreeCounts(np.array([0] + [(1 << 40) - 1] * (BINS - 1), dtype=np.int64))
    for found in (EMPTY_COUNTS, counts(1, 1, 63, 64, 71, 72, (1 << 32) - 1), widest):
        assert InDegreeCounts.from_bytes(found.to_bytes()) == found
    assert len(EMPTY_COUNTS.to_bytes()) == 2
    assert len(widest.to_bytes()) < 3_400


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes((COUNTS_VERSION + 1,)) + msgpack.packb([]),
        bytes((COUNTS_VERSION,)),
        bytes((COUNTS_VERSION,)) + b"\xc1",
        counts(1, 2, 3).to_bytes()[:-1],
        counts(1, 2, 3).to_bytes() + b"\x00",
        *(bytes((COUNTS_VERSION,)) + msgpack.packb(flat) for flat in NO_PAIRS),
    ],
)
def test_what_is_no_count_is_refused(data: bytes) -> None:
    """Damaged, newer and impossible bytes are errors of their own kind."""
    with pytest.raises(CountsFormatError):
        InDegreeCounts.from_bytes(data)


def test_one_damaged_publication_stops_no_other() -> None:
    """What cannot be read is left out and counted."""
    total, unreadable = sum_published([counts(1, 2).to_bytes(), b"\x09", counts(2, 300).to_bytes()])
    assert total == counts(1, 2, 2, 300)
    assert unreadable == 1
    assert sum_published([]) == (EMPTY_COUNTS, 0)


def test_those_of_one_in_degree_share_the_last_ones_rank() -> None:
    """Below 64 a rank is exact: the number of PLDs with this in-degree or more."""
    ranks = InDegreeRanks(counts(*[1] * 1000, 2, 2, 3, 50))
    in_degrees = array(50, 49, 3, 2, 1, 0)
    assert ranks.worst_ranks(in_degrees).tolist() == [1, 1, 2, 4, 1004, 1004]
    assert ranks.likely_ranks(in_degrees).tolist() == [1, 1, 2, 4, 1004, 1004]


def test_within_a_wide_bin_the_higher_in_degree_has_the_better_likely_rank() -> None:
    """From 64 on the worst rank is that of the bin's last, the likely one lies in between."""
    ranks = InDegreeRanks(counts(*[64] * 4, *[71] * 5, 500))
    assert ranks.worst_ranks(array(64, 68, 71)).tolist() == [10, 10, 10]
    assert ranks.likely_ranks(array(64, 68, 71)).tolist() == [10, 6, 3]


def test_an_in_degree_newer_than_the_counts_has_a_rank() -> None:
    """Beyond the best that was counted, and before anything was, it is the first."""
    assert InDegreeRanks(counts(3)).worst_ranks(array(4_000_000_000)).tolist() == [1]
    assert InDegreeRanks(EMPTY_COUNTS).likely_ranks(array(0, 1, 9)).tolist() == [1, 1, 1]


def test_links_are_the_sum_of_in_degrees() -> None:
    """Exactly below 64; above, each counts as the lowest of its bin."""
    assert InDegreeCounts.of(np.array([0, 1, 2, 63, 63], dtype=np.uint32)).links == 129
    assert InDegreeCounts.of(np.array([130, 2**32 - 1], dtype=np.uint32)).links == 128 + int(LOWEST[-2])
    assert EMPTY_COUNTS.links == 0
