"""A merge: checks all spilled tuples against the runs, bucket by bucket, in one pass (IRLbot §4.3, steps 1 to 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bigcrawl.drum.bucket import CHECK
from bigcrawl.drum.spills.answers import AnswerSheet
from bigcrawl.drum.spills.sections import MIXED
from bigcrawl.drum.spills.spill import Tuples, decode_section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.drum.bucket import Bucket, BucketState, OpArray
    from bigcrawl.drum.format import KeyMask, ValueArray
    from bigcrawl.drum.repository import Repository
    from bigcrawl.drum.run import RunInfo
    from bigcrawl.drum.spills.spill import Spill


class Merged(NamedTuple):
    buckets: tuple[BucketState, ...]
    obsolete: list[tuple[int, tuple[RunInfo, ...]]]


class _Outcome(NamedTuple):
    found: KeyMask
    values: ValueArray | None
    state: BucketState
    obsolete: tuple[RunInfo, ...]
    written: tuple[RunInfo, ...]


def merge_spills(repository: Repository, buckets: Sequence[Bucket], spills: Sequence[Spill]) -> Merged:
    """Answer every tuple of the spills; write runs and answers, synced."""
    readers = [repository.keys_reader(spill) for spill in spills]
    files, directory = repository.files, repository.directory
    sheets = [AnswerSheet(files, directory, spill, len(buckets)) if spill.asks else None for spill in spills]
    states: list[BucketState] = []
    obsolete: list[tuple[int, tuple[RunInfo, ...]]] = []
    written: list[tuple[int, tuple[RunInfo, ...]]] = []
    for number, bucket in enumerate(buckets):
        parts = [decode_section(reader.read(number), reader.operation, repository.layout) for reader in readers]
        outcome = _ask(bucket, _joined(parts))
        states.append(outcome.state)
        if outcome.obsolete:
            obsolete.append((number, outcome.obsolete))
        if outcome.written:
            written.append((number, outcome.written))
        _spread(outcome, parts, sheets)
    for sheet in filter(None, sheets):
        files.sync_file(sheet.finish())
    repository.sync_runs(written)
    files.sync_directory(directory)
    return Merged(tuple(states), obsolete)


def _ask(bucket: Bucket, tuples: Tuples) -> _Outcome:
    keys, operation, ops, values = tuples
    if not len(keys):
        nothing = None if values is None else values[:0]
        return _Outcome(np.zeros(0, dtype=np.bool_), nothing, bucket.state, (), ())
    if operation == CHECK:
        if values is None:
            return _Outcome(bucket.check(keys), None, bucket.state, (), ())
        return _Outcome(*bucket.values(keys), bucket.state, (), ())
    if values is None and (operation != MIXED if ops is None else not bool(np.any(ops == CHECK))):
        result = bucket.check_update(keys)
        return _Outcome(~result.new, None, result.state_after, result.obsolete, result.written)
    if ops is None:
        ops = np.full(len(keys), operation, dtype=np.uint8)
    applied = bucket.apply(keys, ops, values)
    return _Outcome(applied.found, applied.values, applied.state_after, applied.obsolete, applied.written)


def _joined(parts: Sequence[Tuples]) -> Tuples:
    parts = [part for part in parts if len(part.keys)] or parts[:1]
    operations = {part.operation for part in parts}
    operation = operations.pop() if len(operations) == 1 else MIXED
    keys = np.concatenate([part.keys for part in parts])
    ops = np.concatenate([_ops(part) for part in parts]) if operation == MIXED else None
    columns = [part.values for part in parts if part.values is not None]
    return Tuples(keys, operation, ops, np.concatenate(columns) if columns else None)


def _ops(part: Tuples) -> OpArray:
    return np.full(len(part.keys), part.operation, dtype=np.uint8) if part.ops is None else part.ops


def _spread(outcome: _Outcome, parts: Sequence[Tuples], sheets: Sequence[AnswerSheet | None]) -> None:
    start = 0
    for part, sheet in zip(parts, sheets, strict=True):
        end = start + len(part.keys)
        if sheet is not None:
            sheet.add(outcome.found[start:end], None if outcome.values is None else outcome.values[start:end])
        start = end
