"""A partition that is opened again with another number of front queues."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from bigcrawl.scheduler.partition.fold import budgeting
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from tests.support.keys import pld_key
from tests.support.worlds.partition_world import PartitionWorld, SetBudgets, make_url, pld_of

if TYPE_CHECKING:
    from pathlib import Path

HOSTS = [f"{name}.example" for name in "abcd"]
NUMBERS = (5, 64, 1, 2, 5, 16)


def open_with(directory: Path, number: int, epoch: int, budgets: SetBudgets | None) -> Partition:
    limits = PartitionLimits(host_hot_max=40, front_queues=number)
    return Partition.open(directory, epoch, limits, budgets=budgets, pld_of=pld_of, pld_key=pld_key)


@pytest.mark.parametrize("budgets", [None, SetBudgets(3)])
def test_every_url_is_admitted_once_whatever_the_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budgets: SetBudgets | None
) -> None:
    """Those of the current turn, of later ones and of those over budget; moves take several steps."""
    monkeypatch.setattr(budgeting, "_RESCORED_A_STEP", 7)
    rng, world = random.Random(5), PartitionWorld()
    numbers = set()
    for epoch, number in enumerate(NUMBERS, 1):
        partition = open_with(tmp_path / "p", number, epoch, budgets)
        if epoch > 1:
            world.bring_up(partition)
        at = range(1000 * epoch, 1000 * epoch + 60)
        world.offer([make_url(one, rng.choice(HOSTS), rng.choice((-5, 0, 1, 3, 40, 200))) for one in at])
        world.step(partition, room=4)
        partition._check()
        names = [name for name in partition.state.turns.queue_states() if name.startswith("queue-")]
        numbers |= {(name.partition("of")[2] or "5") != str(number) for name in names}
    assert numbers == {False, True}, "some waited under their old names"
    while partition.state.waiting:
        world.fetch(40)
        world.step(partition, room=50)
    assert sorted(url.key for url in world.admitted) == sorted(
        make_url(one).key for epoch in range(1, 1 + len(NUMBERS)) for one in range(1000 * epoch, 1000 * epoch + 60)
    )
    partition._check()


def test_what_waits_is_parted_anew(tmp_path: Path) -> None:
    """So that a higher priority comes first among what one queue held before."""
    world, partition = PartitionWorld(), open_with(tmp_path / "p", 1, 1, None)
    world.offer(make_url(number, f"host{number}.example", number) for number in range(50))
    world.step(partition, room=0)
    partition = open_with(tmp_path / "p", 64, 2, None)
    world.bring_up(partition)
    world.step(partition, room=1)
    assert [url.priority for url in world.admitted] == [49]
