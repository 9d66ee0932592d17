from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.drum.files import DiskFiles
from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory
from bigcrawl.scheduler.queues.parked_queues import EMPTY_PARKED, ParkedQueues, extents_to_join
from tests.support.worlds.partition_world import make_url

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def epoch(tmp_path: Path) -> EpochDirectory:
    return EpochDirectory(tmp_path, 1, DiskFiles())


@pytest.fixture
def parked(epoch: EpochDirectory) -> ParkedQueues:
    return ParkedQueues.restore(epoch, EMPTY_PARKED)


def test_each_host_is_first_in_first_out(epoch: EpochDirectory, parked: ParkedQueues) -> None:
    """However parking, taking, joining and restoring interleave, a host's URLs leave in order."""
    offered: dict[str, list] = {}
    taken: dict[str, list] = {}
    number = 0
    for turn in range(60):
        for _ in range(turn * 13 % 40):
            url = make_url(number, f"h{number * 7 % 5}.example")
            offered.setdefault(url.host, []).append(url)
            parked.append(url)
            number += 1
        for host in parked.hosts[: turn % 4]:
            taken.setdefault(host, []).extend(parked.take(host, turn % 11 + 1))
        parked.flush()
        parked._check()
        if turn % 9 == 8:
            parked = ParkedQueues.restore(epoch, parked.state())
    while parked.hosts:
        host = parked.hosts[0]
        taken[host] += parked.take(host, 10)
    assert taken == offered
    assert len(parked) == 0


def test_a_host_that_was_served_goes_to_the_end(parked: ParkedQueues) -> None:
    """Hosts have their turns one after another."""
    for number in range(9):
        parked.append(make_url(number, f"h{number % 3}.example"))
    parked.flush()
    assert parked.hosts == ["h0.example", "h1.example", "h2.example"]
    parked.take("h0.example", 1)
    assert parked.hosts == ["h1.example", "h2.example", "h0.example"]
    parked.take("h1.example", 3)
    assert parked.hosts == ["h2.example", "h0.example"]
    assert "h1.example" not in parked


def test_levels_of_a_host_are_chains_of_their_own(parked: ParkedQueues) -> None:
    """The highest level is taken first, on disk or pending, each in its order."""
    for number, priority in enumerate([0, 5, -1, 0, 5]):
        parked.append(make_url(number, priority=priority))
    parked.flush()
    parked.append(make_url(5, priority=5))
    order = [url for _ in range(3) for url in parked.take("a.example", 2)]
    assert order == [make_url(n, priority=p) for n, p in [(1, 5), (4, 5), (5, 5), (0, 0), (3, 0), (2, -1)]]
    assert parked.hosts == []


def test_dead_text_is_reclaimed(epoch: EpochDirectory, parked: ParkedQueues, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow hosts among fast ones do not pin the segments that the fast ones have consumed."""
    monkeypatch.setattr("bigcrawl.scheduler.queues.segments.SEGMENT_BYTES_MAX", 2000)
    slow = [make_url(number, f"slow{number}.example") for number in range(100)]
    number = 1000
    for turn in range(100):
        parked.append(slow[turn])
        for _ in range(60):
            parked.append(make_url(number, "fast.example"))
            number += 1
        parked.flush()
        parked = parked.fork()
        parked.take("fast.example", 60)
        parked.flush()
        parked._check()
    written = sum(segment.urls for segment in parked.log.segments)
    assert len(parked) == 100
    assert written < 6 * len(parked)
    assert [parked.take(url.host, 5) for url in slow] == [[url] for url in slow]


def test_a_fork_changes_nothing_in_its_origin(parked: ParkedQueues) -> None:
    """A step that is given up leaves chains, turns and segments as they were."""
    for number in range(200):
        parked.append(make_url(number, f"h{number % 3}.example"))
    parked.flush()
    before = deepcopy(parked.state())
    fork = parked.fork()
    fork.take("h0.example", 10)
    fork.take("h1.example", 1000)
    for number in range(200, 300):
        fork.append(make_url(number, f"h{number % 4}.example"))
    fork.flush()
    fork._check()
    assert parked.state() == before
    assert list(parked.state().chains) == list(before.chains)
    assert len(parked) == 200


@given(st.lists(st.integers(1, 200), max_size=400))
def test_a_chain_is_a_short_list_rewritten_seldom(batches: list[int]) -> None:
    """Extents are few, and joining rewrites a URL a handful of times, whatever sizes are parked."""
    counts: list[int] = []
    rewritten = 0
    for added in batches:
        joined = extents_to_join(counts, added)
        total = added + sum(counts[len(counts) - joined :])
        rewritten += total - added
        counts = [*counts[: len(counts) - joined], total]
        assert total <= 4096 or not joined
    urls = sum(batches)
    assert len(counts) <= urls / 1024 + 19
    assert rewritten <= 8 * urls
