"""How partitions are told of the bytes that count towards a limit."""

from __future__ import annotations

import numpy as np
import pytest

from bigcrawl.features.totals.fold import FETCHED
from bigcrawl.features.totals.page import FetchedBytes, pack_fetched
from bigcrawl.scheduler.records.outcomes import unpack_outcomes
from tests.support.keys import pld_key
from tests.support.observing import Sent, node_side
from tests.unit.scheduler.records.test_held_urls import held_url


@pytest.mark.parametrize(
    ("fetched", "kib"),
    [(0, []), (1, [1]), (1024, [1]), (1025, [2]), (0xFFFF << 10, [0xFFFF]), ((0xFFFF << 11) + 1, [0xFFFF, 0xFFFF, 1])],
)
def test_bytes_are_told_in_kib_however_many(fetched: int, kib: list[int]) -> None:
    """Rounded up; a mark holds 16 bits of them."""
    keys, values = unpack_outcomes([("5-0", pack_fetched(7, fetched))])
    assert (keys.tolist(), values["detail"].tolist()) == ([7] * len(kib), kib)
    assert np.all(values["code"] == FETCHED)


def test_only_a_limit_of_bytes_costs_marks() -> None:
    """They go to the account of the limit, for URLs of which anything was fetched."""
    held, told = held_url(1, host="www.a.example"), pack_fetched(pld_key("a.example"), 2_000)
    for name, limit, marks in ("a.example", "pages", b""), ("b.example", "bytes", b""), ("a.example", "bytes", told):
        observer = FetchedBytes(node_side(Sent(), rules={name: {limit: 5}}))
        held.fetched_bytes = 0
        assert observer.marks_of_end(held) == b""
        held.fetched_bytes = 2_000
        assert observer.marks_of_end(held) == marks
