from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.drum.files import DiskFiles
from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory
from bigcrawl.scheduler.queues.fifo import EMPTY_FIFO, Fifo
from tests.support.worlds.partition_world import make_url

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def epoch(tmp_path: Path) -> EpochDirectory:
    return EpochDirectory(tmp_path, 1, DiskFiles())


@pytest.fixture
def queue(epoch: EpochDirectory) -> Fifo:
    return Fifo.restore(epoch, "queue-0-1", EMPTY_FIFO)


@pytest.mark.parametrize("by_block", [False, True])
def test_first_in_first_out(queue: Fifo, *, by_block: bool) -> None:
    """Whatever is on disk and whatever is pending, URLs leave in the order they came, alone or by the block."""
    expected, taken, number = [], [], 0
    for turn in range(60):
        for _ in range(turn * 7 % 23):
            expected.append(make_url(number))
            queue.append(make_url(number))
            number += 1
        for _ in range(min(len(queue), turn * 5 % 17)):
            assert queue.peek() == queue.peek()
            taken.append(queue.pop())
        if by_block and turn % 5 == 4 and len(queue):
            taken += queue.pop_block()
        if turn % 3:
            queue.flush()
            queue._check()
    while len(queue):
        taken += queue.pop_block() if by_block else [queue.pop()]
    queue.flush()
    queue._check()
    assert taken == expected
    assert queue.state().segments in ((), queue.state().segments[-1:])


def test_what_leaves_in_the_step_it_came_is_never_written(queue: Fifo, tmp_path: Path) -> None:
    """Only what is left of a step goes to disk."""
    for number in range(10):
        queue.append(make_url(number))
    while len(queue):
        queue.pop()
    queue.flush()
    assert list(tmp_path.iterdir()) == []


def test_a_fork_changes_nothing_in_its_origin(queue: Fifo) -> None:
    """A step that is given up leaves head, count and segments as they were."""
    for number in range(300):
        queue.append(make_url(number))
    queue.flush()
    before = queue.state()
    fork = queue.fork()
    fork.pop()
    fork.pop_block()
    fork.pop_block()
    fork.append(make_url(1000))
    fork.flush()
    assert queue.state() == before
    assert queue.peek() == make_url(0)
    assert fork.peek() == make_url(128)


def test_consumed_segments_are_dropped(queue: Fifo, epoch: EpochDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files a queue needs are those from its head on, before and after it is restored."""
    monkeypatch.setattr("bigcrawl.scheduler.queues.segments.SEGMENT_BYTES_MAX", 1500)
    for number in range(400):
        queue.append(make_url(number))
    queue.flush()
    whole = queue.log.names()
    for _ in range(200):
        queue.pop()
    queue.flush()
    assert set(queue.log.names()) < set(whole)
    restored = Fifo.restore(epoch, "queue-0-1", queue.state())
    restored._check()
    assert [restored.pop() for _ in range(200)] == [make_url(n) for n in range(200, 400)]
    restored.append(make_url(400))
    restored.flush()
    assert len(restored.log.names()) == 1
