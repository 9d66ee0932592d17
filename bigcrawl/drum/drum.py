"""DRUM: a disk repository with update management, in its first form: a set of 64-bit keys.

The caller's directory is one bucket. Its keys lie in few runs of growing size, and the newest, too few to be
worth a file, are fresh: held in memory, and kept by the caller's manifest. `check_update` looks a batch up
in all of them and adds the new keys to the fresh ones; when those are too many they become one more run,
merged with small ones when too many of these have gathered. It never changes a file that exists: it returns
what would be the set from now on, and the caller's manifest commits that or forgets it.

Source: IRLbot §4.3. Differs: the bucket buffer and the aux file are the caller's (the partition's inbox),
and the cache is a few runs rather than one file, so that a small batch does not rewrite a large set. Fresh
keys are what LSM trees call a memory table, and the manifest its log.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bigcrawl.drum.format import KEY_TYPE, RunHeader
from bigcrawl.drum.fresh import EMPTY_FRESH, FRESH_KEYS_MAX
from bigcrawl.drum.run import RunReader, write_run
from bigcrawl.exceptions import CorruptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.drum.fresh import FreshKeys
    from bigcrawl.drum.run import KeyMask, RunInfo

# Four runs of a tier become one of the next: a key is rewritten once a tier, 50 ns, and a lookup, 30 to 100 us
# a run, meets at most three runs a tier (six tiers at 8 M keys a partition).
FAN_IN = 4

# Runs below twice that are one tier.
_SMALL_KEYS = 2 * FRESH_KEYS_MAX

_RUN_NAME = re.compile(r"run-(\d+)")


class CheckResult(NamedTuple):
    """What `check_update` found and wrote; nothing of it holds before the caller commits runs and fresh keys.

    Attributes:
        new: shape of the keys asked for; True for the first arrival of each key not in the set.
        added: the new keys, ascending.
        runs_after: the runs that hold the set from now on, together with the fresh keys.
        fresh_after: the fresh keys from now on; they begin with those before, or there are none.
        obsolete: runs that `runs_after` no longer needs; delete them only behind a durable commit.
        written: the run that was written, if any.
    """

    new: KeyMask
    added: KeyArray
    runs_after: tuple[RunInfo, ...]
    fresh_after: FreshKeys
    obsolete: tuple[RunInfo, ...]
    written: RunInfo | None


class Drum:
    """A set of uint64 keys on disk.

    Guarantees:
        A distinct key is reported new once, at its first arrival within a batch, and again until the
        caller has committed the batch. No existing file is changed or deleted.

    Cost: sequential I/O for large batches, about a page a key and run for small ones; memory is bounded
    by the batch and 16 MiB.
    """

    def __init__(self, directory: Path, runs: Sequence[RunInfo], files: Files, fresh: FreshKeys = EMPTY_FRESH) -> None:
        self._directory = directory
        self._files = files
        self._runs = tuple(runs)
        self._fresh = fresh

    def __len__(self) -> int:
        return sum(run.keys for run in self._runs) + len(self._fresh)

    def __repr__(self) -> str:
        return f"<Drum {self._directory.name} keys={len(self)} runs={len(self._runs)} fresh={len(self._fresh)}>"

    @property
    def runs(self) -> tuple[RunInfo, ...]:
        """The committed runs, oldest first."""
        return self._runs

    @property
    def fresh(self) -> FreshKeys:
        """The committed keys that are in no run, in the order they came."""
        return self._fresh

    def check(self, keys: KeyArray) -> KeyMask:
        """Return which keys are in the set; any order, duplicates allowed."""
        distinct, back = np.unique(keys, return_inverse=True)
        return self._find(distinct, self._fresh.ascending())[back]

    def check_update(self, keys: KeyArray) -> CheckResult:
        """Ask which keys are new and write the new ones, for the caller to commit.

        Args:
            keys: uint64, shape (n,), any order, duplicates allowed.

        Raises:
            CorruptionError: a run is damaged.
            OSError: the disk failed or is full; nothing has changed.
        """
        distinct, first_places = np.unique(keys, return_index=True)
        fresh = self._fresh.ascending()
        unseen = ~self._find(distinct, fresh)
        new = np.zeros(len(keys), dtype=np.bool_)
        new[first_places[unseen]] = True
        added = distinct[unseen]
        if not len(added):
            return CheckResult(new, added, self._runs, self._fresh, (), None)
        if len(fresh) + len(added) <= FRESH_KEYS_MAX:
            return CheckResult(new, added, self._runs, self._fresh.with_added(added), (), None)
        gathered = _merged(fresh, added)
        kept = len(self._runs) - runs_to_merge([run.keys for run in self._runs], len(gathered))
        obsolete = self._runs[kept:]
        written = self._write(gathered, obsolete)
        return CheckResult(new, added, (*self._runs[:kept], written), EMPTY_FRESH, obsolete, written)

    def commit(self, result: CheckResult) -> None:
        """Let the set be what the result says: the caller's manifest says so now."""
        self._runs, self._fresh = result.runs_after, result.fresh_after

    def verify(self) -> list[CorruptionError]:
        """Read every byte of every run and return what is damaged."""
        problems: list[CorruptionError] = []
        for run in self._runs:
            try:
                RunReader(self._files, self._directory, run).verify()
            except CorruptionError as error:
                problems.append(error)
            except OSError as error:
                problems.append(CorruptionError(self._directory / run.name, 0, "a readable run", error))
        return problems

    def _check(self) -> None:
        assert len({run.name for run in self._runs}) == len(self._runs), "a run is listed once"
        numbers = [_run_number(run) for run in self._runs]
        assert numbers == sorted(numbers), "runs are listed oldest first"
        assert all(run.keys >= 1 and run.first <= run.last for run in self._runs), "no run is empty"
        assert len(self._fresh) <= FRESH_KEYS_MAX, "fresh keys are bounded"
        self._fresh._check()

    def _find(self, distinct: KeyArray, fresh: KeyArray) -> KeyMask:
        found = _contains(fresh, distinct)
        for run in reversed(self._runs):
            if len(distinct) and run.first <= distinct[-1] and run.last >= distinct[0]:
                found |= RunReader(self._files, self._directory, run).contains(distinct)
        return found

    def _write(self, added: KeyArray, merged: Sequence[RunInfo]) -> RunInfo:
        number = 1 + max((_run_number(run) for run in self._runs), default=0)
        header = RunHeader(
            len(added) + sum(run.keys for run in merged),
            min([int(added[0]), *(run.first for run in merged)]),
            max([int(added[-1]), *(run.last for run in merged)]),
        )
        readers = [RunReader(self._files, self._directory, run) for run in merged]
        chunks: Iterable[KeyArray] = (added,)
        if readers:
            chunks = merge_ascending([iter((added,)), *(reader.spans() for reader in readers)])
        return write_run(self._files, self._directory / f"run-{number}", chunks, header)


def runs_to_merge(counts: Sequence[int], added: int) -> int:
    """Return how many of the newest runs to merge into a new run of `added` keys.

    Args:
        counts: keys of each run, oldest first.
        added: keys of the new run.
    """
    merged, total = 0, added
    while True:
        tier = _tier(total)
        alike = 0
        for count in reversed(counts[: len(counts) - merged]):
            if _tier(count) > tier:
                break
            alike += 1
        if alike + 1 < FAN_IN:
            return merged
        total += sum(counts[len(counts) - merged - alike : len(counts) - merged])
        merged += alike


def _tier(count: int) -> int:
    tier, limit = 0, _SMALL_KEYS
    while count >= limit:
        tier, limit = tier + 1, limit * FAN_IN
    return tier


def merge_ascending(sources: Sequence[Iterator[KeyArray]]) -> Iterator[KeyArray]:
    """Merge sources of strictly ascending chunks, disjoint from each other, into ascending chunks.

    Holds one chunk of each source: each round hands out all keys up to the smallest last key held.
    """
    heads = [(chunk, source) for source in sources if (chunk := next(source, None)) is not None]
    while heads:
        bound = min(chunk[-1] for chunk, _ in heads)
        parts: list[KeyArray] = []
        rest: list[tuple[KeyArray, Iterator[KeyArray]]] = []
        for chunk, source in heads:
            cut = int(np.searchsorted(chunk, bound, side="right"))
            parts.append(chunk[:cut])
            left = chunk[cut:] if cut < len(chunk) else next(source, None)
            if left is not None:
                rest.append((left, source))
        heads = rest
        yield np.sort(np.concatenate(parts).astype(KEY_TYPE, copy=False), kind="stable")


def _contains(held: KeyArray, wanted: KeyArray) -> KeyMask:
    if not len(held):
        return np.zeros(len(wanted), dtype=np.bool_)
    answer: KeyMask = held.take(held.searchsorted(wanted), mode="clip") == wanted
    return answer


def _merged(held: KeyArray, added: KeyArray) -> KeyArray:
    # Stable sorting of 64-bit keys finds the ascending stretches and merges them; so below.
    both = np.concatenate((held, added))
    both.sort(kind="stable")
    return both


def _run_number(run: RunInfo) -> int:
    match = _RUN_NAME.fullmatch(run.name)
    assert match, f"{run.name} is not a run's name"
    return int(match[1])
