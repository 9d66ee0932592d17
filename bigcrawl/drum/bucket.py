"""One bucket of DRUM: a set of 64-bit keys on disk, or a map from such keys to values of fixed width.

Its records lie in a few runs of growing size. The newest records, too few for a file, are in a memtable; the caller's
manifest stores them. A batch is looked up in all runs and the memtable, and its changes are added to the memtable. A
full memtable becomes a run, merged with small runs once too many of them have gathered. Existing files are never
changed. A batch returns the bucket's next state, which takes effect when the caller's manifest commits it.

A set holds each key once. A map holds a record of each change with the whole value at that time. Only the newest record
of a key counts; merges drop the others.

Source: IRLbot §4.3. Differs: the bucket buffer and the aux file are the caller's (the partition's inbox), and the cache
is a few runs rather than one file, so that a small batch does not rewrite a large set. As in LSM trees, the manifest is
the memtable's log.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bigcrawl.drum.batch import Batch
from bigcrawl.drum.format import Records, are_ascending
from bigcrawl.drum.memtable import EMPTY_MEMTABLE, MEMTABLE_KEYS_MAX, Memtable
from bigcrawl.drum.merge_policy import runs_to_merge
from bigcrawl.drum.record_merge import kept_of, merge_ascending, newest_of, rest_of
from bigcrawl.drum.run import Bounds, RunInfo, RunReader, write_run
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
    """What a bucket stores; a constant of the caller.

    Attributes:
        prefix: runs are named ``<prefix>-<number>``.
        value: dtype of fixed width of each key's value, may be structured; None: a set.
        increment: an update adds to the value, an unsigned integer that saturates, instead of replacing it.
        fresh_max: when the memtable holds more records than this, it becomes a run.
    """

    prefix: str
    value: np.dtype[Any] | None = None
    increment: bool = False
    fresh_max: int = MEMTABLE_KEYS_MAX


class BucketState(NamedTuple):
    """A bucket as a manifest stores it.

    Attributes:
        runs: oldest first.
        memtable: the records that are in no run, in order of arrival.
    """

    runs: tuple[RunInfo, ...]
    memtable: Memtable


EMPTY_BUCKET = BucketState((), EMPTY_MEMTABLE)


class CheckResult(NamedTuple):
    """What `check_update` found and wrote. It takes effect when the caller commits `state_after`.

    Attributes:
        new: shape of the given keys; True for the first arrival of each key not in the set.
        added: the new keys, ascending.
        state_after: the next state; its memtable starts with the records of the current one, or is a different one.
        obsolete: runs that `state_after` does not need; delete them only after a durable commit.
        written: the runs that were written.
    """

    new: KeyMask
    added: KeyArray
    state_after: BucketState
    obsolete: tuple[RunInfo, ...]
    written: tuple[RunInfo, ...]


class ApplyResult(NamedTuple):
    """What a batch of entries found and wrote. It takes effect when the caller commits `state_after`.

    Attributes:
        found: shape of the keys; whether the key was present before its entry.
        values: shape of the keys; the value it had before its entry, zero if it was not present; None in a set.
        state_after: as in `CheckResult`, like the rest.
    """

    found: KeyMask
    values: ValueArray | None
    state_after: BucketState
    obsolete: tuple[RunInfo, ...]
    written: tuple[RunInfo, ...]


class _Change(NamedTuple):
    state_after: BucketState
    obsolete: tuple[RunInfo, ...] = ()
    written: tuple[RunInfo, ...] = ()


class Bucket:
    """A set of uint64 keys on disk, or a map from them.

    Guarantees:
        A distinct key is reported new once, at its first arrival within a batch, and again until the caller has
        committed the batch. No existing file is changed or deleted. Each result starts from the committed state, so
        of two results only one can be committed.

    Cost: sequential I/O for large batches, about two pages a key and run for small ones. Memory is bounded by the batch
    and 2 MiB for each run that is merged.
    """

    def __init__(self, directory: Path, kind: Kind, state: BucketState, files: Files) -> None:
        self._directory = directory
        self._kind = kind
        self._state = state
        self._files = files
        # The number of the next run. It never decreases, not even if the newest run has lost all its keys, because an
        # older manifest may still name that run.
        self._next_number = 1 + max((_run_number(run) for run in state.runs), default=0)

    def __len__(self) -> int:
        """Return the number of keys. In a map this is an upper bound: a changed key has records in several runs."""
        return sum(run.keys for run in self._state.runs) + len(self._state.memtable)

    def __repr__(self) -> str:
        runs, memtable = self._state
        name = f"{self._directory.name}/{self._kind.prefix}"
        return f"<Bucket {name} keys={len(self)} runs={len(runs)} memtable={len(memtable)}>"

    @property
    def state(self) -> BucketState:
        """The committed state."""
        return self._state

    def fork(self) -> Bucket:
        """Return a bucket in this state, for results that this one is not to adopt.

        Cost: 0.5 us; a step forks a dozen, most of which it leaves as they are, and `copy.copy` takes 5 us for each.
        """
        other = Bucket.__new__(Bucket)
        other.__dict__.update(self.__dict__)
        return other

    def check(self, keys: KeyArray) -> KeyMask:
        """Return which keys are present. Keys may be in any order and repeat."""
        distinct, back = np.unique(keys, return_inverse=True)
        return self._find(distinct)[0][back]

    def values(self, keys: KeyArray) -> tuple[KeyMask, ValueArray]:
        """Return which keys are in a map, and their values, zero for others. Keys may be in any order and repeat."""
        if are_ascending(keys):
            found, values = self._find(keys)
        else:
            distinct, back = np.unique(keys, return_inverse=True)
            found, values = self._find(distinct)
            if values is not None:
                found, values = found[back], values[back]
        if values is None:
            raise ContractError(f"{self!r} is a set; it has no values")
        return found, values

    def records(self) -> Iterator[Records]:
        """Yield all keys with their values, ascending, in chunks of bounded size. Reads all runs."""
        sources = [self._reader(run).spans() for run in self._state.runs]
        return merge_ascending([*sources, iter((self._memtable_ascending(),))])

    def check_update(self, keys: KeyArray) -> CheckResult:
        """Find out which keys are new in a set and write them, for the caller to commit.

        Args:
            keys: uint64, shape (n,), any order, duplicates allowed.

        Raises:
            CorruptionError: a run is damaged.
            OSError: the disk failed or is full; nothing has changed.
        """
        if self._kind.value is not None:
            raise ContractError(f"{self!r} is a map: apply() says which value a key gets")
        distinct, first_places = np.unique(keys, return_index=True)
        unseen = ~self._find(distinct)[0]
        new = np.zeros(len(keys), dtype=np.bool_)
        new[first_places[unseen]] = True
        added = distinct[unseen]
        return CheckResult(new, added, *self._with_added(Records(added, None), None))

    def apply(
        self, keys: KeyArray, ops: OpArray, values: ValueArray | None = None, keep: Keep | None = None
    ) -> ApplyResult:
        """Check and update in one batch, as if its entries were applied one by one in their order.

        Args:
            keys: uint64, shape (n,), any order, duplicates allowed.
            ops: of each entry: `CHECK`, `UPDATE` or `CHECK_UPDATE`; the last two do the same here.
            values: of each entry of a map, of the dtype of its kind; ignored for a check. None for a set.
            keep: returns which of the given keys and values to keep. Merges that include the oldest run call it, so
                other records disappear sooner or later. Until then they are found.

        Raises:
            CorruptionError: a run is damaged.
            OSError: the disk failed or is full; nothing has changed.
            ContractError: an op is unknown, or values are given for a set or have another dtype.
        """
        self._check_batch(keys, ops, values)
        batch = Batch(keys, ops != CHECK)
        held, held_values = self._find(batch.distinct)
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
        """Write values into a map if the caller already knows the old ones. Reads no run unless one is merged.

        Args:
            keys: uint64, shape (n,), strictly ascending.
            values: of each key, of the dtype of its kind; the whole value even if updates increment.

        Raises:
            OSError: the disk failed or is full; nothing has changed.
            ContractError: this is a set, or the values have another dtype.
        """
        self._check_batch(keys, np.zeros(len(keys), dtype=np.uint8), values)
        nothing = np.zeros(len(keys), dtype=np.bool_)
        return ApplyResult(nothing, None, *self._with_added(Records(keys, values), None))

    def without(self, keys: KeyArray) -> ApplyResult:
        """Remove keys, as if they had never been added. Rewrites each run that holds one of them.

        Args:
            keys: uint64, shape (n,), any order, duplicates allowed; absent keys are ignored.
        """
        distinct, back = np.unique(keys, return_inverse=True)
        found, values = self._find(distinct)
        runs: list[RunInfo] = []
        written: list[RunInfo] = []
        for run in self._state.runs:
            if not self._reader(run).find(distinct)[0].any():
                runs.append(run)
                continue
            rest = (rest_of(records, distinct) for records in self._reader(run).spans())
            after = self._write(rest, Bounds(run.keys, run.first, run.last), self._next_number + len(written))
            if after is not None:
                runs.append(after)
                written.append(after)
        memtable = self._state.memtable
        if found.any():
            memtable = memtable.without(distinct)
        obsolete = tuple(run for run in self._state.runs if run not in runs)
        change = _Change(BucketState(tuple(runs), memtable), obsolete, tuple(written))
        return ApplyResult(found[back], values[back] if values is not None else None, *change)

    def commit(self, result: CheckResult | ApplyResult) -> None:
        """Adopt the result's state, which the caller's manifest has just committed."""
        self._state = result.state_after
        for run in result.written:
            self._next_number = max(self._next_number, 1 + _run_number(run))

    def verify(self) -> list[CorruptionError]:
        """Read every byte of every run and return the damage found."""
        problems: list[CorruptionError] = []
        for run in self._state.runs:
            try:
                self._reader(run).verify()
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

    def _reader(self, run: RunInfo) -> RunReader:
        return RunReader(self._files, self._directory, run, self._kind.value)

    def _memtable_ascending(self) -> Records:
        return self._state.memtable.ascending(self._kind.value)

    def _find(self, distinct: KeyArray) -> tuple[KeyMask, ValueArray | None]:
        """Return which of the ascending keys are present and, in a map, the value in each one's newest record."""
        found, values = self._state.memtable.find(distinct, self._kind.value)
        missing = np.flatnonzero(~found)
        wanted = distinct[missing]
        for run in reversed(self._state.runs):
            if not len(wanted):
                break
            there, values_there = self._reader(run).find(wanted)
            if there.any():
                found[missing[there]] = True
                if values is not None and values_there is not None:
                    values[missing[there]] = values_there[there]
                missing, wanted = missing[~there], wanted[~there]
        return found, values

    def _with_added(self, added: Records, keep: Keep | None) -> _Change:
        """Return the bucket with newer records added; writes a run if the memtable gets too large."""
        runs, memtable = self._state
        fresh_max = self._kind.fresh_max
        if not len(added.keys):
            return _Change(self._state)
        if len(memtable) + len(added.keys) <= fresh_max:
            return _Change(BucketState(runs, memtable.with_added(*added, fresh_max)))
        gathered = newest_of(self._memtable_ascending(), added)
        if added.values is not None and len(gathered.keys) <= fresh_max // 2:
            # The same few keys changed again and again; their newest records are not worth a file yet.
            return _Change(BucketState(runs, EMPTY_MEMTABLE.with_added(*gathered, fresh_max)))
        kept = len(runs) - runs_to_merge([run.keys for run in runs], len(gathered.keys))
        written = self._merge(gathered, runs[kept:], keep if kept == 0 else None)
        return _Change(BucketState((*runs[:kept], *written), EMPTY_MEMTABLE), runs[kept:], written)

    def _merge(self, newest: Records, runs: Sequence[RunInfo], keep: Keep | None) -> tuple[RunInfo, ...]:
        chunks: Iterable[Records] = (newest,)
        if runs:
            chunks = merge_ascending([*(self._reader(run).spans() for run in runs), iter((newest,))])
        if keep is not None:
            chunks = (kept_of(chunk, keep) for chunk in chunks)
        bounds = Bounds(
            len(newest.keys) + sum(run.keys for run in runs),
            min([int(newest.keys[0]), *(run.first for run in runs)]),
            max([int(newest.keys[-1]), *(run.last for run in runs)]),
        )
        written = self._write(chunks, bounds, self._next_number)
        return (written,) if written is not None else ()

    def _write(self, chunks: Iterable[Records], bounds: Bounds, number: int) -> RunInfo | None:
        return write_run(self._files, self._directory / f"{self._kind.prefix}-{number}", chunks, bounds)


def _run_number(run: RunInfo) -> int:
    match = _RUN_NUMBER.fullmatch(run.name)
    assert match, f"{run.name} is not a run's name"
    return int(match[1])
