"""OPIC: the place of what a URL has received among all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from bigcrawl.config import FrontierConfig
from bigcrawl.links import Links
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.budgets.in_degrees import EMPTY_COUNTS, InDegreeRanks
from bigcrawl.scheduler.queues.front_queues import level_of
from bigcrawl.scheduler.queues.prioritizers import SafePrioritizer, make_prioritizer
from tests.support.keys import url_key

if TYPE_CHECKING:
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

RANKS = InDegreeRanks(EMPTY_COUNTS)


def some(count: int) -> list[QueuedUrl]:
    address = "http://a.example/"
    return [links_encoder(Links([address]), 1)(url_key(address), address)] * count


def voted(received: list[float]) -> dict[str, Any]:
    """What is known of as many URLs."""
    return {"received": np.array(received, dtype=np.float64)}


def opic(received: list[float]) -> list[int]:
    prioritizer = make_prioritizer("opic")
    assert prioritizer is not None
    nobody = np.zeros(len(received), dtype=np.uint32)
    found = SafePrioritizer(prioritizer, RANKS).prioritize(some(len(received)), nobody, None, voted(received))
    return [level_of(each.priority) for each in found]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_opic_divides_urls_by_their_place_among_all(scale: float) -> None:
    """Whatever the amounts are: a twentieth is urgent, the next three high, the better half raised, no one below 0."""
    levels = opic([scale * 1.05**at for at in range(200)])
    assert levels == sorted(levels)
    assert [levels.count(level) for level in range(5)] == pytest.approx([0, 100, 60, 30, 10], abs=8)
    assert opic([scale] * 3 + [0.0]) == [2, 2, 2, 1], "who has received nothing is ordinary"


@pytest.mark.long("a hundred thousand scores; the order of a few is asked here, too")
def test_opic_goes_by_what_it_has_scored_lately() -> None:
    """Small batches are measured by those before them; those of long ago are forgotten."""
    prioritizer = make_prioritizer("opic")
    assert prioritizer is not None
    scores = SafePrioritizer(prioritizer, RANKS)

    def level(received: float, count: int) -> int:
        urls, nobody = some(count), np.zeros(count, dtype=np.uint32)
        return level_of(scores.prioritize(urls, nobody, None, voted([received] * count))[0].priority)

    level(1.0, 4_000)
    assert (level(8.0, 1), level(0.01, 1)) == (4, 1)
    for _ in range(40):
        level(64.0, 10_000)
    assert level(8.0, 1) == 1


def test_ranks_of_pages_need_no_links_between_domains() -> None:
    """They are not counted for it."""
    assert not FrontierConfig(prioritizer="opic").counts_links
