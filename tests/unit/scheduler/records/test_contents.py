from __future__ import annotations

import numpy as np
import pytest

from bigcrawl.scheduler.records.contents import (
    ContentsFormatError,
    found_by_partition,
    pack_contents,
    pack_found,
    pack_seen,
    pack_sketched,
    unpack_contents,
)

SKETCH = bytes(range(64))


def found_rows(*rows: tuple[int, int, int]) -> bytes:
    return pack_found(*(np.array(column, dtype=np.uint64) for column in zip(*rows, strict=True)))


def sketched_row(band: int, content: int, page: int) -> bytes:
    bands, contents, pages = (np.array([number], dtype=np.uint64) for number in (band, content, page))
    return pack_sketched(bands[np.newaxis], contents, pages, np.frombuffer(SKETCH, dtype=np.uint64)[np.newaxis])


def test_rows_arrive_as_they_were_packed() -> None:
    """Of each kind, in their order; nothing is sent if there is nothing to say."""
    seen = [(7, 1), ((1 << 64) - 1, 2), (7, 1)]
    packed = pack_contents(b"".join(pack_seen(*row) for row in seen), sketched_row(5, 7, 1), found_rows((9, 2, 1)))
    rows = unpack_contents(packed)
    assert rows.seen.tolist() == seen
    assert rows.sketched["band"].tolist() == [5]
    assert (rows.sketched["content"].tolist(), rows.sketched["page"].tolist()) == ([7], [1])
    assert rows.sketched["sketch"].tobytes() == SKETCH
    assert rows.found.tolist() == [(9, 2, 1)]
    assert [len(kind) for kind in unpack_contents(pack_contents(found=found_rows((9, 2, 1))))] == [0, 0, 1]
    assert pack_contents() == b""


def test_what_was_found_is_told_once_to_each_contents_partition() -> None:
    """The first verdict on a content; its partition is that of its key."""
    found = found_rows((9, 2, 1), (12, 3, 1), (9, 4, 7), (19, 5, 1))
    by_partition = found_by_partition(found, 10)
    assert {home: unpack_contents(pack_contents(found=rows)).found.tolist() for home, rows in by_partition.items()} == {
        9: [(9, 2, 1), (19, 5, 1)],
        2: [(12, 3, 1)],
    }


def test_what_is_no_whole_rows_is_refused() -> None:
    """Cut anywhere, with a rest, or of a version that nobody knows yet."""
    packed = pack_contents(pack_seen(7, 1) * 3, sketched_row(5, 7, 1), found_rows((9, 2, 1)))
    for end in range(len(packed)):
        with pytest.raises(ContentsFormatError):
            unpack_contents(packed[:end])
    with pytest.raises(ContentsFormatError, match="1 bytes after their rows"):
        unpack_contents(packed + b"x")
    with pytest.raises(ContentsFormatError, match="format version 2; this version reads 1"):
        unpack_contents(b"\x02" + packed[1:])
    with pytest.raises(ContentsFormatError):
        unpack_contents(b"\x01\xff\xff\xff\xff" + packed[5:])
