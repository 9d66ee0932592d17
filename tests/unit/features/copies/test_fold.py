"""A partition that knows contents: copies are found once, and what other partitions must hear outlives its owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bigcrawl.content.copies import COPY, EXACT, NEAR, copy_keys
from bigcrawl.features.copies.fold import Copies
from bigcrawl.features.copies.rows import FOUND, KINDS, pack_seen
from bigcrawl.scheduler.partition.fold.imported_rows import pack_rows
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.partition.reader import read_copies_of
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from tests.support.observed_rows import pack_each, unpack_each
from tests.unit.content.pages import edited, page
from tests.unit.content.test_near_copies import rows_of

if TYPE_CHECKING:
    from pathlib import Path

LIMITS = PartitionLimits(host_hot_max=10, features=(Copies(),))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state" / "p0007"


class Steps:
    """Steps of one partition, each with an entry about contents."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.epoch = 0
        self.entries = 0
        self.take_over()

    def take_over(self) -> None:
        self.epoch += 1
        self.partition = Partition.open(self.directory, self.epoch, LIMITS)

    def step(self, *seen: tuple[int, int], sketched: bytes = b"", found: bytes = b"") -> None:
        self.step_with(pack_each(b"".join(pack_seen(*row) for row in seen), sketched, found))

    def step_with(self, contents: bytes) -> int:
        self.entries += 1
        return self.partition.step([InboxEntry(f"{self.entries}-0", observed=contents)], 0, {}).rejected

    def counts(self) -> tuple[int, int]:
        counts = self.partition.manifest.counts
        return counts.get("exact_copies", 0), counts.get("near_copies", 0)

    def listed(self) -> list[tuple[int, ...]]:
        rows = read_copies_of(self.directory)
        assert rows is not None
        return sorted(map(tuple, rows.tolist()))


def test_copies_are_counted_once_and_listed_for_whoever_reads_the_files(directory: Path) -> None:
    """Over steps, repeats and owners."""
    steps = Steps(directory)
    steps.step((70, 1), (70, 2))
    steps.step((70, 2), (70, 1), (71, 3))
    steps.take_over()
    steps.step((70, 2), (71, 4))
    assert steps.counts() == (2, 0)
    assert steps.listed() == [(2, 70, 1, EXACT), (4, 71, 3, EXACT)]


def test_imported_first_page_stays_the_first(directory: Path) -> None:
    """One step reads what an export had in its tables, and what waited in its inbox."""
    partition = Partition.open(directory, 1, LIMITS)
    rows = pack_rows("contents", np.array([70], "<u8").tobytes(), np.array([1], "<u8").tobytes())
    entries = [InboxEntry("1-0", observed=pack_each(pack_seen(70, 2))), InboxEntry("2-0", rows=rows)]
    partition.step(entries, 0, {})
    copies = read_copies_of(directory)
    assert copies is not None
    assert copies.tolist() == [(2, 70, 1, EXACT)]


def test_near_copies_are_found_for_other_partitions_until_they_were_told(directory: Path) -> None:
    """What was told is forgotten with the next step; an owner that died before that is outlived by it."""
    steps = Steps(directory)
    keys = {1: 10, 2: 20, 3: 30}
    pages = [(1, page(1)), (2, edited(page(1), 1, 4)), (3, edited(page(1), 3, 4))]
    sketched = [rows_of(page, contents=keys).tobytes() for page in pages]
    steps.step(sketched=sketched[0])
    assert steps.partition.committed.unsent_rows == b""
    steps.step(sketched=sketched[1])
    told = steps.partition.committed.unsent_rows
    assert unpack_each(pack_each(found=told)).found.tolist() == [(20, 2, 1)]
    steps.take_over()
    assert steps.partition.committed.unsent_rows == told
    steps.partition.committed.record_delivered(told)
    assert steps.partition.committed.unsent_rows == b""
    steps.take_over()
    assert steps.partition.committed.unsent_rows == told, "nothing on disk knows that it was told"
    steps.partition.committed.record_delivered(told)
    steps.step(sketched=sketched[2])
    assert len(steps.partition.committed.unsent_rows) == KINDS[FOUND].itemsize
    assert steps.counts() == (0, 0), "that is counted where the content belongs"


def test_a_near_copy_is_noted_at_the_page_that_had_its_content_first(directory: Path) -> None:
    """Once, however often it is told; other pages with the content are exact copies, and the original is no copy."""
    steps = Steps(directory)
    found = unpack_each(pack_each(found=b"".join(_found(row) for row in [(70, 2, 9), (70, 2, 8), (71, 3, 3)])))
    steps.step((70, 1), (70, 2), (71, 3))
    for _ in range(2):
        steps.step(found=found.found.tobytes())
        steps.take_over()
    assert steps.counts() == (1, 1)
    assert steps.listed() == [(1, 70, 9, NEAR), (2, 70, 1, EXACT)]


def test_copies_of_an_imported_crawl_are_counted(directory: Path) -> None:
    """Once, beside those that the partition has found itself."""
    steps = Steps(directory)
    steps.step((70, 1), (70, 2))
    values = np.array([(2, 70, 1, EXACT), (5, 71, 4, EXACT), (6, 72, 4, NEAR)], dtype=COPY)
    keys = copy_keys(values["page"], values["content"])
    order = keys.argsort()
    rows = pack_rows("copies", keys[order].tobytes(), values[order].tobytes())
    for _ in range(2):
        steps.entries += 1
        assert steps.partition.step([InboxEntry(f"{steps.entries}-0", rows=rows)], 0, {}).rejected == 0
    assert steps.counts() == (2, 1)
    assert len(steps.listed()) == 3


def test_rows_that_cannot_be_read_are_set_aside(directory: Path) -> None:
    """The rest of the step is carried out."""
    steps = Steps(directory)
    assert steps.step_with(b"\x09 no rows") == 1
    steps.step((70, 1), (70, 2))
    assert steps.counts() == (1, 0)


def _found(row: tuple[int, int, int]) -> bytes:
    return b"".join(value.to_bytes(8, "little") for value in row)
