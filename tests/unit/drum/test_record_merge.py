from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.drum.format import Records
from bigcrawl.drum.record_merge import merge_ascending

if TYPE_CHECKING:
    from collections.abc import Iterator


def chunks_of(numbers: range, chunks: int) -> Iterator[Records]:
    return iter([Records(part, None) for part in np.array_split(np.array(numbers, dtype=np.uint64), chunks)])


def test_merging_holds_one_chunk_of_each_source() -> None:
    """Sources of uneven chunks come out ascending and complete."""
    merged = list(merge_ascending([chunks_of(range(start, 5_000, 3), 4 + 3 * start) for start in range(3)]))
    assert np.array_equal(np.concatenate([chunk.keys for chunk in merged]), np.arange(5_000, dtype=np.uint64))


def test_a_round_ends_a_chunk() -> None:
    """There are no more rounds than chunks, whatever is in them: each yields all keys that no later chunk precedes."""
    merged = list(merge_ascending([chunks_of(range(0, 500, 2), 5), chunks_of(range(1, 500, 2), 7)]))
    assert len(merged) <= 5 + 7
    assert [int(chunk.keys[0]) for chunk in merged][:2] == [0, 72]


def test_empty_chunks_and_sources_are_passed_over() -> None:
    """Filters leave chunks without keys."""
    merged = list(merge_ascending([iter([]), chunks_of(range(2), 4), chunks_of(range(0), 1)]))
    assert [key for chunk in merged for key in chunk.keys.tolist()] == [0, 1]
