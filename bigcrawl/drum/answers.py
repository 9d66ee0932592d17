"""Answers: `answers-<n>`, what a merge found for each tuple of a spill, and telling them in arrival order.

A merge goes bucket by bucket and a receiver wants tuples in the order they came. `AnswerSheet` takes what a
merge finds, bucket after bucket, and writes it like the keys (`bigcrawl.drum.sections`). `tell_spill` reads
keys and answers of a spill, and then its aux, block after block: the buckets of a block's tuples say how far to
go on in each section.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bigcrawl.drum.aux_file import BLOCK_HEADER_BYTES, Aux, decode_block, decode_block_header
from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.drum.intake import aux_path, decode_section, keys_path
from bigcrawl.drum.sections import ANSWERS_MAGIC, KEYS_MAGIC, MIXED, SectionReader, SectionWriter
from bigcrawl.exceptions import CorruptionError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    from bigcrawl.drum.aux_file import IdArray
    from bigcrawl.drum.bucket import OpArray
    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import KeyArray, ValueArray
    from bigcrawl.drum.intake import Layout, Spill
    from bigcrawl.drum.run import KeyMask


# For each spill of a merge.
_BUFFER_BYTES = 16 << 10


class Answer(NamedTuple):
    """What a stretch of tuples is told; entry i of each column is the i-th in arrival order.

    Attributes:
        first: ordinal of the first tuple, counted from the DRUM's beginning; the same when told again.
        keys: uint64, shape (n,), n >= 1.
        ops: uint8: `CHECK`, `UPDATE` or `CHECK_UPDATE`.
        found: whether the key was there before this tuple, and after all tuples before it.
        values: the value it had then, zero where it was not found; None in a set.
        aux: the strings that were offered with the keys.
    """

    first: int
    keys: KeyArray
    ops: OpArray
    found: KeyMask
    values: ValueArray | None
    aux: Aux

    def from_ordinal(self, ordinal: int) -> Answer:
        """Return the part from that tuple on, which is one of these."""
        skip = ordinal - self.first
        if skip <= 0:
            return self
        values = None if self.values is None else self.values[skip:]
        return Answer(ordinal, self.keys[skip:], self.ops[skip:], self.found[skip:], values, self.aux.from_place(skip))


def answers_path(directory: Path, number: int) -> Path:
    """Return where the answers to a spill are."""
    return directory / f"answers-{number}"


class AnswerSheet:
    """The answers to one spill while a merge finds them: a bit a tuple, and a value; written as they come."""

    def __init__(self, files: Files, directory: Path, spill: Spill, buckets: int) -> None:
        path = answers_path(directory, spill.number)
        self._writer = SectionWriter(files, path, ANSWERS_MAGIC, buckets, spill.tuples, MIXED, _BUFFER_BYTES)

    def __repr__(self) -> str:
        return f"<AnswerSheet {self._writer}>"

    def add(self, found: KeyMask, values: ValueArray | None) -> None:
        """Take the answers to the next bucket's tuples, in the order they came."""
        bits = np.packbits(found, bitorder="little").tobytes()
        self._writer.add(bits if values is None else bits + values.tobytes())

    def finish(self) -> Path:
        """Write what is left, not synced, and return the file's path."""
        self._writer.finish()
        return self._writer.path


class _Found(NamedTuple):
    """A spill's tuples and answers by bucket: bucket b's are those from `starts[b]` on."""

    starts: npt.NDArray[np.int64]
    keys: KeyArray
    ops: OpArray
    found: KeyMask
    values: ValueArray | None


def tell_spill(files: Files, directory: Path, spill: Spill, layout: Layout) -> Iterator[Answer]:
    """Yield the answers to a spill in arrival order, one for each block of aux.

    Raises:
        CorruptionError: one of the three files is damaged.

    Cost: keys and answers of the spill in memory, and one block of aux.
    """
    by_bucket = _read_found(files, directory, spill, layout)
    nexts = by_bucket.starts.copy()
    first = spill.first
    for ids, aux in read_blocks(files, directory, spill, layout):
        order = ids.argsort(kind="stable")
        counts = np.bincount(ids, minlength=layout.buckets)
        # The places, by bucket, of what this block has of each.
        places = np.repeat(nexts - (np.cumsum(counts) - counts), counts) + np.arange(len(ids))
        nexts += counts
        back = np.empty(len(ids), dtype=np.int64)
        back[order] = places
        values = None if by_bucket.values is None else by_bucket.values[back]
        yield Answer(first, by_bucket.keys[back], by_bucket.ops[back], by_bucket.found[back], values, aux)
        first += len(ids)


def read_blocks(files: Files, directory: Path, spill: Spill, layout: Layout) -> Iterator[tuple[IdArray, Aux]]:
    """Yield bucket numbers and aux of a spill's tuples, block by block.

    Raises:
        CorruptionError: a block is damaged, or they are not as many tuples as the manifest says.
    """
    path, at, tuples = aux_path(directory, spill.number), 0, 0
    while at < spill.aux_bytes:
        header = decode_block_header(path, at, files.read(path, at, BLOCK_HEADER_BYTES))
        body = files.read(path, at + BLOCK_HEADER_BYTES, header.body_bytes(layout.id_type.itemsize))
        yield decode_block(path, at, header, body, layout.id_type)
        at += BLOCK_HEADER_BYTES + len(body)
        tuples += header.tuples
    if (at, tuples) != (spill.aux_bytes, spill.tuples):
        raise CorruptionError(path, at, f"{spill.tuples} tuples to byte {spill.aux_bytes}", f"{tuples} to {at}")


def _read_found(files: Files, directory: Path, spill: Spill, layout: Layout) -> _Found:
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
