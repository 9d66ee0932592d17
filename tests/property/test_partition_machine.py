"""A partition against a model of what surrounds it, in any order of steps, crashes and takeovers."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.scheduler.partition import Partition, PartitionLimits
from bigcrawl.scheduler.queued_url import UNCHECKED
from tests.support.faulty_files import Fault, FaultyFiles, SimulatedCrashError
from tests.support.partition_world import PartitionWorld, make_url

HOSTS = ("a.example", "b.example", "c.example", "big.example")
PRIORITIES = (-5, 0, 1, 12, 100)

urls = st.builds(
    lambda number, flags: make_url(number, HOSTS[number % len(HOSTS)], PRIORITIES[number % 5], flags),
    st.integers(0, 400),
    st.sampled_from((0, 0, 0, UNCHECKED)),
)


# As in a life too long for a test: runs are written, and a log is begun anew.
FRESH_KEYS_MAX = 150
LOG_BYTES_MAX = 4000


class PartitionMachine(RuleBasedStateMachine):
    """Offers URLs, steps, fetches, makes durable, crashes anywhere and takes over."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = pytest.MonkeyPatch()
        self.patches.setattr("bigcrawl.drum.drum.FRESH_KEYS_MAX", FRESH_KEYS_MAX)
        self.patches.setattr("bigcrawl.scheduler.manifest_log.LOG_BYTES_MAX", LOG_BYTES_MAX)
        self.base = Path(tempfile.mkdtemp(prefix="bigcrawl-partition-"))
        self.directory = self.base / "p0001"
        self.world = PartitionWorld()
        self.epoch = 0
        self.rejected = 0

    @initialize(host_hot_max=st.integers(1, 20), parked_hosts_max=st.sampled_from((1, 2, 4096)))
    def begin(self, host_hot_max: int, parked_hosts_max: int) -> None:
        self.limits = PartitionLimits(host_hot_max=host_hot_max, parked_hosts_max=parked_hosts_max)
        self.take_over()

    @rule()
    def take_over(self) -> None:
        self.epoch += 1
        self.partition = Partition.open(self.directory, self.epoch, self.limits)
        self.world.bring_up(self.partition)

    @rule(batch=st.lists(urls, max_size=40))
    def offer(self, batch: list) -> None:
        self.world.offer(batch)

    @rule(start=st.integers(0, 10_000), count=st.integers(100, 700))
    def offer_a_large_host(self, start: int, count: int) -> None:
        self.world.offer(make_url(1000 + start + i, "huge.example") for i in range(count))

    @rule(data=st.binary(max_size=20))
    def offer_rubbish(self, data: bytes) -> None:
        self.world.offer_bytes(b"\xff" + data)
        self.rejected += 1

    @rule(count=st.integers(1, 20))
    def fetch(self, count: int) -> None:
        self.world.fetch(count)

    @rule(room=st.integers(0, 60), entries=st.integers(0, 4))
    def step(self, room: int, entries: int) -> None:
        self.world.step(self.partition, room, entries)

    @rule()
    def make_durable(self) -> None:
        self.partition.forget_batches(self.partition.durable_batch_number)
        self.partition.make_durable()
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
            partition = Partition.open(self.directory, self.epoch, self.limits, files)
            self.world.bring_up(partition)
            self.world.step(partition, room, 2)
            partition.make_durable()
            self.world.trim(partition)
        except (SimulatedCrashError, TransientStoreError):
            pass  # where the disk failed, the process gives up
        self.take_over()

    @rule(at=st.integers(1, 6), fault=st.sampled_from([Fault.DISK_FULL, Fault.FAILS_AFTER]), room=st.integers(0, 60))
    def fail_the_disk(self, at: int, fault: Fault, room: int) -> None:
        self.epoch += 1
        files = FaultyFiles()
        self.partition = Partition.open(self.directory, self.epoch, self.limits, files)
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
            self.world.drain(self.partition, self.limits.host_hot_max)
            assert self.partition.rejected == self.rejected
            assert self.partition.waiting == 0
            assert Partition.verify(self.directory) == []
        finally:
            self.patches.undo()
            shutil.rmtree(self.base)


PartitionMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestPartition = PartitionMachine.TestCase
