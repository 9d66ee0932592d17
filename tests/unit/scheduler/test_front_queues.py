from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from bigcrawl.drum.files import DiskFiles
from bigcrawl.scheduler.epochs import EpochDirectory
from bigcrawl.scheduler.front_queues import EMPTY_LEVEL, LEVELS, WEIGHTS, FrontQueues, Selector, level_of
from tests.support.partition_world import make_url

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def front(tmp_path: Path) -> FrontQueues:
    return FrontQueues.restore(EpochDirectory(tmp_path, 1, DiskFiles()), [EMPTY_LEVEL] * LEVELS, [0] * LEVELS)


@pytest.mark.parametrize(
    ("priority", "level"),
    [(-(2**31), 0), (-1, 0), (0, 1), (1, 2), (9, 2), (10, 3), (99, 3), (100, 4), (2**31 - 1, 4)],
)
def test_priorities_map_to_levels(priority: int, level: int) -> None:
    """Below zero, zero, and three ranges above it."""
    assert level_of(priority) == level


def test_each_level_gets_its_share() -> None:
    """Over one round each level has as many turns as its weight, and no level waits to the end for them."""
    selector = Selector()
    turns = [selector.choose(range(LEVELS)) for _ in range(sum(WEIGHTS))]
    assert Counter(turns) == dict(enumerate(WEIGHTS))
    assert turns[0] == LEVELS - 1
    assert max(turns.index(level) for level in range(1, LEVELS)) < 16


def test_an_empty_level_costs_the_others_nothing() -> None:
    """Shares are among the levels that hold URLs; one alone has every turn and gathers no debt."""
    selector = Selector()
    assert {selector.choose([1]) for _ in range(100)} == {1}
    turns = Counter(selector.choose([0, 2]) for _ in range(50))
    assert turns == {0: 10, 2: 40}
    assert Selector(selector.credits).choose([0, 2]) == selector.choose([0, 2])


def test_a_level_is_first_in_first_out(front: FrontQueues) -> None:
    """Whatever is on disk and whatever is pending, URLs leave a level in the order they came."""
    expected, taken, number = [], [], 0
    for turn in range(30):
        for _ in range(turn * 7 % 23):
            expected.append(make_url(number))
            front.append(make_url(number))
            number += 1
        queue = front.queues[1]
        for _ in range(min(len(queue), turn * 5 % 17)):
            assert queue.peek() == queue.peek()
            taken.append(queue.pop())
        front.flush()
        front._check()
    while len(front):
        taken.append(front.queues[1].pop())
    assert taken == expected


def test_what_leaves_in_the_step_it_came_is_never_written(front: FrontQueues, tmp_path: Path) -> None:
    """Only what is left of a step goes to disk."""
    for number in range(10):
        front.append(make_url(number))
    while front.choose_level() is not None:
        front.queues[1].pop()
    front.flush()
    assert list(tmp_path.iterdir()) == []


def test_a_fork_changes_nothing_in_its_origin(front: FrontQueues) -> None:
    """A step that is given up leaves heads, counts and segments as they were."""
    for number in range(100):
        front.append(make_url(number, priority=number % 3))
    front.flush()
    before = front.states()
    fork = front.fork()
    for _ in range(40):
        level = fork.choose_level()
        assert level is not None
        fork.queues[level].pop()
    fork.append(make_url(1000))
    fork.flush()
    assert front.states() == before
    assert front.queues[1].peek() == make_url(0)


def test_consumed_segments_are_dropped(front: FrontQueues, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files a queue needs are those from its head on, before and after it is restored."""
    monkeypatch.setattr("bigcrawl.scheduler.segments.SEGMENT_BYTES_MAX", 1500)
    for number in range(400):
        front.append(make_url(number))
    front.flush()
    whole = front.names()
    for _ in range(200):
        front.queues[1].pop()
    front.flush()
    assert set(front.names()) < set(whole)
    restored = FrontQueues.restore(front.queues[1].log._epoch, front.states(), front.selector.credits)
    restored._check()
    assert [restored.queues[1].pop() for _ in range(200)] == [make_url(n) for n in range(200, 400)]
    restored.append(make_url(400))
    restored.flush()
    assert len(restored.names()) == 1
