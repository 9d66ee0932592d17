from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from bigcrawl.drum.files import DiskFiles
from bigcrawl.scheduler.budgets.placement import TIERS
from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory
from bigcrawl.scheduler.queues.fifo import Queues
from bigcrawl.scheduler.queues.front_queues import (
    LEVELS,
    URGENT,
    FrontQueues,
    Levels,
    Selector,
    level_of,
    weights_of,
)
from bigcrawl.scheduler.queues.rescoring import RescoringRound
from tests.support.running.tables import each
from tests.support.worlds.partition_world import make_url

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def front(tmp_path: Path) -> FrontQueues:
    return FrontQueues(Queues.restore(EpochDirectory(tmp_path, 1, DiskFiles()), {}), "queue-3", Selector())


@pytest.mark.parametrize(
    ("priority", "level"),
    [(-(2**31), 0), (-1, 0), (0, 1), (1, 2), (9, 2), (10, 3), (99, 3), (100, 4), (2**31 - 1, 4)],
)
def test_priorities_map_to_levels(priority: int, level: int) -> None:
    """Below zero, zero, and three ranges above it."""
    assert level_of(priority) == level


@pytest.mark.parametrize("bias", [1, 2, 5])
def test_each_level_gets_its_share(bias: int) -> None:
    """Over one round each level has as many turns as its weight, and no level waits to the end for them."""
    selector = Selector(bias=bias)
    weights = [bias**level for level in range(LEVELS)]
    turns = [selector.choose(range(LEVELS)) for _ in range(sum(weights))]
    assert Counter(turns) == dict(enumerate(weights))
    assert turns[0] == LEVELS - 1
    assert max(turns.index(level) for level in range(1, LEVELS)) <= sum(weights) // 2 + 1


def test_a_fork_chooses_as_its_origin_would() -> None:
    """Which is not moved by it."""
    selector = Selector(bias=3)
    for _ in range(7):
        selector.choose(range(LEVELS))
    fork = selector.fork()
    chosen = [fork.choose(range(LEVELS)) for _ in range(50)]
    assert [selector.choose(range(LEVELS)) for _ in range(50)] == chosen


def test_credits_of_a_larger_bias_are_forgotten() -> None:
    """Or a level would wait for as many choices as that bias makes of a round."""
    selector = Selector(bias=1000)
    for _ in range(5):
        selector.choose(range(LEVELS))
    after = Selector(selector.credits, 2)
    assert {after.choose(range(LEVELS)) for _ in range(31)} == set(range(LEVELS))


def test_an_empty_level_costs_the_others_nothing() -> None:
    """Shares are among the levels that hold URLs; one alone has every turn and gathers no debt."""
    selector = Selector()
    assert {selector.choose([1]) for _ in range(100)} == {1}
    turns = Counter(selector.choose([0, 2]) for _ in range(50))
    assert turns == {0: 10, 2: 40}
    assert Selector(selector.credits).choose([0, 2]) == selector.choose([0, 2])


def test_extra_urls_wait_until_no_ordinary_one_is_left(front: FrontQueues) -> None:
    """An extra level is read when all of lower tiers are empty, highest shares first among themselves too."""
    for number, (level, tier) in enumerate([(1, 1), (4, 1), (0, 0), (1, 0), (1, 1), (0, 2)]):
        front.queue_at(level + LEVELS * tier).append(make_url(number))
    taken = []
    while (chosen := front.choose_level()) is not None:
        taken.append((chosen, front.queues[chosen].pop()))
    assert [level for level, _ in taken[:2]] in ([0, 1], [1, 0])
    assert sorted(level for level, _ in taken[2:5]) == [6, 6, 9]
    assert [level for level, _ in taken[5:]] == [10]
    assert [url for level, url in taken if level == 6] == [make_url(0), make_url(4)]
    assert front.counts() == (0,) * TIERS * LEVELS


def test_queues_are_found_again(front: FrontQueues) -> None:
    """Queues of a turn are known by their names, ordinary and extra ones."""
    for number in range(15):
        front.queue_at(number).append(make_url(number))
    again = FrontQueues(front._queues, "queue-3", front.selector)
    assert again.counts() == (1,) * 15
    assert len(FrontQueues(front._queues, "queue-33", front.selector)) == 0


def front_of(queues: Queues, number: int, *older: int) -> FrontQueues:
    return FrontQueues(queues, "queue-3", Selector(levels=Levels.of_number(number)).with_older_levels(older))


@each("number", range(1, 65))
def test_any_number_of_levels_parts_priorities_in_their_order(number: int) -> None:
    """As many as asked for, urgent ones apart from three levels on, and five as ever."""
    levels = Levels.of_number(number)
    assert levels.number == number
    assert [levels.of(start) for start in levels.starts] == list(range(1, number))
    assert list(levels.starts) == sorted(set(levels.starts))
    assert number < 4 or levels.of(URGENT) == number - 1 > levels.of(URGENT - 1)
    assert levels.of(-(2**31)) == 0
    assert number != LEVELS or all(levels.of(priority) == level_of(priority) for priority in range(-2, 200))


@pytest.mark.parametrize(("bias", "number"), [(2, 64), (1.1, 64), (1, 64), (1000, 64), (1.5, 5)])
def test_shares_are_in_the_ratio_of_the_bias(bias: float, number: int) -> None:
    """As far as whole numbers of 49 bits can say it; none has nothing, and credits fit into 64 bits."""
    weights = weights_of(bias, number)
    assert min(weights) >= 1
    assert sum(weights) < 1 << 63
    large = [weight for weight in weights if weight > 1 << 9]
    assert all(above / below == pytest.approx(bias, rel=0.01) for below, above in pairwise(large))
    selector = Selector((0,) * number, bias, Levels.of_number(number))
    assert selector.choose(range(number)) == number - 1


def test_queues_of_another_number_are_kept_until_they_are_moved(tmp_path: Path) -> None:
    """They count, are read last, and give their URLs with their tiers."""
    queues = Queues.restore(EpochDirectory(tmp_path, 1, DiskFiles()), {})
    before = front_of(queues, 5)
    before.extend(make_url(number, priority=number) for number in range(8))
    before.queue_at(5 + 3).append(make_url(8, priority=50))
    front = front_of(queues, 16, 5)
    assert (len(front), sum(front.counts())) == (9, 0)
    front.extend([make_url(9, priority=-1)])
    chosen = front.choose_level()
    assert chosen == 0
    assert front.queues[0].pop() == make_url(9, priority=-1)
    assert front.are_older(front.choose_level() or 0)
    rescoring = RescoringRound()
    rescoring.begin(front, (), older_only=True)
    while rescoring.is_under_way:
        tiers, urls = zip(*rescoring.next_urls(front, 3), strict=True)
        front.put_back(tiers, urls)
    levels = front.selector.levels
    waiting = Counter(levels.of(priority) for priority in range(8)) + Counter([levels.of(50) + 16])
    assert front.waiting_by_level() == waiting
    assert front_of(queues, 1, 5, 16).waiting == len(front) == 9
