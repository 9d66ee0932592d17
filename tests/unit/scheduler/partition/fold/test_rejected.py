"""Files of inbox entries that could not be decoded: what they are, by their names, and whether they can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.features.copies.rows import pack_seen
from bigcrawl.scheduler.partition.fold.rejected import rejected_entries
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.records.inbox_entry import OBSERVED, InboxEntry
from tests.support.observed_rows import pack_each

if TYPE_CHECKING:
    from pathlib import Path

UNREADABLE = b"\x09 no rows"


def test_rows_that_cannot_be_read_are_named_as_observed(tmp_path: Path) -> None:
    Partition.open(tmp_path / "p0003", 1, PartitionLimits()).step([InboxEntry("5-1", observed=UNREADABLE)], 0, {})
    [entry] = rejected_entries(tmp_path)
    assert (entry.partition, entry.path.name, entry.field) == (3, "5-1-observed", OBSERVED)
    assert "format version 9" in entry.problem


@pytest.mark.parametrize(("data", "problem"), [(pack_each(pack_seen(70, 2)), ""), (UNREADABLE, "format version 9")])
def test_rows_that_an_earlier_version_set_aside_are_known(tmp_path: Path, data: bytes, problem: str) -> None:
    """It called them contents; they are taken in again by the same field of an entry."""
    path = tmp_path / "p0003" / "rejected" / "5-1-contents"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    [entry] = rejected_entries(tmp_path)
    assert (entry.path, entry.field) == (path, OBSERVED)
    assert bool(entry.problem) == bool(problem)
    assert problem in entry.problem
