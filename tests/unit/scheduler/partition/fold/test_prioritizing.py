"""A partition with a prioritizer: who comes first, with budgets and without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bigcrawl.links import Links
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.budgets.in_degrees import EMPTY_COUNTS, InDegreeCounts, InDegreeRanks
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.queues.prioritizers import SafePrioritizer, make_prioritizer
from tests.support.keys import pld_key, url_key
from tests.support.worlds.partition_world import PartitionWorld, SetBudgets, make_edges, pld_of, waiting_by_level

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.records.queued_url import QueuedUrl

# The highest level has nearly everything, and no host is kept waiting.
LIMITS = PartitionLimits(host_hot_max=10_000, host_hot_low=10_000, priority_bias=1_000)
LINKS = [(f"s{n}.example", "good.example") for n in range(12)]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state" / "p0007"


def scores_of(name: str, generation: int = 1) -> SafePrioritizer:
    prioritizer = make_prioritizer(name)
    assert prioritizer is not None
    return SafePrioritizer(prioritizer, InDegreeRanks(EMPTY_COUNTS), generation, counts_links=name != "depth")


def open_with(directory: Path, name: str, budgets: SetBudgets | None = None, epoch: int = 1) -> Partition:
    partition = Partition.open(directory, epoch, LIMITS, budgets=budgets, pld_of=pld_of, pld_key=pld_key)
    partition.sources.set_prioritizing(scores_of(name))
    return partition


def link(address: str, depth: int = 1) -> QueuedUrl:
    return links_encoder(Links([address]), depth)(url_key(address), address)


def pages(host: str, count: int = 3, depth: int = 1) -> list[QueuedUrl]:
    return [link(f"http://{host}/{n}", depth) for n in range(count)]


@pytest.mark.parametrize("budgets", [None, SetBudgets(100)])
def test_in_degrees_decide_who_comes_first(directory: Path, budgets: SetBudgets | None) -> None:
    """Of URLs that come with the links and later; links are counted without budgets, too, and kept."""
    world, partition = PartitionWorld(), open_with(directory, "in-degree", budgets)
    world.offer(pages("poor.example") + pages("good.example"), make_edges(LINKS))
    world.step(partition, room=3)
    assert {url.host for url in world.admitted} == {"good.example"}
    assert {url.priority for url in world.admitted} == {12}
    partition = open_with(directory, "in-degree", budgets, 2)
    world.bring_up(partition)
    world.offer([link("http://www.good.example/more")])
    world.step(partition, room=1)
    assert world.admitted[-1].host == "www.good.example"
    assert partition.state.in_degrees == InDegreeCounts.of(np.array([12], dtype=np.uint32))
    partition._check()


def test_without_budgets_everything_stays_in_the_first_turn(directory: Path) -> None:
    """However many URLs join it: one of a later turn would wait for all others, whatever its priority."""
    world, partition = PartitionWorld(), open_with(directory, "depth")
    world.offer(pages("a.example", 5_000, depth=9))
    world.step(partition, room=0)
    world.offer(pages("b.example", 3, depth=0))
    world.step(partition, room=3)
    assert {url.host for url in world.admitted} == {"b.example"}
    assert list(partition.state.turns.by_turn) == [0]


def test_what_was_over_budget_is_scored_with_the_links_that_came_since(directory: Path) -> None:
    """When it passes, it has the priority of that time."""
    world, partition = PartitionWorld(), open_with(directory, "in-degree", SetBudgets(0))
    world.offer(pages("good.example"))
    world.step(partition, room=3)
    world.offer([], make_edges(LINKS))
    world.step(partition, room=3)
    assert not world.admitted
    partition.sources.set_budgets(SetBudgets(10))
    world.step(partition, room=3)
    assert {url.priority for url in world.admitted} == {12}


def new_scores(partition: Partition, name: str, generation: int) -> None:
    partition.sources.set_prioritizing(scores_of(name, generation))


@pytest.mark.parametrize("budgets", [None, SetBudgets(100)])
def test_new_scores_take_effect_on_queued_urls(directory: Path, budgets: SetBudgets | None) -> None:
    """Links that came since make a queued URL the next one, once the generation of scores is another."""
    world, partition = PartitionWorld(), open_with(directory, "in-degree", budgets)
    world.offer(pages("poor.example") + pages("good.example"))
    world.step(partition, room=0)
    world.offer([], make_edges(LINKS))
    world.step(partition, room=0)
    assert waiting_by_level(partition) == (0, 6, 0, 0, 0)
    new_scores(partition, "in-degree", 2)
    world.step(partition, room=0)
    assert waiting_by_level(partition) == (0, 3, 0, 3, 0)
    number = partition.manifest.number
    world.step(partition, room=0)
    assert partition.manifest.number == number, "a step with nothing to do commits nothing"
    world.step(partition, room=3)
    assert {(url.host, url.priority) for url in world.admitted} == {("good.example", 12)}
    partition._check()


def test_another_prioritizer_scores_what_is_queued_when_a_partition_is_opened(directory: Path) -> None:
    """By depth then, what was found at random before."""
    world, partition = PartitionWorld(), open_with(directory, "in-degree")
    world.offer(pages("deep.example", depth=40) + pages("start.example", depth=0))
    world.step(partition, room=0)
    partition = open_with(directory, "depth", epoch=2)
    world.bring_up(partition)
    world.step(partition, room=3)
    assert {url.host for url in world.admitted} == {"start.example"}


def test_no_url_is_lost_or_fetched_twice_while_all_are_scored_again(directory: Path) -> None:
    """Over several steps, with URLs that come and go meanwhile, and an owner that dies in the middle."""
    world, partition = PartitionWorld(), open_with(directory, "depth")
    offered = pages("a.example", 9_000, depth=9)
    world.offer(offered)
    world.step(partition, room=10)
    for epoch, name in enumerate(("in-degree", "depth"), 2):
        new_scores(partition, name, epoch)
        more = pages(f"{name}.example", 50, depth=0)
        world.offer(more)
        offered += more
        world.step(partition, room=100)
        assert partition.state.turns.rescoring.is_under_way, "it is under way"
        partition._check()
        partition = open_with(directory, name, epoch=epoch)
        world.bring_up(partition)
        for _ in range(4):
            world.step(partition, room=100)
        assert not partition.state.turns.rescoring.is_under_way
        partition._check()
    while partition.state.waiting:
        world.hot.clear()
        world.step(partition, room=5_000)
    assert sorted(url.key for url in world.admitted) == sorted(url.key for url in offered)


def test_a_later_turn_is_scored_again_when_it_begins(directory: Path) -> None:
    """Its URLs are not touched before, and those that join it later are not scored twice."""
    world, partition = PartitionWorld(), open_with(directory, "in-degree", SetBudgets(2))
    world.offer(pages("good.example", 4))
    world.step(partition, room=2)
    world.offer([], make_edges(LINKS))
    new_scores(partition, "in-degree", 2)
    world.step(partition, room=0)
    assert partition.state.turns.rescoring.rescored_ever == 0
    world.step(partition, room=1)
    assert partition.state.turns.state.turn == 1
    world.step(partition, room=0)
    assert waiting_by_level(partition) == (0, 0, 0, 1, 0)
    partition._check()
