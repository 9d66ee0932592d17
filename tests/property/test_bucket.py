"""A bucket against a dict, in any order of batches, forgetting, dropped results, crashes and reopening."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
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

from bigcrawl.drum.bucket import CHECK, EMPTY_BUCKET, Bucket, BucketState, Kind
from bigcrawl.drum.memtable import Memtable
from bigcrawl.drum.run import RunInfo
from tests.support.disks.faulty_files import Fault, FaultyFiles, SimulatedCrashError
from tests.support.sizes import examples

if TYPE_CHECKING:
    from bigcrawl.drum.format import KeyArray

FRESH_MAX = 20
TURN = np.dtype([("turn", "<u4"), ("used", "<u2")])
KINDS = (
    Kind("run", fresh_max=FRESH_MAX),
    Kind("turn", TURN, fresh_max=FRESH_MAX),
    Kind("count", np.dtype("u1"), increment=True, fresh_max=FRESH_MAX),
    Kind("count", np.dtype("<u8"), increment=True, fresh_max=FRESH_MAX),
)

# Some keys come again and again, others are spread over all there are.
keys = st.one_of(st.integers(0, 30), st.integers(0, 30).map(lambda n: n << 58), st.integers(0, 2**64 - 1))
# A number becomes a value of the kind; some are at its ends.
entries = st.tuples(keys, st.integers(0, 2), st.one_of(st.integers(0, 3), st.integers(250, 256)))


class BucketMachine(RuleBasedStateMachine):
    """Applies, checks, forgets; commits or drops; crashes, and reopens from what a manifest kept."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="bigcrawl-bucket-"))

    @initialize(kind=st.sampled_from(KINDS))
    def begin(self, kind: Kind) -> None:
        self.kind = kind
        self.model: dict[int, Any] = {}
        self.files = FaultyFiles()
        self.bucket = Bucket(self.directory, kind, EMPTY_BUCKET, self.files)

    # Values of the model are what .tolist() says of those of the bucket; None in a set.

    def value(self, number: int) -> Any:
        if self.kind.value is None:
            return None
        if self.kind.value == TURN:
            return (number, number & 3)
        highest = int(np.iinfo(self.kind.value).max)
        return number if number < 250 else highest - (256 - number)

    def changed(self, before: Any, given: Any) -> Any:
        if not self.kind.increment or self.kind.value is None:
            return given
        return min((before or 0) + given, int(np.iinfo(self.kind.value).max))

    def zero(self) -> Any:
        return None if self.kind.value is None else np.zeros(1, dtype=self.kind.value).tolist()[0]

    def arrays(self, batch: list[tuple[int, int, int]]) -> tuple[KeyArray, Any, Any]:
        values = [self.value(number) for _, _, number in batch]
        return (
            np.array([key for key, _, _ in batch], dtype=np.uint64),
            np.array([op for _, op, _ in batch], dtype=np.uint8),
            None if self.kind.value is None else np.array(values, dtype=self.kind.value),
        )

    @rule(batch=st.lists(entries, max_size=45), is_committed=st.sampled_from((True, True, True, False)))
    def apply(self, batch: list[tuple[int, int, int]], is_committed: bool) -> None:
        result = self.bucket.apply(*self.arrays(batch))
        model = dict(self.model)
        found, before = [], []
        for key, op, number in batch:
            found.append(key in model)
            before.append(model.get(key, self.zero()))
            if op != CHECK:
                model[key] = self.changed(model.get(key), self.value(number))
        assert result.found.tolist() == found
        assert (result.values is None) == (self.kind.value is None)
        if result.values is not None:
            assert result.values.tolist() == before
        if is_committed:
            self.bucket.commit(result)
            self.model = model

    @precondition(lambda self: self.kind.value is None)
    @rule(batch=st.lists(keys, max_size=45), is_committed=st.sampled_from((True, True, True, False)))
    def check_update(self, batch: list[int], is_committed: bool) -> None:
        result = self.bucket.check_update(np.array(batch, dtype=np.uint64))
        new = [key not in self.model and key not in batch[:place] for place, key in enumerate(batch)]
        assert result.new.tolist() == new
        assert result.added.tolist() == sorted(set(batch) - set(self.model))
        if is_committed:
            self.bucket.commit(result)
            self.model |= dict.fromkeys(batch)

    @precondition(lambda self: self.kind.value is not None)
    @rule(batch=st.dictionaries(keys, st.integers(0, 256), max_size=30), is_committed=st.booleans())
    def put(self, batch: dict[int, int], is_committed: bool) -> None:
        batch = {key: self.value(batch[key]) for key in sorted(batch)}
        values = np.array(list(batch.values()), dtype=self.kind.value)
        result = self.bucket.put(np.array(list(batch), dtype=np.uint64), values)
        if is_committed:
            self.bucket.commit(result)
            self.model |= batch

    @rule(gone=st.lists(keys, max_size=8), is_committed=st.booleans())
    def forget(self, gone: list[int], is_committed: bool) -> None:
        result = self.bucket.remove_keys(np.array(gone, dtype=np.uint64))
        assert result.found.tolist() == [key in self.model for key in gone]
        if result.values is not None:
            assert result.values.tolist() == [self.model.get(key, self.zero()) for key in gone]
        if is_committed:
            self.bucket.commit(result)
            self.model = {key: value for key, value in self.model.items() if key not in gone}

    @rule(wanted=st.lists(keys, max_size=10))
    def look_up(self, wanted: list[int]) -> None:
        asked = np.array([*wanted, *list(self.model)[::3]], dtype=np.uint64)
        there = [key in self.model for key in asked.tolist()]
        assert self.bucket.check(asked).tolist() == there
        if self.kind.value is not None:
            found, values = self.bucket.values(asked)
            assert found.tolist() == there
            assert values.tolist() == [self.model.get(key, self.zero()) for key in asked.tolist()]

    @rule()
    def reopen(self) -> None:
        """What a manifest keeps is all there is; files that it does not name go."""
        runs, fresh = self.bucket.state
        state = BucketState(tuple(RunInfo(*run) for run in runs), Memtable.from_strings(fresh.strings_from(0)))
        assert state == self.bucket.state
        named = {run.name for run in runs}
        for path in self.directory.iterdir():
            if path.name not in named:
                path.unlink()
        self.files = FaultyFiles()
        self.bucket = Bucket(self.directory, self.kind, state, self.files)

    @rule(
        batch=st.lists(entries, min_size=30, max_size=45), fault=st.sampled_from(Fault), gone=st.lists(keys, max_size=4)
    )
    def fail(self, batch: list[tuple[int, int, int]], fault: Fault, gone: list[int]) -> None:
        """Whatever a write meets, nothing that was committed has changed."""
        self.files.fail(self.files.operations + 1, fault)
        try:
            self.bucket.apply(*self.arrays(batch))
            self.bucket.remove_keys(np.array(gone, dtype=np.uint64))
        except (OSError, SimulatedCrashError):
            pass
        self.files.mend()
        self.reopen()

    @invariant()
    def it_holds_what_the_model_does(self) -> None:
        if not hasattr(self, "kind"):
            return
        self.bucket._check()
        chunks = list(self.bucket.records())
        assert [key for chunk in chunks for key in chunk.keys.tolist()] == sorted(self.model)
        if self.kind.value is None:
            assert len(self.bucket) == len(self.model)
        else:
            values = [value for chunk in chunks if chunk.values is not None for value in chunk.values.tolist()]
            assert values == [self.model[key] for key in sorted(self.model)]
            assert len(self.bucket) >= len(self.model)

    def teardown(self) -> None:
        try:
            if hasattr(self, "kind"):
                assert self.bucket.verify() == []
        finally:
            shutil.rmtree(self.directory)


def test_bucket_machine() -> None:
    """Whatever happens to it in whatever order, by the rules above."""
    run_state_machine_as_test(BucketMachine, settings=settings(max_examples=examples(60), stateful_step_count=30))
