"""The fetches that slow hosts may have, and who has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.scheduler.handout.buffer import SLOW_WAIT_MS
from bigcrawl.scheduler.records.outcomes import ABORTED
from tests.unit.scheduler.handout.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_slow_hosts_share_a_quarter_of_the_fetches(desk: Desk) -> None:
    """Of 16 fetches slow hosts have 4; one more returns to its queue, others go on, and an end makes room."""
    for seq in range(1, 7):
        desk.fetched_in(seq, 12_000, f"slow{seq}.example")
    urls = [desk.taken(seq) for seq in range(11, 17)]
    for held in urls:
        held.host = f"slow{held.seq - 10}.example"
        desk.handout.admit(held)
    healthy = desk.taken(20)
    desk.handout.admit(healthy)
    running = [desk.handout.buffer.pop() for _ in range(5)]
    assert running == [*urls[:4], healthy]
    assert desk.handout.buffer.pop() is None
    assert [(end.seq, end.delay_ms, end.member) for end in desk.ended()[6:]] == [
        (15, SLOW_WAIT_MS, b"="),
        (16, SLOW_WAIT_MS, b"="),
    ]
    for held, outcome in zip(urls[:3], ["status:200", ABORTED, "error:timeout"], strict=True):
        held.outcome = outcome
        desk.handout.fetches.end(held)
    desk.handout.give_up(urls[3], "undecodable")
    again = [desk.taken(seq) for seq in range(31, 37)]
    for held in again:
        held.host = "slow5.example"
        desk.handout.admit(held)
    assert [held.seq for held in iter(desk.handout.buffer.pop, None)] == [31, 32, 33, 34]
