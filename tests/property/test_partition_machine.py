"""A partition against a model of what surrounds it, in any order of steps, crashes, takeovers and new budgets."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.features.copies.fold import Copies
from bigcrawl.scheduler.budgets.in_degrees import InDegreeCounts
from bigcrawl.scheduler.partition.directory import verify_newest
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.queued_url import UNCHECKED
from tests.support.disks.faulty_files import Fault, FaultyFiles, SimulatedCrashError
from tests.support.keys import pld_key
from tests.support.sizes import examples
from tests.support.worlds.partition_world import (
    PartitionWorld,
    SetBudgets,
    make_edges,
    make_runs_early,
    make_url,
    pld_of,
)

HOSTS = ("a.example", "b.example", "c.example", "s1.farm.example", "s2.farm.example")
PLDS = ("a.example", "b.example", "c.example", "farm.example", "huge.example", "d.example")
PRIORITIES = (-5, 0, 1, 12, 100)

urls = st.builds(
    lambda number, flags: make_url(number, HOSTS[number % len(HOSTS)], PRIORITIES[number % 5], flags),
    st.integers(0, 400),
    st.sampled_from((0, 0, 0, UNCHECKED)),
)

edges = st.lists(st.tuples(st.sampled_from(PLDS), st.sampled_from(PLDS)), max_size=6)
budgets = st.one_of(
    st.none(),
    st.builds(
        SetBudgets,
        st.integers(0, 4),
        st.dictionaries(st.sampled_from(PLDS), st.integers(0, 30), max_size=2),
        for_link=st.integers(0, 2),
    ),
)

# As in a life too long for a test: runs are written, a log is begun anew, turns close, and re-reads take many steps.
FRESH_MAX = 150
SHORTENED = {
    "partition.manifest_log.LOG_BYTES_MAX": 4000,
    "queues.segments.BLOCK_URLS_MAX": 8,
    "queues.segments.SEGMENT_BYTES_MAX": 2000,
    "queues.turns.TURN_CLOSES_AT": 12,
    "queues.turn_state._REREAD_LEAST": 5,
    "queues.turn_state._TURN_SMALL": 3,
    "queues.turn_state._TURN_LARGE": 6,
    "partition.fold.budgeting.REREAD_STARVED_MAX": 60,
    "partition.fold.budgeting._REREAD_PORTION": 20,
}


class PartitionMachine(RuleBasedStateMachine):
    """Offers URLs, steps, fetches, makes durable, crashes anywhere and takes over."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = pytest.MonkeyPatch()
        make_runs_early(self.patches, FRESH_MAX)
        for name, value in SHORTENED.items():
            self.patches.setattr(f"bigcrawl.scheduler.{name}", value)
        self.base = Path(tempfile.mkdtemp(prefix="bigcrawl-partition-"))
        self.directory = self.base / "p0001"
        self.world = PartitionWorld()
        self.epoch = 0
        self.rejected = 0
        self.budgets: SetBudgets | None = None
        self.always_had_budgets = True
        self.linked: set[tuple[str, str]] = set()

    @initialize(host_hot_max=st.integers(1, 20), parked_hosts_max=st.sampled_from((1, 2, 4096)), new=budgets)
    def begin(self, host_hot_max: int, parked_hosts_max: int, new: SetBudgets | None) -> None:
        self.limits = PartitionLimits(host_hot_max, parked_hosts_max=parked_hosts_max, features=(Copies(),))
        self.record_budgets(new)
        self.take_over()

    def record_budgets(self, new: SetBudgets | None) -> None:
        self.budgets = new
        self.always_had_budgets &= new is not None

    def open(self, files: FaultyFiles | None = None) -> Partition:
        return Partition.open(
            self.directory, self.epoch, self.limits, files, budgets=self.budgets, pld_of=pld_of, pld_key=pld_key
        )

    @rule()
    def take_over(self) -> None:
        self.epoch += 1
        self.partition = self.open()
        self.world.bring_up(self.partition)

    @rule(new=budgets)
    def change_budgets(self, new: SetBudgets | None) -> None:
        self.record_budgets(new)
        self.partition.sources.set_budgets(new)

    @rule(batch=st.lists(urls, max_size=40), links=edges)
    def offer(self, batch: list, links: list[tuple[str, str]]) -> None:
        self.world.offer(batch, make_edges(links))
        self.linked.update(link for link in links if link[0] != link[1])

    @rule(links=edges)
    def offer_links_alone(self, links: list[tuple[str, str]]) -> None:
        if links:
            self.world.offer_bytes(b"", make_edges(links))
            self.linked.update(link for link in links if link[0] != link[1])

    @rule(start=st.integers(0, 10_000), count=st.integers(100, 700))
    def offer_a_large_host(self, start: int, count: int) -> None:
        self.world.offer(make_url(1000 + start + i, "huge.example") for i in range(count))

    @rule(rows=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 200)), min_size=1, max_size=80))
    def offer_contents(self, rows: list[tuple[int, int]]) -> None:
        self.world.offer_contents(rows)

    @rule(data=st.binary(max_size=20))
    def offer_rubbish(self, data: bytes) -> None:
        self.world.offer_bytes(b"\xff" + data, b"no edges")
        self.rejected += 1

    @rule(count=st.integers(1, 20))
    def fetch(self, count: int) -> None:
        self.world.fetch(count)

    @rule(room=st.integers(0, 60), entries=st.integers(0, 4))
    def step(self, room: int, entries: int) -> None:
        self.world.step(self.partition, room, entries)

    @rule(away=st.dictionaries(st.sampled_from((*HOSTS, "huge.example")), st.integers(0, 1), max_size=3))
    def hosts_go_away(self, away: dict[str, int]) -> None:
        self.world.away = away

    @precondition(lambda self: self.epoch)
    @invariant()
    def withheld_is_part_of_what_waits(self) -> None:
        retired = [host for host, hot_max in self.world.away.items() if not hot_max]
        assert self.partition.state.withheld() <= self.partition.state.withheld(retired) <= self.partition.state.waiting

    @rule()
    def make_durable(self) -> None:
        self.partition.committed.forget_batches(self.partition.committed.durable_batch_number)
        self.partition.committed.make_durable()
        self.world.trim(self.partition)

    @rule(room=st.integers(0, 60))
    def crash_between_commit_and_admission(self, room: int) -> None:
        self.partition.step(self.world.unread(self.partition), room, self.world.hot)
        self.take_over()

    @rule(
        at=st.integers(1, 25),
        fault=st.sampled_from(list(Fault)),
        room=st.integers(0, 60),
    )
    def crash_anywhere(self, at: int, fault: Fault, room: int) -> None:
        self.epoch += 1
        try:
            files = FaultyFiles(at, fault)
            partition = self.open(files)
            self.world.bring_up(partition)
            self.world.step(partition, room, 2)
            partition.committed.make_durable()
            self.world.trim(partition)
        except (SimulatedCrashError, TransientStoreError):
            pass  # where the disk failed, the process gives up
        self.take_over()

    @rule(at=st.integers(1, 6), fault=st.sampled_from([Fault.DISK_FULL, Fault.FAILS_AFTER]), room=st.integers(0, 60))
    def fail_the_disk(self, at: int, fault: Fault, room: int) -> None:
        self.epoch += 1
        files = FaultyFiles()
        self.partition = self.open(files)
        self.world.bring_up(self.partition)
        files.fail(files.operations + at, fault)
        before = repr(self.partition)
        try:
            self.world.step(self.partition, room, 2)
        except TransientStoreError:
            assert repr(self.partition) == before, "a step that failed changed nothing"
        files.mend()

    @precondition(lambda self: self.epoch)
    @invariant()
    def is_sound(self) -> None:
        self.partition._check()

    def teardown(self) -> None:
        try:
            self.partition.sources.set_budgets(SetBudgets(1) if self.budgets else None)
            self.world.drain(self.partition, self.limits.host_hot_max)
            assert self.partition.manifest.rejected >= self.rejected
            if self.always_had_budgets:
                self.check_in_degrees()
            assert self.partition.state.waiting == 0
            self.world.check_copies(self.partition)
            assert verify_newest(self.directory) == []
        finally:
            self.patches.undo()
            shutil.rmtree(self.base)

    def check_in_degrees(self) -> None:
        """Every link that was offered between two PLDs counts once, in the table and in the counts."""
        found = self.partition.in_degrees(np.array([pld_key(pld) for pld in PLDS], dtype=np.uint64)).tolist()
        assert found == [sum(target == pld for _, target in self.linked) for pld in PLDS]
        assert self.partition.state.in_degrees == InDegreeCounts.of(np.array(found, dtype=np.uint32))
        assert self.partition.manifest.rejected == 2 * self.rejected


def test_partition_machine() -> None:
    """Whatever happens to it in whatever order, by the rules above."""
    run_state_machine_as_test(PartitionMachine, settings=settings(max_examples=examples(25), stateful_step_count=25))
