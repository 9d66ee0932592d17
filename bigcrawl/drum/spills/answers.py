"""The answers to a spill, `answers-<n>`, and their delivery in order of arrival.

A merge works bucket by bucket. So delivery reads a spill's keys and answers, then its aux block by block; the bucket
numbers in a block say how far to advance in each section.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.drum.spills.aux_file import BLOCK_HEADER_BYTES, Aux, decode_block, decode_block_header
from bigcrawl.drum.spills.sections import ANSWERS_MAGIC, KEYS_MAGIC, MIXED, SectionReader, SectionWriter
from bigcrawl.drum.spills.spill import aux_path, decode_section, keys_path
from bigcrawl.exceptions import CorruptionError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    from bigcrawl.drum.bucket import OpArray
    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import KeyArray, KeyMask, ValueArray
    from bigcrawl.drum.spills.aux_file import IdArray
    from bigcrawl.drum.spills.spill import Spill, TupleLayout


_BUFFER_BYTES = 16 << 10


class Answer(NamedTuple):
    """The answers to consecutive tuples; entry i of each column belongs to the i-th in arrival order.

    Attributes:
        first: ordinal of the first tuple since the DRUM's beginning; the same if delivered again.
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


def answers_path(directory: Path, number: int) -> Path:
    return directory / f"answers-{number}"


class AnswerSheet:
    def __init__(self, files: Files, directory: Path, spill: Spill, buckets: int) -> None:
        path = answers_path(directory, spill.number)
        self._writer = SectionWriter(files, path, ANSWERS_MAGIC, buckets, spill.tuples, MIXED, _BUFFER_BYTES)

    def __repr__(self) -> str:
        return f"<AnswerSheet {self._writer}>"

    def add(self, found: KeyMask, values: ValueArray | None) -> None:
        bits = np.packbits(found, bitorder="little").tobytes()
        self._writer.add(bits if values is None else bits + values.tobytes())

    def finish(self) -> Path:
        self._writer.finish()
        return self._writer.path


class _Found(NamedTuple):
    """A spill's tuples and answers; those of bucket b start at `starts[b]`."""

    starts: npt.NDArray[np.int64]
    keys: KeyArray
    ops: OpArray
    found: KeyMask
    values: ValueArray | None


def deliver_spill(files: Files, directory: Path, spill: Spill, layout: TupleLayout) -> Iterator[Answer]:
    """Yield the answers to a spill, one `Answer` for each block of aux."""
    by_bucket = _read_found(files, directory, spill, layout)
    nexts = by_bucket.starts.copy()
    first = spill.first
    for ids, aux in read_blocks(files, directory, spill, layout):
        order = ids.argsort(kind="stable")
        counts = np.bincount(ids, minlength=layout.buckets)
        # Positions of this block's tuples in bucket order.
        places = np.repeat(nexts - (np.cumsum(counts) - counts), counts) + np.arange(len(ids))
        nexts += counts
        back = np.empty(len(ids), dtype=np.int64)
        back[order] = places
        values = None if by_bucket.values is None else by_bucket.values[back]
        yield Answer(first, by_bucket.keys[back], by_bucket.ops[back], by_bucket.found[back], values, aux)
        first += len(ids)


def read_blocks(files: Files, directory: Path, spill: Spill, layout: TupleLayout) -> Iterator[tuple[IdArray, Aux]]:
    path, at, tuples = aux_path(directory, spill.number), 0, 0
    while at < spill.aux_bytes:
        header = decode_block_header(path, at, files.read(path, at, BLOCK_HEADER_BYTES))
        body = files.read(path, at + BLOCK_HEADER_BYTES, header.body_bytes(layout.id_type.itemsize))
        yield decode_block(path, at, header, body, layout.id_type)
        at += BLOCK_HEADER_BYTES + len(body)
        tuples += header.tuples
    if (at, tuples) != (spill.aux_bytes, spill.tuples):
        raise CorruptionError(path, at, f"{spill.tuples} tuples to byte {spill.aux_bytes}", f"{tuples} to {at}")


def _read_found(files: Files, directory: Path, spill: Spill, layout: TupleLayout) -> _Found:
    keys_reader = SectionReader(files, keys_path(directory, spill.number), KEYS_MAGIC, layout.buckets, spill.tuples)
    path = answers_path(directory, spill.number)
    answers = SectionReader(files, path, ANSWERS_MAGIC, layout.buckets, spill.tuples)
    starts = np.zeros(layout.buckets, dtype=np.int64)
    keys = np.empty(spill.tuples, dtype=KEY_TYPE)
    ops = np.full(spill.tuples, keys_reader.operation, dtype=np.uint8)
    found = np.empty(spill.tuples, dtype=np.bool_)
    values = None if layout.value is None else np.empty(spill.tuples, dtype=layout.value)
    start = 0
    for number, (asked, answered) in enumerate(zip(keys_reader.read_all(), answers.read_all(), strict=True)):
        tuples = decode_section(asked, keys_reader.operation, layout)
        count = len(tuples.keys)
        bits_bytes = -(-count // 8)
        starts[number], end = start, start + count
        keys[start:end] = tuples.keys
        if tuples.ops is not None:
            ops[start:end] = tuples.ops
        bits = np.frombuffer(answered, dtype=np.uint8, count=bits_bytes)
        found[start:end] = np.unpackbits(bits, count=count, bitorder="little").view(np.bool_)
        if values is not None:
            values[start:end] = np.frombuffer(answered, dtype=layout.value, count=count, offset=bits_bytes)
        start = end
    return _Found(starts, keys, ops, found, values)
