"""Votes as bytes and numbers: what is packed comes back, sums are bounded, and 8 bits tell a rank within 9 %."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from bigcrawl.scheduler.budgets.allowances import COUNTED
from bigcrawl.scheduler.records.queued_url import RANGES_SHIFT, TRAP_SHIFT, UNCHECKED
from bigcrawl.scheduler.records.votes import (
    BASE,
    NOT_GIVEN,
    VOTES,
    VotesFormatError,
    codes_of,
    flags_with,
    pack_votes,
    received_of,
    share_of,
    summed,
    unpack_votes,
)
from bigcrawl.url.shape import KINDS


def test_what_is_packed_comes_back() -> None:
    """Keys of all 64 bits, shares as 32-bit floats, priorities of both signs."""
    votes = [(2**64 - 1, 0.5, -7), (0, 0.0, 500)]
    data = pack_votes(votes)
    assert data[:16] == struct.pack("<Qfi", *votes[0])
    assert unpack_votes(data).tolist() == votes


@pytest.mark.parametrize(
    "data",
    [b"x" * 15, *(struct.pack("<Qfi", 1, share, 0) for share in (float("nan"), float("inf"), -0.5, 2e9))],
)
def test_what_is_no_vote_is_refused(data: bytes) -> None:
    """A share that is no number would spoil every sum that it joins."""
    with pytest.raises(VotesFormatError):
        unpack_votes(data)


def test_votes_add_up_by_url() -> None:
    """Shares are added, the highest priority counts, and a sum never leaves its bounds."""
    rows = unpack_votes(pack_votes([(1, 0.25, 3), (2, 1e9, -5), (1, 0.5, -1), (2, 1e9, -9)]))
    before = np.array([(0.5, NOT_GIVEN), (0.0, -7)], dtype=VOTES)
    after = summed(rows, before, np.array([0, 1, 0, 1]))
    assert after.tolist() == [(1.25, 3), (1e9, -5)]
    assert before.tolist() == [(0.5, NOT_GIVEN), (0.0, -7)], "what was there is not changed"


def test_eight_bits_tell_what_a_url_has_received() -> None:
    """Within 9 %, from a share of the poorest page to all of a crawl; nothing is nothing."""
    received = np.array([0.0, 1e-6, 0.004, 1.0, 37.5, 1e9], dtype=np.float32)
    found = [received_of(flags_with(0, code)) for code in codes_of(received).tolist()]
    assert found[0] == 0
    assert found[1:] == pytest.approx(received[1:].tolist(), rel=0.091)


def test_other_flags_are_left_alone() -> None:
    """Those of the seen check, of totals, of all shapes and of the blacklist; an older code goes."""
    others = UNCHECKED | COUNTED | (1 << len(KINDS)) - 1 << TRAP_SHIFT | 0xFFFFFF << RANGES_SHIFT
    flags = flags_with(flags_with(others, 255), 128)
    assert received_of(flags) == 1.0
    assert flags_with(flags, 0) == others


def test_a_page_hands_on_what_page_rank_says() -> None:
    """85 % of its rank, in equal shares; what nobody links to has the base."""
    assert share_of(0.0, 1) == pytest.approx(0.85 * BASE)
    assert share_of(0.85, 4) == pytest.approx(0.85 / 4)
