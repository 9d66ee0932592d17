"""How long a host is left alone after a fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.scheduler.handout.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_fetched_url_rests_its_host_the_longest_of_all_delays(tmp_path: Path) -> None:
    """The minimum, the host's Crawl-delay up to its cap, so many download times: the largest wins."""
    desk = Desk(tmp_path, crawl_delay_max=5, download_factor=10)
    for seq, (asked_ms, download_ms) in enumerate([(None, 0), (3_000, 0), (60_000, 0), (None, 700)], 1):
        held = desk.started(seq)
        held.outcome, held.download_ms = "status:200", download_ms
        held.crawl_delay_ms = asked_ms
        desk.handout.fetches.end(held)
    assert [end.delay_ms for end in desk.ended()] == [1_000, 3_000, 5_000, 7_000]


def test_slow_download_rests_its_host(desk: Desk) -> None:
    """Ten times what is beyond ten seconds, ten minutes at most; nothing below."""
    for seq, took_ms in enumerate([9_900, 10_000, 11_000, 30_000, 300_000], 1):
        desk.fetched_in(seq, took_ms, "slow.example")
    assert [end.delay_ms for end in desk.ended()] == [1_000, 1_000, 10_000, 200_000, 600_000]
