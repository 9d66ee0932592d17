from __future__ import annotations

import tracemalloc
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.drum.bucket import EMPTY_BUCKET, Bucket, Kind
from bigcrawl.drum.files import DiskFiles
from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.drum.memtable import EMPTY_MEMTABLE, MEMTABLE_KEYS_MAX, Memtable, in_strings

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.drum.format import KeyArray

BUCKETS = 8
BATCHES = 400  # 4,000 keys


def keys_of(*numbers: int) -> KeyArray:
    return np.array(numbers, dtype=KEY_TYPE)


@given(st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=5), max_size=6))
def test_batches_follow_each_other_in_order(batches: list[list[int]]) -> None:
    """Keys are held as they came, each value keeps its own, and bytes read back equal."""
    made = [EMPTY_MEMTABLE]
    for batch in batches:
        made.append(made[-1].with_added(keys_of(*batch)))
    flat = [key for batch in batches for key in batch]
    for before, after in pairwise(made):
        assert after.begins_with(before)
        kept = len(before)
        assert np.frombuffer(after.bytes_from(kept), dtype=KEY_TYPE).tolist() == flat[kept : len(after)]
    assert made[-1].sorted_records().keys.tolist() == sorted(flat)
    again = Memtable.from_bytes(made[-1].bytes_from(0))
    assert again == made[-1]
    assert hash(again) == hash(made[-1])


def test_equal_is_who_holds_the_same_keys_in_the_same_order() -> None:
    """Whether arrays are shared or not does not matter; length and order do."""
    some = EMPTY_MEMTABLE.with_added(keys_of(3, 1))
    assert some == Memtable.from_bytes(keys_of(3, 1).tobytes())
    assert some != Memtable.from_bytes(keys_of(1, 3).tobytes())
    assert some != some.with_added(keys_of(2))
    assert not some.begins_with(some.with_added(keys_of(2)))
    assert not Memtable.from_bytes(keys_of(3, 2, 1).tobytes()).begins_with(some)


def test_what_was_added_and_dropped_is_overwritten() -> None:
    """The value before stays as it was, and the one made last holds what it was given."""
    before = EMPTY_MEMTABLE.with_added(keys_of(5))
    before.with_added(keys_of(6, 7))
    after = before.with_added(keys_of(8))
    assert before.sorted_records().keys.tolist() == [5]
    assert after.sorted_records().keys.tolist() == [5, 8]


def test_more_keys_than_the_array_holds_get_a_larger_one() -> None:
    """Nothing is cut, and the smaller value stays."""
    full = EMPTY_MEMTABLE.with_added(np.arange(MEMTABLE_KEYS_MAX, dtype=KEY_TYPE))
    more = full.with_added(keys_of(2**64 - 1))
    assert (len(full), len(more)) == (MEMTABLE_KEYS_MAX, MEMTABLE_KEYS_MAX + 1)
    assert more.begins_with(full)


def test_a_string_holds_one_key() -> None:
    """Keys are cut where one ends."""
    assert in_strings(b"") == []
    assert in_strings(b"8 bytes.8 again.") == [b"8 bytes.", b"8 again."]


VALUE = np.dtype([("turn", "<u4"), ("used", "u1")])


@given(st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99)), max_size=5), max_size=6))
def test_the_last_record_of_a_key_counts(batches: list[list[tuple[int, int]]]) -> None:
    """Records with values are a log: read back equal, in order, and the newest of each key is its value."""
    made = EMPTY_MEMTABLE
    log: list[tuple[int, int]] = []
    for batch in batches:
        before = made
        values = np.array([(value, key) for key, value in batch], dtype=VALUE)
        made = made.with_added(keys_of(*(key for key, _ in batch)), values, room=2)
        log += batch
        assert made.begins_with(before)
        assert before.strings_from(0) + made.strings_from(len(before)) == made.strings_from(0)
    keys, newest = made.sorted_records(VALUE)
    assert newest is not None
    assert dict(zip(keys.tolist(), newest["turn"].tolist(), strict=True)) == dict(log)
    assert keys.tolist() == sorted(dict(log))
    assert Memtable.from_strings(made.strings_from(0)) == made
    assert Memtable.from_bytes(made.bytes_from(0), 13) == made


def test_a_record_is_the_key_and_then_its_value() -> None:
    """Little-endian both, without gaps, as a manifest keeps them."""
    made = EMPTY_MEMTABLE.with_added(keys_of(2), np.array([(3, 4)], dtype=VALUE))
    assert made.strings_from(0) == [bytes([2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4])]
    assert made != EMPTY_MEMTABLE.with_added(keys_of(2))


def test_keys_that_are_forgotten_leave_the_others_as_they_came() -> None:
    """Order and values stay; where nothing goes it is the same value."""
    made = EMPTY_MEMTABLE.with_added(keys_of(9, 1, 5, 1), np.array([(1, 1), (2, 2), (3, 3), (4, 4)], dtype=VALUE))
    assert made.without_keys(keys_of(1, 7)).strings_from(0) == [made.strings_from(0)[0], made.strings_from(0)[2]]
    assert made.without_keys(keys_of(7)) is made
    assert made.without_keys(keys_of(1, 5, 9)) == EMPTY_MEMTABLE


def test_small_batches_cost_no_memory(tmp_path: Path) -> None:
    """However few keys a batch brings, a set of them takes its array, which is no part of the heap, and no more."""
    buckets = [Bucket(tmp_path, Kind("run"), EMPTY_BUCKET, DiskFiles()) for _ in range(BUCKETS)]
    tracemalloc.start()
    try:
        for number in range(BATCHES):
            for bucket in buckets:
                bucket.commit(bucket.check_update(np.arange(number, 10 * BATCHES, BATCHES, dtype=np.uint64)))
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert all(len(bucket) == 10 * BATCHES for bucket in buckets)
    assert held <= BUCKETS * 2048


def test_a_damaged_memtable_is_noticed() -> None:
    """A key of a set that is there twice, first or last, and records that are not in the array."""
    for keys in (keys_of(3, 3), keys_of(1, 2, 3, 3), keys_of(1, 1, 2, 3)):
        with pytest.raises(AssertionError, match="distinct"):
            Memtable.from_bytes(keys.tobytes())._check()
    whole = np.zeros(16, dtype=np.uint8)
    for count, record_bytes in ((3, 8), (-1, 8), (2, 9)):
        with pytest.raises(AssertionError, match="in the array"):
            Memtable(whole, record_bytes, count)._check()
    Memtable(whole, 16, 1)._check()
    EMPTY_MEMTABLE.with_added(keys_of(2, 1))._check()
    EMPTY_MEMTABLE._check()


def test_the_array_is_used_up_to_its_last_byte() -> None:
    """A larger one is made when records do not fit, and not before. One that was read back has room for a run."""
    room = EMPTY_MEMTABLE.with_added(keys_of(1), room=2)
    full = room.with_added(keys_of(2))
    assert np.shares_memory(room._array, full._array)
    assert not np.shares_memory(full._array, full.with_added(keys_of(3))._array)
    again = Memtable.from_bytes(keys_of(1).tobytes())
    assert np.shares_memory(again._array, again.with_added(np.arange(2, MEMTABLE_KEYS_MAX, dtype=KEY_TYPE))._array)
