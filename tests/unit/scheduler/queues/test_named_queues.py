from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.drum.files import DiskFiles
from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory
from bigcrawl.scheduler.queues.fifo import Queues
from bigcrawl.scheduler.queues.turn_state import OverBudgetQueue
from tests.support.worlds.partition_world import make_url

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def epoch(tmp_path: Path) -> EpochDirectory:
    return EpochDirectory(tmp_path, 1, DiskFiles())


@pytest.fixture
def queues(epoch: EpochDirectory) -> Queues:
    return Queues.restore(epoch, {})


def test_a_fork_changes_nothing_in_its_origin(queues: Queues) -> None:
    """Queues that a step changed, made or removed are as they were when it is given up."""
    for name in ("queue-0-1", "queue-1-1", "arrived-1"):
        queues[name].append(make_url(1))
    queues.flush()
    before = dict(queues.states())
    fork = queues.fork()
    fork["queue-0-1"].append(make_url(2))
    fork["queue-1-1"].pop()
    fork.remove("queue-1-1")
    fork["queue-2-1"].append(make_url(3))
    fork.flush()
    fork._check()
    assert set(fork.states()) == {"queue-0-1", "queue-2-1", "arrived-1"}
    assert queues.states() == before
    queues._check()
    assert queues["queue-1-1"].peek() == make_url(1)


def test_only_queues_that_changed_are_written(queues: Queues, tmp_path: Path) -> None:
    """A step that touches one queue of many leaves the states of the others the very same objects."""
    for number in range(50):
        queues[f"queue-{number}-1"].append(make_url(number))
    queues.flush()
    fork = queues.fork()
    fork["queue-7-1"].append(make_url(99))
    fork.flush()
    changed = [name for name, state in fork.states().items() if state is not queues.states()[name]]
    assert changed == ["queue-7-1"]


def test_a_queue_with_urls_is_not_removed(queues: Queues) -> None:
    """Removing is for queues that are empty; a name nobody has used is no error."""
    queues["queue-0-1"].append(make_url(1))
    with pytest.raises(AssertionError):
        queues.remove("queue-0-1")
    queues.remove("queue-9-9")
    assert queues.waiting("queue-0-1") == 1
    assert queues.waiting("queue-9-9") == 0


def test_a_reread_takes_each_url_once_and_failed_ones_first(queues: Queues, epoch: EpochDirectory) -> None:
    """What fails, and what arrives meanwhile, is of the next generation; failed ones had arrived before."""
    over = OverBudgetQueue(queues, 1, is_rereading=False)
    for number in range(100):
        over.extend([make_url(number)], failed=False)
    queues.flush()
    over.begin_reread()
    taken = list(over.pop_block())
    over.extend([make_url(1000)], failed=False)
    for url in taken:
        over.extend([url], failed=True)
    queues.flush()
    restored = Queues.restore(epoch, queues.states())
    over = OverBudgetQueue(restored, over.generation, is_rereading=True)
    over._check()
    assert len(over) == 101
    while block := over.pop_block():
        taken += block
    assert taken == [make_url(number) for number in range(100)]
    assert not over.is_rereading
    assert set(restored.names) == {"failed-2", "arrived-2"}
    over.begin_reread()
    again = list(over.pop_block())
    assert again == [make_url(number) for number in range(len(again))]
    assert list(over.pop_block()) == [make_url(1000)]
    assert list(over.pop_block()) == []
    assert len(over) == 0
    over._check()
