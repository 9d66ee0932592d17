"""Ranks as numbers: sums are bounded, and 8 bits tell a rank within 9 %."""

from __future__ import annotations

import numpy as np
import pytest

from bigcrawl.features.votes.ranks import (
    BASE,
    NOT_GIVEN,
    codes_of,
    flags_with,
    received_of,
    share_of,
    sum_votes,
)
from bigcrawl.features.votes.rows import KINDS, VOTED, VOTES
from bigcrawl.scheduler.records.queued_url import LISTED_SHIFT, RANGES_SHIFT, TRAITS_SHIFT, UNCHECKED


def test_votes_add_up_by_url() -> None:
    """Shares are added, the highest priority counts, and a sum never leaves its bounds."""
    rows = np.array([(1, 0.25, 3), (2, 1e9, -5), (1, 0.5, -1), (2, 1e9, -9)], dtype=KINDS[VOTED])
    before = np.array([(0.5, NOT_GIVEN), (0.0, -7)], dtype=VOTES)
    after = sum_votes(rows, before, np.array([0, 1, 0, 1]))
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
    others = UNCHECKED | 2 | (1 << LISTED_SHIFT) - (1 << TRAITS_SHIFT) | 0xFFFFFF << RANGES_SHIFT
    flags = flags_with(flags_with(others, 255), 128)
    assert received_of(flags) == 1.0
    assert flags_with(flags, 0) == others


def test_a_page_hands_on_what_page_rank_says() -> None:
    """85 % of its rank, in equal shares; what nobody links to has the base."""
    assert share_of(0.0, 1) == pytest.approx(0.85 * BASE)
    assert share_of(0.85, 4) == pytest.approx(0.85 / 4)
