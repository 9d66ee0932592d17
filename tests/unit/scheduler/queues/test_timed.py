"""URLs that wait on disk for the time of their next visit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.drum.files import DiskFiles
from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory
from bigcrawl.scheduler.queues.fifo import Queues
from bigcrawl.scheduler.queues.timed import NEVER_S, TimedUrls
from bigcrawl.scheduler.records.queued_url import QueuedUrl

if TYPE_CHECKING:
    from pathlib import Path

NOW_S = 1_800_000_000
DAY_S = 86_400


def make_url(number: int) -> QueuedUrl:
    return QueuedUrl(number, "h.example", 0, 0, b"body")


@pytest.fixture
def queues(tmp_path: Path) -> Queues:
    return Queues.restore(EpochDirectory(tmp_path, 1, DiskFiles()), {})


def test_a_url_leaves_within_a_sixteenth_of_its_wait(queues: Queues) -> None:
    """Neither much too early nor much too late, whether it waits a minute or a year."""
    waits_s = [60 * 3**power for power in range(12)]
    revisits = TimedUrls.restore(queues, 0)
    for number, wait_s in enumerate(waits_s):
        revisits.put(make_url(number), NOW_S + wait_s, NOW_S)
    for number, wait_s in enumerate(waits_s):
        assert abs(revisits.next_s - NOW_S - wait_s) <= wait_s / 16
        assert revisits.release(revisits.next_s - 1, 10) == []
        assert [url.key for url in revisits.release(revisits.next_s, 10)] == [number]
        revisits._check()
    assert (len(revisits), revisits.next_s) == (0, NEVER_S)


def test_queues_are_few(queues: Queues) -> None:
    """A hundred thousand URLs that wait between a day and a month, over a month, share some hundred queues."""
    revisits = TimedUrls.restore(queues, 0)
    for number in range(2_000):
        now_s = NOW_S + number * 1_200
        revisits.put(make_url(number), now_s + DAY_S + number % 30 * DAY_S, now_s)
        revisits.release(now_s, 100)
    assert len(queues.names) < 100


def test_a_portion_is_released_at_a_time(queues: Queues) -> None:
    """A burst does not enter memory at once, and what comes meanwhile waits for a queue of its own."""
    revisits = TimedUrls.restore(queues, 0)
    for number in range(10_000):
        revisits.put(make_url(number), NOW_S + 1_000, NOW_S)
    queues.flush()
    found = revisits.release(NOW_S + 2_000, 100)
    assert 100 <= len(found) < 6_000
    name = next(iter(queues.names))
    revisits.put(make_url(-1 % 2**64), NOW_S + 1_000, NOW_S)
    assert len(queues.names) == 2
    assert queues.waiting(name) == 10_000 - len(found)
    while len(revisits):
        found += revisits.release(NOW_S + 4_000, 5_000)
    assert [url.key for url in found] == [*range(10_000), 2**64 - 1]


def test_a_restored_queue_goes_on(queues: Queues) -> None:
    """Nothing but the names and the last release is needed."""
    revisits = TimedUrls.restore(queues, 0)
    revisits.put(make_url(1), NOW_S + 50, NOW_S)
    revisits.put(make_url(2), NOW_S + 5_000, NOW_S)
    revisits.release(NOW_S + 60, 10)
    again = TimedUrls.restore(queues, revisits.released_s)
    again._check()
    assert (len(again), again.next_s, again.released_s) == (1, revisits.next_s, revisits.released_s)


@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "release"]), st.integers(-5_000, 400_000), st.integers(-40, 100)),
        max_size=60,
    )
)
def test_every_url_leaves_once_and_no_name_comes_back(steps: list[tuple[str, int, int]]) -> None:
    """Whatever the order of the times, also with a clock that is set back: conservation, and names are used once."""
    queues = Queues.restore(EpochDirectory("unused", 1, DiskFiles()), {})  # type: ignore[arg-type]
    revisits, now_s = TimedUrls.restore(queues, 0), NOW_S
    released: list[int] = []
    removed: set[str] = set()
    count = 0
    for verb, wait_s, later_s in steps:
        now_s += later_s
        before = set(queues.names)
        if verb == "put":
            revisits.put(make_url(count), max(0, now_s + wait_s), now_s)
            count += 1
            assert not (set(queues.names) - before) & removed
        else:
            released += [url.key for url in revisits.release(now_s + wait_s, 5)]
            removed |= before - set(queues.names)
        revisits._check()
        assert len(released) + len(revisits) == count
    released += [url.key for url in revisits.release(NEVER_S, 1_000)]
    assert sorted(released) == list(range(count))
