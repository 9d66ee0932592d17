"""Rows from another crawl: what a partition learns from them, and what it knows better."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgpack
import numpy as np
import pytest

from bigcrawl.features.copies.fold import Copies
from bigcrawl.scheduler.budgets.placement import RECORD
from bigcrawl.scheduler.partition.fold.imported_rows import RowsFormatError, pack_rows, unpack_rows
from bigcrawl.scheduler.partition.partition import Partition, PartitionLimits
from bigcrawl.scheduler.partition.reader import read_partition
from bigcrawl.scheduler.partition.tables import KINDS
from bigcrawl.scheduler.records.inbox_entry import InboxEntry
from bigcrawl.scheduler.records.outcomes import VALUE, pack_outcomes, read_outcome
from bigcrawl.scheduler.records.queued_url import encode_batch
from tests.support.keys import pld_key
from tests.support.worlds.partition_world import SetBudgets, make_edges, make_url, pld_of

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

LIMITS = PartitionLimits(host_hot_max=8, features=(Copies(),))


def rows(table: str, values: dict[int, Any]) -> bytes:
    """Rows as an import sends them; a value is a tuple of its fields, or None in a set."""
    kind, keys = KINDS[table], sorted(values)
    packed = np.array([values[key] for key in keys], dtype=kind.value).tobytes() if kind.value is not None else b""
    return pack_rows(table, np.array(keys, dtype=np.uint64).tobytes(), packed)


class Steps:
    """A partition that is given an entry a step."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.partition = Partition.open(directory, 1, LIMITS, budgets=SetBudgets(100), pld_of=pld_of, pld_key=pld_key)
        self._number = 0

    def step(self, **fields: bytes) -> Any:
        self._number += 1
        done = self.partition.step([InboxEntry(f"{self._number}-0", **fields)], 0, {})
        self.partition._check()
        return done


@pytest.fixture
def steps(tmp_path: Path) -> Steps:
    return Steps(tmp_path / "p0000")


def test_seen_keys_make_urls_duplicates_but_not_those_of_their_own_step(steps: Steps) -> None:
    """An export has URLs that wait before the keys that are seen, and theirs are among them."""
    waits, ended = make_url(1), make_url(2)
    assert steps.step(batch=encode_batch([waits]), rows=rows("seen", {waits.key: None, ended.key: None})).new == 1
    assert steps.step(batch=encode_batch([waits, ended])).duplicates == 2
    assert len(steps.partition.state.tables.seen) == 2


def test_urls_that_arrive_after_rows_are_duplicates_in_whatever_steps_they_are_read(steps: Steps) -> None:
    """The seeds of a crawl that goes on elsewhere come right after the rows of the import: nothing is fetched again."""
    waits, ended, new = make_url(1), make_url(2), make_url(3)
    inbox = [
        InboxEntry("1-0", batch=encode_batch([waits])),
        InboxEntry("2-0", rows=rows("seen", {waits.key: None, ended.key: None})),
        InboxEntry("3-0", rows=rows("ends", {ended.key: (404, 0, 5)})),
        InboxEntry("4-0", batch=encode_batch([ended, new, waits])),
    ]
    done = [steps.partition.step(inbox, 0, {}) for _ in range(2)]
    assert [(one.new, one.duplicates) for one in done] == [(1, 0), (1, 2)]
    assert steps.partition.manifest.inbox_id == "4-0"


def test_ends_that_are_known_stay(steps: Steps) -> None:
    """An end of the other crawl is older than the one that was seen here."""
    steps.step(outcomes=pack_outcomes([(7, "status:200", 0)]))
    steps.step(rows=rows("ends", {7: (404, 0, 5), 8: (500, 3, 9)}))
    found, values = steps.partition.ends_of(np.array([7, 8], dtype=np.uint64))
    assert found.all()
    assert read_outcome(values[0]).name == "status:200"
    assert read_outcome(values[1]) == ("status:500", 3, 9)


def test_in_degrees_take_the_larger_number_and_the_same_rows_change_nothing(steps: Steps) -> None:
    """So a repeated import is harmless, and the distribution of in-degrees stays true."""
    steps.step(edges=make_edges([("b.example", "a.example"), ("c.example", "a.example")]))
    brought = rows("plds", {pld_key("a.example"): (1, 9, 9, 9, 9), pld_key("d.example"): (5, 0, 0, 0, 0)})
    for _ in range(2):
        steps.step(rows=brought)
        degrees = {}
        for name in ("a.example", "d.example"):
            on_disk = read_partition(steps.directory, 0, pld_key(name))
            assert on_disk is not None
            degrees[name] = on_disk.in_degree, on_disk.pld_turn
        assert degrees == {"a.example": (2, None), "d.example": (5, None)}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        msgpack.packb(("nothing", b"", b"")),
        msgpack.packb(("seen", b"1234567", b"")),
        msgpack.packb(("seen", b"12345678", b"x")),
        msgpack.packb(("seen", b"12345678" + b"87654321", b"")),
        msgpack.packb(("seen", b"12345678" * 2, b"")),
        msgpack.packb(("ends", b"12345678", b"x" * (VALUE.itemsize - 1))),
        msgpack.packb(("plds", b"12345678", b"x" * 2 * RECORD.itemsize)),
        msgpack.packb(("seen", 5, b"")),
        msgpack.packb([1]),
        msgpack.packb(7),
    ],
)
def test_damaged_rows_are_set_aside(steps: Steps, data: bytes) -> None:
    """They change nothing, and the step goes on."""
    with pytest.raises(RowsFormatError):
        unpack_rows(data)
    done = steps.step(batch=encode_batch([make_url(1)]), rows=data or b"\x00")
    assert (done.new, done.rejected, len(steps.partition.state.tables.seen)) == (1, 1, 1)
    assert [path.name for path in (steps.directory / "rejected").iterdir()] == ["1-0-rows"]
