"""Votes as bytes: what is packed comes back, in today's field and in that of earlier versions."""

from __future__ import annotations

import struct

import pytest

from bigcrawl.features.votes.rows import VOTED, pack_votes
from bigcrawl.scheduler.records.observed import ObservedFormatError, pack_observed, unpack_alone, unpack_observed


def test_what_is_packed_comes_back() -> None:
    """Keys of all 64 bits, shares as 32-bit floats, priorities of both signs."""
    votes = [(2**64 - 1, 0.5, -7), (0, 0.0, 500)]
    data = pack_votes(votes)
    assert data == b"".join(struct.pack("<Qfi", *vote) for vote in votes)
    for unpacked in (unpack_observed(pack_observed({VOTED: data})), unpack_alone(data)):
        assert unpacked.pop(VOTED).tolist() == votes
        assert not any(map(len, unpacked.values()))


@pytest.mark.parametrize(
    "data",
    [b"x" * 15, *(struct.pack("<Qfi", 1, share, 0) for share in (float("nan"), float("inf"), -0.5, 2e9))],
)
def test_what_is_no_vote_is_refused(data: bytes) -> None:
    """A share that is no number would spoil every sum that it joins."""
    with pytest.raises(ObservedFormatError):
        unpack_alone(data)
    with pytest.raises(ObservedFormatError):
        unpack_observed(pack_observed({VOTED: data}) + data[16:] or data)
