from __future__ import annotations

import numpy as np
import pytest

from bigcrawl.feature_list import modules_of
from bigcrawl.features.copies.rows import pack_found, pack_seen, pack_sketched
from bigcrawl.features.mirrors.rows import COUNTED, SHARED, pack_sampled
from bigcrawl.scheduler.records.observed import (
    KINDS,
    ObservedFormatError,
    ObservedRows,
    owed_by_partition,
    rows_by_partition,
)
from tests.support.observed_rows import pack_each, unpack_each

SKETCH = bytes(range(64))


def found_rows(*rows: tuple[int, int, int]) -> bytes:
    return pack_found(*(np.array(column, dtype=np.uint64) for column in zip(*rows, strict=True)))


def sketched_row(band: int, content: int, page: int) -> bytes:
    bands, contents, pages = (np.array([number], dtype=np.uint64) for number in (band, content, page))
    return pack_sketched(bands[np.newaxis], contents, pages, np.frombuffer(SKETCH, dtype=np.uint64)[np.newaxis])


def test_rows_arrive_as_they_were_packed() -> None:
    """Of each kind, in their order; nothing is sent if there is nothing to say."""
    seen = [(7, 1), ((1 << 64) - 1, 2), (7, 1)]
    counted, shared = np.array([(9, 2, 1, 3)], dtype=KINDS[COUNTED]), np.array([(9, 1, 2, 4)], dtype=KINDS[SHARED])
    packed = pack_each(
        b"".join(pack_seen(*row) for row in seen),
        sketched_row(5, 7, 1),
        found_rows((9, 2, 1)),
        pack_sampled(8, 9),
        counted.tobytes(),
        shared.tobytes(),
    )
    rows = unpack_each(packed)
    assert rows.seen.tolist() == seen
    assert rows.sketched["band"].tolist() == [5]
    assert (rows.sketched["content"].tolist(), rows.sketched["page"].tolist()) == ([7], [1])
    assert rows.sketched["sketch"].tobytes() == SKETCH
    assert rows.found.tolist() == [(9, 2, 1)]
    assert rows.sampled.tolist() == [(8, 9)]
    assert (rows.counted.tolist(), rows.shared.tolist()) == (counted.tolist(), shared.tolist())
    alone = unpack_each(pack_each(found=found_rows((9, 2, 1))))
    assert (len(alone.found), sum(map(len, alone))) == (1, 1)
    assert pack_each() == b""


def test_what_was_found_is_told_once_to_each_contents_partition() -> None:
    """The first verdict on a content; its partition is that of its key."""
    found = found_rows((9, 2, 1), (12, 3, 1), (9, 4, 7), (19, 5, 1))
    by_partition = owed_by_partition(found, 10)
    assert {home: unpack_each(pack_each(found=rows)).found.tolist() for home, rows in by_partition.items()} == {
        9: [(9, 2, 1), (19, 5, 1)],
        2: [(12, 3, 1)],
    }


def test_what_plds_have_in_common_goes_to_the_partition_of_its_key() -> None:
    """What was counted to that of the content, what is shared to that of the PLD."""
    counted = [(21, 7, 1, 3), (33, 7, 2, 3), (11, 7, 3, 3)]
    packed = np.array(counted, dtype=KINDS[COUNTED])
    assert rows_by_partition(COUNTED, counted, 10) == [
        ObservedRows(1, packed[[0, 2]].tobytes(), COUNTED),
        ObservedRows(3, packed[[1]].tobytes(), COUNTED),
    ]
    shared = [(7, 1, 22, 4)]
    whole = np.array(shared, dtype=KINDS[SHARED]).tobytes()
    assert rows_by_partition(SHARED, shared, 10) == [ObservedRows(7, whole, SHARED)]
    assert rows_by_partition(SHARED, [], 10) == []


def test_what_is_no_whole_rows_is_refused() -> None:
    """Cut anywhere but between two kinds, with a rest, or of a version or kind that nobody knows yet."""
    parts = pack_seen(7, 1) * 3, sketched_row(5, 7, 1), found_rows((9, 2, 1))
    packed = pack_each(*parts)
    whole = {1, *(len(pack_each(*parts[:kinds])) for kinds in (1, 2))}
    for end in set(range(len(packed))) - whole:
        with pytest.raises(ObservedFormatError):
            unpack_each(packed[:end])
    with pytest.raises(ObservedFormatError, match="end within a count of rows"):
        unpack_each(packed + b"x")
    with pytest.raises(ObservedFormatError, match="rows of kind 0 come after those of kind 2"):
        unpack_each(packed + packed[1:])
    with pytest.raises(ObservedFormatError, match="rows of kind 255 come after those of kind 2"):
        unpack_each(packed + b"\xff\x00\x00\x00\x00")
    with pytest.raises(ObservedFormatError, match="format version 2; this version reads 1"):
        unpack_each(b"\x02" + packed[1:])
    with pytest.raises(ObservedFormatError):
        unpack_each(b"\x01\x00\xff\xff\xff\xff" + packed[6:])


def test_a_kind_of_rows_belongs_to_one_feature() -> None:
    """Nobody else uses its number."""
    assert sum(len(module.KINDS) for module in modules_of("rows")) == len(KINDS)
