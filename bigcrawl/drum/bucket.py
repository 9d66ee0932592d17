"""One bucket of DRUM: a set of 64-bit keys on disk, or a map from such keys to values of fixed width.

Its newest records are in a memtable, which the caller's manifest stores, the others in immutable runs. A full memtable
becomes a run. In a map only the newest record of a key counts; merges of runs drop the others.

Source: IRLbot §4.3. Differs: the keys on disk are in several runs, as in LSM trees, so that a small batch does not
rewrite a large set.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bigcrawl.drum.format import Records, are_ascending
from bigcrawl.drum.memtable import EMPTY_MEMTABLE, MEMTABLE_KEYS_MAX, Batch, Memtable
from bigcrawl.drum.record_merge import kept_of, merge_ascending, newest_of, rest_of, runs_to_merge
from bigcrawl.drum.run import RunBounds, RunInfo, RunReader, write_run
from bigcrawl.exceptions import ContractError, CorruptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import KeyArray, KeyMask, ValueArray
    from bigcrawl.drum.run import Keep

    OpArray = npt.NDArray[np.uint8]

# The operation of an entry in a mixed batch.
CHECK, UPDATE, CHECK_UPDATE = range(3)

_RUN_NUMBER = re.compile(r".*-(\d+)")


class Kind(NamedTuple):
    """The content of a bucket.

    Attributes:
        prefix: runs are named ``<prefix>-<number>``.
        value: dtype of fixed width, may be structured; None for a set.
        increment: whether an update adds to the value, an unsigned integer that saturates, instead of replacing it.
        fresh_max: a memtable with more records than this becomes a run.
    """

    prefix: str
    value: np.dtype[Any] | None = None
    increment: bool = False
    fresh_max: int = MEMTABLE_KEYS_MAX


class BucketState(NamedTuple):
    """The state of a bucket as a manifest stores it, the oldest run first."""

    runs: tuple[RunInfo, ...]
    memtable: Memtable


EMPTY_BUCKET = BucketState((), EMPTY_MEMTABLE)


class CheckResult(NamedTuple):
    """The result of `check_update`, which takes effect when the caller commits `state_after`.

    Attributes:
        new: True for the first occurrence of each key that the set lacked.
        added: the new keys, ascending.
        obsolete: runs that are not in `state_after`; delete them only after a durable commit.
    """

    new: KeyMask
    added: KeyArray
    state_after: BucketState
    obsolete: tuple[RunInfo, ...]
    written: tuple[RunInfo, ...]


class ApplyResult(NamedTuple):
    """The result of other batches: whether each entry's key was present before it, and with which value."""

    found: KeyMask
    values: ValueArray | None
    state_after: BucketState
    obsolete: tuple[RunInfo, ...]
    written: tuple[RunInfo, ...]


class _PlannedChange(NamedTuple):
    state_after: BucketState
    obsolete: tuple[RunInfo, ...] = ()
    written: tuple[RunInfo, ...] = ()


class Bucket:
    """A set of uint64 keys on disk, or a map from them. Of two results of one state, only one can be committed."""

    def __init__(self, directory: Path, kind: Kind, state: BucketState, files: Files) -> None:
        self._directory = directory
        self._kind = kind
        self._state = state
        self._files = files
        # Never decreases: an older manifest may still name a run that has left the state.
        self._next_number = 1 + max((_run_number(run) for run in state.runs), default=0)

    def __len__(self) -> int:
        """Return the number of keys; in a map, an upper bound."""
        return sum(run.keys for run in self._state.runs) + len(self._state.memtable)

    def __repr__(self) -> str:
        runs, memtable = self._state
        name = f"{self._directory.name}/{self._kind.prefix}"
        return f"<Bucket {name} keys={len(self)} runs={len(runs)} memtable={len(memtable)}>"

    @property
    def state(self) -> BucketState:
        return self._state

    def fork(self) -> Bucket:
        """Return a copy, ten times faster than `copy.copy`."""
        other = Bucket.__new__(Bucket)
        other.__dict__.update(self.__dict__)
        return other

    def check(self, keys: KeyArray) -> KeyMask:
        """Return which keys are present. Keys may be in any order and may repeat, here and below."""
        distinct, back = np.unique(keys, return_inverse=True)
        return self._find_keys(distinct)[0][back]

    def values(self, keys: KeyArray) -> tuple[KeyMask, ValueArray]:
        """Return which keys a map has, and their values, zero if absent."""
        if are_ascending(keys):
            found, values = self._find_keys(keys)
        else:
            distinct, back = np.unique(keys, return_inverse=True)
            found, values = self._find_keys(distinct)
            if values is not None:
                found, values = found[back], values[back]
        if values is None:
            raise ContractError(f"{self!r} is a set; it has no values")
        return found, values

    def records(self) -> Iterator[Records]:
        sources = [self._run_reader(run).spans() for run in self._state.runs]
        return merge_ascending([*sources, iter((self._memtable_ascending(),))])

    def check_update(self, keys: KeyArray) -> CheckResult:
        """Find the keys that a set lacks and add them."""
        if self._kind.value is not None:
            raise ContractError(f"{self!r} is a map: apply() says which value a key gets")
        distinct, first_places = np.unique(keys, return_index=True)
        unseen = ~self._find_keys(distinct)[0]
        new = np.zeros(len(keys), dtype=np.bool_)
        new[first_places[unseen]] = True
        added = distinct[unseen]
        return CheckResult(new, added, *self._with_added(Records(added, None), None))

    def apply(
        self, keys: KeyArray, ops: OpArray, values: ValueArray | None = None, keep: Keep | None = None
    ) -> ApplyResult:
        """Check and update keys in one batch, as if one by one. Merges with the oldest run drop what `keep` rejects."""
        self._check_batch(keys, ops, values)
        batch = Batch(keys, ops != CHECK)
        held, held_values = self._find_keys(batch.distinct)
        found, writes = batch.found_before(held), batch.wrote
        if values is None or held_values is None:
            added = Records(batch.distinct[writes & ~held], None)
            return ApplyResult(found, None, *self._with_added(added, keep))
        through = batch.add if self._kind.increment else batch.replace
        before, after = through(values, held_values)
        changed = writes & ~(held & (after == held_values))
        added = Records(batch.distinct[changed], after[changed])
        return ApplyResult(found, before, *self._with_added(added, keep))

    def put(self, keys: KeyArray, values: ValueArray) -> ApplyResult:
        """Write whole values of strictly ascending keys into a map, without reading the old ones."""
        self._check_batch(keys, np.zeros(len(keys), dtype=np.uint8), values)
        nothing = np.zeros(len(keys), dtype=np.bool_)
        return ApplyResult(nothing, None, *self._with_added(Records(keys, values), None))

    def remove_keys(self, keys: KeyArray) -> ApplyResult:
        """Remove keys and rewrite each run that holds one."""
        distinct, back = np.unique(keys, return_inverse=True)
        found, values = self._find_keys(distinct)
        runs: list[RunInfo] = []
        written: list[RunInfo] = []
        for run in self._state.runs:
            if not self._run_reader(run).find(distinct)[0].any():
                runs.append(run)
                continue
            rest = (rest_of(records, distinct) for records in self._run_reader(run).spans())
            after = self._write_run(rest, RunBounds(run.keys, run.first, run.last), self._next_number + len(written))
            if after is not None:
                runs.append(after)
                written.append(after)
        memtable = self._state.memtable
        if found.any():
            memtable = memtable.without_keys(distinct)
        obsolete = tuple(run for run in self._state.runs if run not in runs)
        change = _PlannedChange(BucketState(tuple(runs), memtable), obsolete, tuple(written))
        return ApplyResult(found[back], values[back] if values is not None else None, *change)

    def commit(self, result: CheckResult | ApplyResult) -> None:
        self._state = result.state_after
        for run in result.written:
            self._next_number = max(self._next_number, 1 + _run_number(run))

    def verify(self) -> list[CorruptionError]:
        problems: list[CorruptionError] = []
        for run in self._state.runs:
            try:
                self._run_reader(run).verify()
            except CorruptionError as error:
                problems.append(error)
            except OSError as error:
                problems.append(CorruptionError(self._directory / run.name, 0, "a readable run", error))
        return problems

    def _check(self) -> None:
        runs, memtable = self._state
        assert len({run.name for run in runs}) == len(runs), "a run is listed once"
        assert all(_run_number(run) < self._next_number for run in runs), "the next run has a new name"
        assert all(run.keys >= 1 and run.first <= run.last for run in runs), "no run is empty"
        assert len(memtable) <= self._kind.fresh_max, "the memtable is bounded"
        memtable._check()

    def _check_batch(self, keys: KeyArray, ops: OpArray, values: ValueArray | None) -> None:
        if len(ops) != len(keys) or (len(ops) and int(ops.max()) > CHECK_UPDATE):
            raise ContractError(f"{self!r}: {len(ops)} ops for {len(keys)} keys, or one above {CHECK_UPDATE}")
        found = None if values is None else values.dtype
        if found != self._kind.value or (values is not None and len(values) != len(keys)):
            raise ContractError(f"{self!r}: {len(keys)} values of {self._kind.value} expected, found {found}")

    def _run_reader(self, run: RunInfo) -> RunReader:
        return RunReader(self._files, self._directory, run, self._kind.value)

    def _memtable_ascending(self) -> Records:
        return self._state.memtable.sorted_records(self._kind.value)

    def _find_keys(self, distinct: KeyArray) -> tuple[KeyMask, ValueArray | None]:
        found, values = self._state.memtable.find(distinct, self._kind.value)
        missing = np.flatnonzero(~found)
        wanted = distinct[missing]
        for run in reversed(self._state.runs):
            if not len(wanted):
                break
            there, values_there = self._run_reader(run).find(wanted)
            if there.any():
                found[missing[there]] = True
                if values is not None and values_there is not None:
                    values[missing[there]] = values_there[there]
                missing, wanted = missing[~there], wanted[~there]
        return found, values

    def _with_added(self, added: Records, keep: Keep | None) -> _PlannedChange:
        runs, memtable = self._state
        fresh_max = self._kind.fresh_max
        if not len(added.keys):
            return _PlannedChange(self._state)
        if len(memtable) + len(added.keys) <= fresh_max:
            return _PlannedChange(BucketState(runs, memtable.with_added(*added, fresh_max)))
        gathered = newest_of(self._memtable_ascending(), added)
        if added.values is not None and len(gathered.keys) <= fresh_max // 2:
            # Many records of few keys are not worth a file yet.
            return _PlannedChange(BucketState(runs, EMPTY_MEMTABLE.with_added(*gathered, fresh_max)))
        kept = len(runs) - runs_to_merge([run.keys for run in runs], len(gathered.keys))
        written = self._merge_runs(gathered, runs[kept:], keep if kept == 0 else None)
        return _PlannedChange(BucketState((*runs[:kept], *written), EMPTY_MEMTABLE), runs[kept:], written)

    def _merge_runs(self, newest: Records, runs: Sequence[RunInfo], keep: Keep | None) -> tuple[RunInfo, ...]:
        chunks: Iterable[Records] = (newest,)
        if runs:
            chunks = merge_ascending([*(self._run_reader(run).spans() for run in runs), iter((newest,))])
        if keep is not None:
            chunks = (kept_of(chunk, keep) for chunk in chunks)
        bounds = RunBounds(
            len(newest.keys) + sum(run.keys for run in runs),
            min([int(newest.keys[0]), *(run.first for run in runs)]),
            max([int(newest.keys[-1]), *(run.last for run in runs)]),
        )
        written = self._write_run(chunks, bounds, self._next_number)
        return (written,) if written is not None else ()

    def _write_run(self, chunks: Iterable[Records], bounds: RunBounds, number: int) -> RunInfo | None:
        return write_run(self._files, self._directory / f"{self._kind.prefix}-{number}", chunks, bounds)


def _run_number(run: RunInfo) -> int:
    match = _RUN_NUMBER.fullmatch(run.name)
    assert match, f"{run.name} is not a run's name"
    return int(match[1])
