"""One bucket of DRUM: a set of 64-bit keys on disk, or a map of them to values of fixed width.

Its records lie in few runs of growing size, and the newest, too few to be worth a file, are fresh: held in memory,
and kept by the caller's manifest. A batch is looked up in all of them, and what it changes is added to the fresh
ones; when those are too many they become one more run, merged with small ones when too many of these have
gathered. No file that exists is ever changed: a batch returns what would be the bucket from now on, and the
caller's manifest commits that or forgets it.

A set has each key once. A map has a record of each change: the whole value as it was then, so that the newest
record of a key is all that counts, and merges drop the others.

Source: IRLbot §4.3. Differs: the bucket buffer and the aux file are the caller's (the partition's inbox),
and the cache is a few runs rather than one file, so that a small batch does not rewrite a large set. Fresh
records are what LSM trees call a memory table, and the manifest its log.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bigcrawl.drum.batch import Batch
from bigcrawl.drum.format import Records
from bigcrawl.drum.fresh import EMPTY_FRESH, FRESH_KEYS_MAX, Fresh
from bigcrawl.drum.run import Bounds, RunInfo, RunReader, write_run
from bigcrawl.drum.tiers import kept_of, merge_ascending, newest_of, rest_of, runs_to_merge
from bigcrawl.exceptions import ContractError, CorruptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import KeyArray, ValueArray
    from bigcrawl.drum.run import Keep, KeyMask

    OpArray = npt.NDArray[np.uint8]

# What an entry of a mixed batch does.
CHECK, UPDATE, CHECK_UPDATE = range(3)

_RUN_NUMBER = re.compile(r".*-(\d+)")


class Kind(NamedTuple):
    """What lies in a bucket; a constant of the caller.

    Attributes:
        prefix: of the runs' names, which are ``<prefix>-<number>``.
        value: dtype of fixed width of the value each key has, may be structured; None: a set.
        increment: an update adds to the value, an unsigned integer that stays at its highest, instead of
            replacing it.
        fresh_max: more fresh records than this become a run.
    """

    prefix: str
    value: np.dtype[Any] | None = None
    increment: bool = False
    fresh_max: int = FRESH_KEYS_MAX


class BucketState(NamedTuple):
    """What a manifest keeps of a bucket.

    Attributes:
        runs: oldest first.
        fresh: what is in no run, in the order it came.
    """

    runs: tuple[RunInfo, ...]
    fresh: Fresh


EMPTY_BUCKET = BucketState((), EMPTY_FRESH)


class CheckResult(NamedTuple):
    """What `check_update` found and wrote; nothing of it holds before the caller commits the state after.

    Attributes:
        new: shape of the keys asked for; True for the first arrival of each key not in the set.
        added: the new keys, ascending.
        state_after: runs and fresh records from now on; the fresh ones begin with those before, or are others.
        obsolete: runs that `state_after` no longer needs; delete them only behind a durable commit.
        written: the runs that were written.
    """

    new: KeyMask
    added: KeyArray
    state_after: BucketState
    obsolete: tuple[RunInfo, ...]
    written: tuple[RunInfo, ...]


class ApplyResult(NamedTuple):
    """What a batch of entries found and wrote; nothing of it holds before the caller commits the state after.

    Attributes:
        found: shape of the keys; whether the key was there before its entry.
        values: shape of the keys; the value it had before its entry, zero when it was not there; None in a set.
        state_after: as in `CheckResult`, and so are the rest.
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
    """A set of uint64 keys on disk, or a map of them.

    Guarantees:
        A distinct key is reported new once, at its first arrival within a batch, and again until the
        caller has committed the batch. No existing file is changed or deleted. Each result starts from the
        committed state: of two results only one can be committed.

    Cost: sequential I/O for large batches, about two pages a key and run for small ones; memory is bounded
    by the batch and 2 MiB a run that is merged.
    """

    def __init__(self, directory: Path, kind: Kind, state: BucketState, files: Files) -> None:
        self._directory = directory
        self._kind = kind
        self._state = state
        self._files = files
        # The number of the next run; it never falls, not even when the newest run has lost all its keys: an older
        # manifest may still name that.
        self._next_number = 1 + max((_run_number(run) for run in state.runs), default=0)

    def __len__(self) -> int:
        """Return how many keys there are; in a map at most, because a changed key has records in several runs."""
        return sum(run.keys for run in self._state.runs) + len(self._state.fresh)

    def __repr__(self) -> str:
        runs, fresh = self._state
        name = f"{self._directory.name}/{self._kind.prefix}"
        return f"<Bucket {name} keys={len(self)} runs={len(runs)} fresh={len(fresh)}>"

    @property
    def state(self) -> BucketState:
        """The committed state."""
        return self._state

    def check(self, keys: KeyArray) -> KeyMask:
        """Return which keys are there; any order, duplicates allowed."""
        distinct, back = np.unique(keys, return_inverse=True)
        return self._find(distinct)[0][back]

    def values(self, keys: KeyArray) -> tuple[KeyMask, ValueArray]:
        """Return which keys are in a map, and the value of each, zero for others; any order, duplicates allowed."""
        distinct, back = np.unique(keys, return_inverse=True)
        found, values = self._find(distinct)
        if values is None:
            raise ContractError(f"{self!r} is a set, it has no values")
        return found[back], values[back]

    def records(self) -> Iterator[Records]:
        """Yield all keys with their values, ascending, in chunks of bounded size; reads all runs."""
        sources = [self._reader(run).spans() for run in self._state.runs]
        return merge_ascending([*sources, iter((self._fresh_ascending(),))])

    def check_update(self, keys: KeyArray) -> CheckResult:
        """Ask which keys are new in a set and write the new ones, for the caller to commit.

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
        """Check and update in one batch, as if its entries were done one by one in the order they stand in.

        Args:
            keys: uint64, shape (n,), any order, duplicates allowed.
            ops: of each entry: `CHECK`, `UPDATE` or `CHECK_UPDATE`; the last two do the same here.
            values: of each entry of a map, of the dtype of its kind; that of a check is ignored. None for a set.
            keep: given keys and values, says which to keep; asked by merges that meet the oldest run, so that
                the others go sooner or later. Until then they are found.

        Raises:
            CorruptionError: a run is damaged.
            OSError: the disk failed or is full; nothing has changed.
            ContractError: an unknown op, or values where none belong, or of another dtype.
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
        """Write values into a map whose keys' values the caller knows already: no run is read, unless it is merged.

        Args:
            keys: uint64, shape (n,), strictly ascending.
            values: of each key, of the dtype of its kind; whole, also where updates increment.

        Raises:
            OSError: the disk failed or is full; nothing has changed.
            ContractError: this is a set, or values of another dtype.
        """
        self._check_batch(keys, np.zeros(len(keys), dtype=np.uint8), values)
        nothing = np.zeros(len(keys), dtype=np.bool_)
        return ApplyResult(nothing, None, *self._with_added(Records(keys, values), None))

    def without(self, keys: KeyArray) -> ApplyResult:
        """Forget keys: as if they had never been here. Rewrites each run that holds one of them.

        Args:
            keys: uint64, shape (n,), any order, duplicates allowed; those that are not here are no error.
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
        fresh = self._state.fresh
        if found.any():
            fresh = fresh.without(distinct)
        obsolete = tuple(run for run in self._state.runs if run not in runs)
        change = _Change(BucketState(tuple(runs), fresh), obsolete, tuple(written))
        return ApplyResult(found[back], values[back] if values is not None else None, *change)

    def commit(self, result: CheckResult | ApplyResult) -> None:
        """Let the bucket be what the result says: the caller's manifest says so now."""
        self._state = result.state_after
        for run in result.written:
            self._next_number = max(self._next_number, 1 + _run_number(run))

    def verify(self) -> list[CorruptionError]:
        """Read every byte of every run and return what is damaged."""
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
        runs, fresh = self._state
        assert len({run.name for run in runs}) == len(runs), "a run is listed once"
        assert all(_run_number(run) < self._next_number for run in runs), "the next run has a name of its own"
        assert all(run.keys >= 1 and run.first <= run.last for run in runs), "no run is empty"
        assert len(fresh) <= self._kind.fresh_max, "fresh records are bounded"
        fresh._check()

    def _check_batch(self, keys: KeyArray, ops: OpArray, values: ValueArray | None) -> None:
        if len(ops) != len(keys) or (len(ops) and int(ops.max()) > CHECK_UPDATE):
            raise ContractError(f"{self!r}: {len(ops)} ops for {len(keys)} keys, or one above {CHECK_UPDATE}")
        found = None if values is None else values.dtype
        if found != self._kind.value or (values is not None and len(values) != len(keys)):
            raise ContractError(f"{self!r}: {len(keys)} values of {self._kind.value} expected, found {found}")

    def _reader(self, run: RunInfo) -> RunReader:
        return RunReader(self._files, self._directory, run, self._kind.value)

    def _fresh_ascending(self) -> Records:
        return self._state.fresh.ascending(self._kind.value)

    def _find(self, distinct: KeyArray) -> tuple[KeyMask, ValueArray | None]:
        """Return which of the ascending keys are there, and the value of each in a map: its newest record's."""
        fresh, value = self._fresh_ascending(), self._kind.value
        places = fresh.keys.searchsorted(distinct)
        found = np.zeros(len(distinct), dtype=np.bool_)
        if len(fresh.keys):
            found = fresh.keys.take(places, mode="clip") == distinct
        values = np.zeros(len(distinct), dtype=value) if value is not None else None
        if values is not None and fresh.values is not None:
            values[found] = fresh.values[places[found]]
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
        """Return the bucket with records that are newer than all it has; writes a run when they are too many."""
        runs, fresh = self._state
        fresh_max = self._kind.fresh_max
        if not len(added.keys):
            return _Change(self._state)
        if len(fresh) + len(added.keys) <= fresh_max:
            return _Change(BucketState(runs, fresh.with_added(*added, fresh_max)))
        gathered = newest_of(self._fresh_ascending(), added)
        if added.values is not None and len(gathered.keys) <= fresh_max // 2:
            # The same few keys again and again: their newest records are worth no file yet.
            return _Change(BucketState(runs, EMPTY_FRESH.with_added(*gathered, fresh_max)))
        kept = len(runs) - runs_to_merge([run.keys for run in runs], len(gathered.keys))
        written = self._merge(gathered, runs[kept:], keep if kept == 0 else None)
        return _Change(BucketState((*runs[:kept], *written), EMPTY_FRESH), runs[kept:], written)

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
