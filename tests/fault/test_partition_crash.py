"""A partition whose process dies, or whose disk fills up, at every single file operation of its life."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from bigcrawl.drum.files import DiskFiles
from bigcrawl.exceptions import CorruptionError, TransientStoreError
from bigcrawl.features.copies.fold import Copies
from bigcrawl.scheduler.partition.directory import verify_newest
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.queued_url import UNCHECKED
from tests.support.disks.faulty_files import Fault, FaultyFiles, SimulatedCrashError
from tests.support.disks.power_cut import Lost, PowerCutFiles
from tests.support.keys import pld_key
from tests.support.worlds.partition_world import (
    PartitionWorld,
    SetBudgets,
    make_edges,
    make_runs_early,
    make_url,
    pld_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Three hot URLs a host: with 8 and 40 URLs of one host a step, most of them are parked.
LIMITS = PartitionLimits(host_hot_max=3, features=(Copies(),))


class Life:
    """An owner's life, epoch after epoch: opens, steps, makes durable, and goes on after each fault."""

    def __init__(self, directory: Path, files: FaultyFiles, budgets: SetBudgets | None = None) -> None:
        self.directory = directory
        self.budgets = budgets
        self.world = PartitionWorld()
        self.files: DiskFiles = files
        self.epoch = 0
        self.partition: Partition | None = None
        self.faults = 0

    def run(self) -> None:
        for number, action in enumerate(self._actions()):
            self._survive(action)
            assert self.partition is not None, number
            self.partition._check()
        self._survive(lambda: self.world.drain(self._owned(), LIMITS.host_hot_max))
        self.world.check_copies(self._owned())
        assert verify_newest(self.directory) == []

    def _actions(self) -> list[Callable[[], None]]:
        world = self.world
        return [
            lambda: world.offer(make_url(i, f"h{i % 4}.example") for i in range(8)),
            lambda: world.offer_contents((i % 5, 1 + i) for i in range(12)),
            self._step,
            lambda: world.offer(
                (make_url(i, f"s{i % 3}.big.example", i % 2) for i in range(4, 44)),
                make_edges([("h1.example", "big.example"), ("h2.example", "big.example")]),
            ),
            self._step,
            self._make_durable,
            lambda: world.offer([make_url(0), make_url(100, "u.example", 100, UNCHECKED)]),
            lambda: world.offer_bytes(b"\x07 not a batch"),
            self._step,
            lambda: world.offer_contents((i % 7, 1 + i % 20) for i in range(5, 45)),
            self._step,
            self._open,
            lambda: world.offer([*(make_url(i, f"h{i % 3}.example") for i in range(200, 300))]),
            self._step,
            self._make_durable,
            self._step,
            self._make_durable,
            self._open,
            self._make_durable,
        ]

    def _owned(self) -> Partition:
        if self.partition is None:
            self._open()
        assert self.partition is not None
        return self.partition

    def _reopen(self) -> None:
        self._owned()

    def _open(self) -> None:
        self.partition = None
        self.epoch += 1
        partition = Partition.open(
            self.directory, self.epoch, LIMITS, self.files, budgets=self.budgets, pld_of=pld_of, pld_key=pld_key
        )
        self.world.bring_up(partition)
        self.partition = partition

    def _step(self) -> None:
        self.world.fetch(1)
        self.world.step(self._owned(), room=5)

    def _make_durable(self) -> None:
        partition = self._owned()
        partition.committed.forget_batches(min(partition.committed.durable_batch_number, self.world.batch_number))
        partition.committed.make_durable()
        self.world.trim(partition)

    def _survive(self, action: Callable[[], None]) -> None:
        for _ in range(6):
            try:
                action()
                self._owned()
                return
            except SimulatedCrashError:
                # The machine lives on: what was written is there, and another process takes over.
                self.files = DiskFiles()
                self.partition = None
                if action.__name__ == "<lambda>":
                    action = self._reopen
            except TransientStoreError:
                if self.partition is not None:
                    self.partition._check()
            self.faults += 1
        pytest.fail("the fault does not end")


def count_operations(directory: Path, budgets: SetBudgets | None) -> int:
    files = FaultyFiles()
    Life(directory, files, budgets).run()
    return files.operations


# Every operation takes some seconds; each run of the tests takes every seventh, each fault others. With budgets
# a URL meets several queues, and a step several tables.
@pytest.mark.parametrize(
    ("budgets", "stride"),
    [
        (None, 7),
        (SetBudgets(2, for_link=1), 29),
        pytest.param(None, 1, marks=pytest.mark.fault),
        pytest.param(SetBudgets(2, for_link=1), 1, marks=pytest.mark.fault),
    ],
)
@pytest.mark.parametrize("fault", list(Fault))
def test_no_url_is_lost_or_admitted_twice_wherever_it_fails(
    tmp_path: Path, fault: Fault, budgets: SetBudgets | None, stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever operation a crash or a failing disk meets, every URL is admitted once, in order."""
    # Runs are written, and the log is begun anew, several times in so short a life.
    monkeypatch.setattr("bigcrawl.scheduler.partition.manifest_log.LOG_BYTES_MAX", 1500)
    make_runs_early(monkeypatch, 20)
    monkeypatch.setattr("bigcrawl.scheduler.queues.turns.TURN_CLOSES_AT", 12)
    monkeypatch.setattr("bigcrawl.scheduler.queues.segments.BLOCK_URLS_MAX", 8)
    monkeypatch.setattr("bigcrawl.scheduler.partition.fold.budgeting.REREAD_STARVED_MAX", 30)
    total = count_operations(tmp_path / "count", budgets)
    assert total > 80
    for at in range(1 + 3 * list(Fault).index(fault) % stride, total + 1, stride):
        files = FaultyFiles(at, fault, lasting=1 + at % 3)
        life = Life(tmp_path / f"p{at}", files, budgets)
        try:
            life.run()
        except BaseException as error:
            error.add_note(f"{fault} at operation {at}: {files.log[at - 1]}")
            raise
        # A rename that was done and not answered for is found out.
        is_healed = fault is Fault.FAILS_AFTER and files.log[at - 1] == "replace MANIFEST"
        assert life.faults >= 1 or is_healed, f"operation {at} was not met"
        shutil.rmtree(tmp_path / f"p{at}")


@pytest.mark.parametrize("lost", list(Lost))
def test_a_power_cut_back_to_the_durable_point_is_folded(
    tmp_path: Path, lost: Lost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever unsynced bytes a disk forgets, what it kept is brought level with Redis; nothing is lost silently."""
    monkeypatch.setattr("bigcrawl.scheduler.partition.manifest_log.LOG_BYTES_MAX", 4000)
    make_runs_early(monkeypatch, 100)
    refused = 0
    budgets = SetBudgets(2)
    for steps in range(1, 12):
        world, files = PartitionWorld(), PowerCutFiles()
        directory, medium = tmp_path / f"p{steps}", tmp_path / f"medium{steps}"
        partition = Partition.open(directory, 1, LIMITS, files, budgets=budgets)
        world.offer(make_url(i, f"h{i % 5}.example") for i in range(60))
        world.step(partition, room=10)
        partition.committed.make_durable()
        world.trim(partition)
        for number in range(steps):
            world.offer(make_url(1000 + 20 * number + i, f"h{i % 6}.example", i % 3) for i in range(20))
            world.offer_contents(((7 * number + i) % 23, 1 + 20 * number + i) for i in range(20))
            world.fetch(1)
            world.step(partition, room=7)
            if number % 4 == 3:
                partition.committed.make_durable()
                world.trim(partition)
        durable_batch = partition.committed.durable_batch_number
        files.cut_power(directory, medium, lost)
        try:
            partition = Partition.open(medium, 2, LIMITS, budgets=budgets)
        except CorruptionError:
            refused += 1
            partition = Partition.open(medium, 2, LIMITS, fall_back=True, budgets=budgets)
        assert durable_batch <= partition.manifest.batch_number <= world.batch_number
        world.bring_up(partition)
        partition = Partition.open(medium, 3, LIMITS, budgets=budgets)
        world.bring_up(partition)
        world.drain(partition, LIMITS.host_hot_max)
        world.check_copies(partition)
    # A log that was cut is a log of fewer steps; zeros in it, or less of what it names than of it, are damage.
    if lost in {Lost.ALL, Lost.NAMES}:
        assert not refused
    if lost in {Lost.ZEROED, Lost.OF_DATA}:
        assert refused


def test_everything_durable_was_synced(tmp_path: Path) -> None:
    """A durable point leaves no file that its manifest names unsynced, and syncs the manifest after them."""
    files = FaultyFiles()
    partition = Partition.open(tmp_path / "p", 1, LIMITS, files)
    world = PartitionWorld()
    for number in range(4):
        world.offer(make_url(100 * number + i, f"h{i % 3}.example", i % 12) for i in range(100))
        world.step(partition, room=5)
        partition.committed.make_durable()
        manifest_synced = last_of(files.log, "sync MANIFEST", "sync MANIFEST.tmp")
        for name in partition.committed.manifest.files_needed():
            written = last_of(files.log, f"write {name}", f"append {name}")
            assert written < last_of(files.log, f"sync {name}") < manifest_synced, name
        assert last_of(files.log, "append MANIFEST", "write MANIFEST.tmp") < manifest_synced
        named = [f"append {name}" for name in partition.committed.manifest.files_needed()]
        first_of = (
            min(files.log.index(line) for line in named) if number == 0 else last_of(files.log, "replace MANIFEST")
        )
        assert first_of < last_of(files.log, "sync e1")
        assert partition.committed.durable_inbox_id == partition.manifest.inbox_id
        assert not partition.committed.has_undurable_changes


def test_nothing_is_deleted_before_the_durable_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps delete nothing, and a durable point deletes only behind its own syncs."""
    monkeypatch.setattr("bigcrawl.scheduler.queues.segments.SEGMENT_BYTES_MAX", 500)
    files = FaultyFiles()
    partition = Partition.open(tmp_path / "p", 1, LIMITS, files)
    partition.committed.make_durable()
    world = PartitionWorld()
    world.offer(make_url(i, f"h{i}.example") for i in range(100))
    for _ in range(30):
        world.fetch(3)
        world.step(partition, room=10)
    assert not any(line.startswith("unlink") for line in files.log[files.operations - 30 :])
    files.log.clear()
    partition.committed.make_durable()
    deleted = [line for line in files.log if line.startswith("unlink")]
    assert any("queue" in line for line in deleted)
    assert min(map(files.log.index, deleted)) > files.log.index("sync e1")


def last_of(log: list[str], *lines: str) -> int:
    """Where one of the lines stands last; -1 when none does."""
    return max((place for place, line in enumerate(log) if line in lines), default=-1)
