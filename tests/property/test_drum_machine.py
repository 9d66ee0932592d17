"""A DRUM against a model, in any order of offers, flushes, merges, crashes and refusals."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

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

from bigcrawl.drum.bucket import CHECK, CHECK_UPDATE, UPDATE
from bigcrawl.drum.files import DiskFiles
from bigcrawl.exceptions import TransientStoreError
from tests.support.disks.faulty_files import Fault, FaultyFiles, SimulatedCrashError
from tests.support.sizes import examples
from tests.support.worlds.drum_world import KINDS, DrumWorld, Offer, ReceiverError, spread

offers = st.builds(
    lambda number, op, value, aux: Offer(spread(number), op, value, aux),
    st.integers(0, 40),
    st.sampled_from((CHECK, UPDATE, CHECK_UPDATE, CHECK_UPDATE)),
    st.integers(0, 200),
    st.sampled_from((b"", b"http://a.example/", b"\x00\xff\n", b"x" * 300)),
)
batches = st.lists(offers, min_size=1, max_size=12)
alike = st.tuples(batches, st.sampled_from((CHECK, UPDATE, CHECK_UPDATE))).map(
    lambda pair: [offer._replace(op=pair[1]) for offer in pair[0]]
)


class DrumMachine(RuleBasedStateMachine):
    """Each tuple that came is told what the model says, in order, and none that was flushed is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.base = Path(tempfile.mkdtemp(prefix="bigcrawl-drum-"))

    @initialize(kind=st.sampled_from(sorted(KINDS)))
    def begin(self, kind: str) -> None:
        self.world = DrumWorld(self.base / "drum", KINDS[kind])
        self.world.open()

    @rule(batch=st.one_of(batches, alike))
    def offer(self, batch: list[Offer]) -> None:
        self.world.offer(batch)

    @rule(batch=st.one_of(batches, alike), times=st.integers(2, 8))
    def offer_often(self, batch: list[Offer], times: int) -> None:
        for _ in range(times):
            self.world.offer(batch)

    @rule()
    def flush(self) -> None:
        self.world.flush()

    @rule()
    def merge(self) -> None:
        self.world.merge()

    @rule()
    def close_and_open(self) -> None:
        assert self.world.drum is not None
        self.world.drum.close()
        self.world.flushed = len(self.world.offers)
        self.world.open()

    @rule()
    def crash(self) -> None:
        self.world.open()

    @rule(refuses=st.integers(1, 3))
    def merge_with_an_unwilling_receiver(self, refuses: int) -> None:
        self.world.refuses = refuses
        for _ in range(refuses + 1):
            with contextlib.suppress(ReceiverError):
                self.world.merge()
        self.world.refuses = 0

    @rule(at=st.integers(1, 60), fault=st.sampled_from(list(Fault)), batch=batches)
    def crash_anywhere(self, at: int, fault: Fault, batch: list[Offer]) -> None:
        offered = self.world.offers
        try:
            self.world.open(FaultyFiles(at, fault))
            # Durable, perhaps, although an offer does not return.
            offered = [*self.world.offers, *batch, *batch]
            self.world.offer(batch)
            self.world.flush()
            self.world.offer(batch)
            self.world.merge()
        except (SimulatedCrashError, TransientStoreError):
            pass  # where the disk failed, the process gives up
        self.world.offers = offered
        self.world.open()

    @rule(
        at=st.integers(1, 40),
        fault=st.sampled_from([Fault.DISK_FULL, Fault.FAILS_AFTER]),
        lasting=st.integers(1, 3),
        batch=batches,
    )
    def fail_the_disk(self, at: int, fault: Fault, lasting: int, batch: list[Offer]) -> None:
        files = FaultyFiles(10**9, fault, lasting)
        self.world.open(files)
        files.fail(files.operations + at, fault)
        for step in (
            lambda: self.world.offer(batch),
            self.world.flush,
            lambda: self.world.offer(batch),
            self.world.merge,
        ):
            for _ in range(lasting + 1):
                try:
                    step()
                except TransientStoreError:
                    continue
                break
        files.mend()
        self.world.merge()

    @precondition(lambda self: self.world.drum is not None)
    @invariant()
    def is_sound(self) -> None:
        assert self.world.drum is not None
        self.world.drum._check()

    def teardown(self) -> None:
        try:
            if not hasattr(self, "world"):
                return
            self.world.open(DiskFiles())
            self.world.merge()
            drum = self.world.drum
            assert drum is not None
            held = self.world.held()
            assert len(drum) == len(held) if self.world.kind.value is None else len(drum) >= len(held)
            for number in range(45):
                self.world.offer([Offer(spread(number), CHECK, 0, b"")])
            self.world.merge()
            assert drum.verify() == []
            names = {path.name for path in self.world.directory.iterdir() if path.is_file()}
            assert names == {"MANIFEST"}, "told spills are gone"
        finally:
            shutil.rmtree(self.base)


def test_drum_machine() -> None:
    """Whatever happens to it in whatever order, by the rules above."""
    run_state_machine_as_test(DrumMachine, settings=settings(max_examples=examples(25), stateful_step_count=25))
