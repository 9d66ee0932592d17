"""A merge: checks all waiting tuples against the runs, bucket by bucket (steps 1 to 4 of IRLbot §4.3).

It writes its answers, in bucket order, into a scratch file, `answers`. After a crash, the next merge finds the same
answers.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from isal import isal_zlib

from bigcrawl.drum.bucket import CHECK, UPDATE, ApplyResult
from bigcrawl.exceptions import CorruptionError
from bigcrawl_drum.gathered import buckets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from bigcrawl.drum.bucket import Bucket, BucketState, OpArray
    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import KeyArray, KeyMask, ValueArray
    from bigcrawl.drum.repository import Repository
    from bigcrawl.drum.run import RunInfo
    from bigcrawl_drum.aux_column import Aux
    from bigcrawl_drum.gathered import GatheredTuples
    from bigcrawl_drum.offers import OfferedTuples, OfferLog

ANSWERS: Final = "answers"

_BUFFER_BYTES: Final = 1 << 20


class Answer(NamedTuple):
    """The answers to consecutive tuples; entry i of each column belongs to the i-th in arrival order.

    Attributes:
        first: ordinal of the first tuple, counted from the DRUM's beginning; it stays the same if delivered again.
        keys: uint64, shape (n,), n >= 1.
        ops: uint8: `CHECK`, `UPDATE` or `CHECK_UPDATE`.
        found: whether the key was present after all earlier tuples.
        values: the value it had then, zero if absent; None in a set.
        aux: the strings that were offered with the keys.
    """

    first: int
    keys: KeyArray
    ops: OpArray
    found: KeyMask
    values: ValueArray | None
    aux: Aux

    def from_ordinal(self, ordinal: int) -> Answer:
        skip = ordinal - self.first
        if skip <= 0:
            return self
        values = None if self.values is None else self.values[skip:]
        return Answer(ordinal, self.keys[skip:], self.ops[skip:], self.found[skip:], values, self.aux.from_place(skip))


class MergeResult(NamedTuple):
    """The result of a merge; it takes effect when a manifest names its buckets. `sheet` is None without questions."""

    buckets: tuple[BucketState, ...]
    obsolete: list[tuple[int, tuple[RunInfo, ...]]]
    sheet: AnswerSheet | None


class AnswerSheet:
    def __init__(self, files: Files, path: Path, value: np.dtype[Any] | None) -> None:
        self._files = files
        self._path = path
        self._type = np.dtype([("found", "?")] if value is None else [("found", "?"), ("value", value)])
        self._buffer = bytearray()
        self._size = self._crc = 0
        files.write_new(path, ())

    def add(self, found: KeyMask, values: ValueArray | None) -> None:
        rows = np.empty(len(found), dtype=self._type)
        rows["found"] = found
        if values is not None:
            rows["value"] = values
        self._buffer += rows.tobytes()
        if len(self._buffer) >= _BUFFER_BYTES:
            self.write()

    def write(self) -> None:
        data, self._buffer = bytes(self._buffer), bytearray()
        if data:
            self._files.write_at(self._path, self._size, data)
            self._size, self._crc = self._size + len(data), isal_zlib.crc32(data, self._crc)

    def open(self) -> Callable[[npt.NDArray[np.int64]], npt.NDArray[Any]]:
        """Return a function that returns the rows at given places. Between calls, the file uses no memory."""
        data, crc = self._files.map(self._path), 0
        for at in range(0, len(data), _BUFFER_BYTES):
            crc = isal_zlib.crc32(memoryview(data)[at : at + _BUFFER_BYTES], crc)
            data.madvise(mmap.MADV_DONTNEED)
        if (len(data), crc) != (self._size, self._crc):
            raise CorruptionError(self._path, 0, f"{self._size} bytes of crc32 {self._crc:#010x}", "others")
        rows = np.frombuffer(data, dtype=self._type)

        def rows_at(places: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
            found = rows[places]
            data.madvise(mmap.MADV_DONTNEED)
            return found

        return rows_at


def merge_gathered(repository: Repository, buckets: Sequence[Bucket], gathered: GatheredTuples) -> MergeResult:
    """Answer every tuple; write the answers, and sync new runs."""
    path = repository.directory / ANSWERS
    sheet = AnswerSheet(repository.files, path, repository.kind.value) if gathered.asks else None
    states: list[BucketState] = []
    obsolete: list[tuple[int, tuple[RunInfo, ...]]] = []
    written: list[tuple[int, tuple[RunInfo, ...]]] = []
    for number, tuples in enumerate(gathered.by_bucket()):
        outcome = _apply_tuples(buckets[number], tuples)
        states.append(outcome.state_after)
        if outcome.obsolete:
            obsolete.append((number, outcome.obsolete))
        if outcome.written:
            written.append((number, outcome.written))
        if sheet is not None:
            sheet.add(outcome.found, outcome.values)
    if sheet is not None:
        sheet.write()
    repository.sync_runs(written)
    return MergeResult(tuple(states), obsolete, sheet)


def answers_in_order(offers: OfferLog, counts: npt.NDArray[np.int64], sheet: AnswerSheet) -> Iterator[Answer]:
    """Yield the answers in order of arrival, an `Answer` for each block that asks; `counts` are tuples by bucket."""
    rows_at, first = sheet.open(), offers.written.first
    nexts = np.cumsum(counts) - counts
    for block in offers.read():
        keys, ops, _ = block.tuples
        ids = buckets_of(keys, len(counts))
        here = np.bincount(ids, minlength=len(counts))
        if (ops != UPDATE).any():
            places = np.empty(len(ids), dtype=np.int64)
            # The tuples of a bucket come in the order in which the bucket has answered them.
            places[ids.argsort(kind="stable")] = np.repeat(nexts - (np.cumsum(here) - here), here) + np.arange(len(ids))
            told = rows_at(places)
            values = told["value"] if "value" in (told.dtype.names or ()) else None
            yield Answer(first, keys, ops, told["found"], values, block.aux())
        nexts += here
        first += len(keys)


def _apply_tuples(bucket: Bucket, tuples: OfferedTuples) -> ApplyResult:
    keys, ops, values = tuples
    if not len(keys):
        return ApplyResult(np.zeros(0, dtype=np.bool_), values, bucket.state, (), ())
    does_check = ops == CHECK
    if does_check.all():
        found, held = (bucket.check(keys), None) if values is None else bucket.values(keys)
        return ApplyResult(found, held, bucket.state, (), ())
    if values is None and not does_check.any():
        result = bucket.check_update(keys)
        return ApplyResult(~result.new, None, *result[2:])
    return bucket.apply(keys, ops, values)
