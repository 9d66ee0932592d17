from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from bigcrawl.drum.bucket import (
    CHECK,
    CHECK_UPDATE,
    EMPTY_BUCKET,
    UPDATE,
    ApplyResult,
    Bucket,
    BucketState,
    Kind,
)
from bigcrawl.drum.files import DiskFiles
from bigcrawl.drum.memtable import Memtable
from bigcrawl.drum.record_merge import _SMALL_KEYS, FAN_IN
from bigcrawl.exceptions import ContractError
from tests.support.disks.faulty_files import Fault, FaultyFiles

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.drum.format import KeyArray

# Most tests are about runs: every batch becomes one.
SET = Kind("run", fresh_max=0)
COUNTS = Kind("pld", np.dtype("<u4"), increment=True, fresh_max=0)
TURN = np.dtype([("turn", "<u4"), ("used", "<u2")])
TURNS = Kind("turn", TURN, fresh_max=0)


def keys_of(*numbers: int) -> KeyArray:
    return np.array(numbers, dtype=np.uint64)


def bucket_in(directory: Path, kind: Kind = SET, state: BucketState = EMPTY_BUCKET) -> Bucket:
    return Bucket(directory, kind, state, DiskFiles())


def add(bucket: Bucket, keys: KeyArray) -> list[bool]:
    result = bucket.check_update(keys)
    bucket.commit(result)
    bucket._check()
    answers: list[bool] = result.new.tolist()
    return answers


def apply(bucket: Bucket, *entries: tuple[int, int, Any], keep: Any = None) -> ApplyResult:
    """Apply entries (key, op, value) and commit them."""
    keys = keys_of(*(key for key, _, _ in entries))
    ops = np.array([op for _, op, _ in entries], dtype=np.uint8)
    value = bucket._kind.value
    values = np.array([given for _, _, given in entries], dtype=value) if value is not None else None
    result = bucket.apply(keys, ops, values, keep)
    bucket.commit(result)
    bucket._check()
    return result


def test_the_first_arrival_of_a_key_is_new(tmp_path: Path) -> None:
    """Of equal keys in a batch the first is new, and none is in a later batch."""
    bucket = bucket_in(tmp_path)
    assert add(bucket, keys_of(7, 3, 7, 2**64 - 1, 3, 0)) == [True, True, False, True, False, True]
    assert add(bucket, keys_of(0, 8, 2**64 - 1)) == [False, True, False]
    assert bucket.check(keys_of(8, 9, 8, 0)).tolist() == [True, False, True, True]
    assert len(bucket) == 5


def test_an_empty_batch_writes_nothing(tmp_path: Path) -> None:
    """No key, or no new one, leaves the state as it is."""
    bucket = bucket_in(tmp_path)
    assert add(bucket, keys_of()) == []
    assert bucket.state == EMPTY_BUCKET
    add(bucket, keys_of(5))
    state = bucket.state
    assert add(bucket, keys_of(5, 5)) == [False, False]
    assert apply(bucket, (5, CHECK_UPDATE, None), (6, CHECK, None)).found.tolist() == [True, False]
    assert bucket.state == state
    assert list(bucket_in(tmp_path).records()) == []


def test_nothing_holds_before_it_is_committed(tmp_path: Path) -> None:
    """A result that is dropped leaves the set as it was, and its run's name is used again."""
    bucket = bucket_in(tmp_path)
    bucket.check_update(keys_of(1, 2))
    assert add(bucket, keys_of(2, 3)) == [True, True]
    assert [run.name for run in bucket.state.runs] == ["run-1"]
    assert bucket_in(tmp_path, SET, bucket.state).check(keys_of(1, 2, 3)).tolist() == [False, True, True]


def test_a_fork_goes_its_own_way(tmp_path: Path) -> None:
    """It has the state of the bucket, which stays as it is whatever the fork adopts; so it may be dropped."""
    bucket = bucket_in(tmp_path)
    add(bucket, keys_of(1))
    fork = bucket.fork()
    assert fork.state == bucket.state
    assert add(fork, keys_of(1, 2)) == [False, True]
    assert bucket.check(keys_of(1, 2)).tolist() == [True, False]
    assert add(bucket, keys_of(1, 3)) == [False, True]
    assert bucket.check(keys_of(1, 2, 3)).tolist() == [True, False, True]


def test_values_are_found_in_any_order(tmp_path: Path) -> None:
    """Of ascending keys, and of others; those that are not there have zero."""
    bucket = bucket_in(tmp_path, COUNTS)
    apply(bucket, (1, UPDATE, 10), (3, UPDATE, 30))
    for keys in ((), (3,), (1, 2, 3), (3, 2, 1), (3, 3, 1), (2, 2)):
        found, values = bucket.values(keys_of(*keys))
        assert found.tolist() == [key in {1, 3} for key in keys]
        assert values.tolist() == [{1: 10, 3: 30}.get(key, 0) for key in keys]


def test_it_agrees_with_a_set_over_many_merges(tmp_path: Path) -> None:
    """Small and large batches, reopened in between, are answered as a Python set would."""
    random = np.random.default_rng(7)
    seen: set[int] = set()
    bucket = bucket_in(tmp_path)
    for number in range(60):
        size = 2_000 if number % 20 == 19 else 40
        batch = random.integers(0, 40_000, size, dtype=np.uint64) * np.uint64(2**48 - 59)
        expected = []
        for key in batch.tolist():
            expected.append(key not in seen)
            seen.add(key)
        assert add(bucket, batch) == expected
        if number % 7 == 0:
            bucket = bucket_in(tmp_path, SET, bucket.state)
    assert len(bucket) == len(seen)
    assert bucket.verify() == []
    probes = np.arange(0, 40_000, 3, dtype=np.uint64) * np.uint64(2**48 - 59)
    assert bucket.check(probes).tolist() == [key in seen for key in probes.tolist()]


def test_large_runs_are_searched_and_streamed_alike(tmp_path: Path) -> None:
    """Few keys and many, between, at and beyond the ends of a run of many blocks, get the same answers."""
    held = np.arange(100_000, dtype=np.uint64) * np.uint64(10) + np.uint64(5)
    bucket = bucket_in(tmp_path)
    add(bucket, held)
    few = keys_of(0, 5, 6, 5115, 5125, 500_005, 999_995, 999_996, 2**64 - 1)
    assert bucket.check(few).tolist() == [False, True, False, True, True, True, True, False, False]
    many = np.arange(0, 1_000_100, 5, dtype=np.uint64)
    assert np.array_equal(bucket.check(many), np.isin(many, held))


def test_old_runs_stay_until_the_caller_deletes_them(tmp_path: Path) -> None:
    """A merge says which runs it made needless, and touches none of them."""
    bucket = bucket_in(tmp_path)
    for number in range(FAN_IN - 1):
        add(bucket, keys_of(number))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    result = bucket.check_update(keys_of(100))
    assert [run.name for run in result.obsolete] == [f"run-{n}" for n in range(1, FAN_IN)]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name in before} == before
    assert result.state_after.runs == result.written
    assert result.written[0].keys == FAN_IN


@pytest.mark.parametrize("at", [1, 2])
def test_a_full_disk_changes_nothing(tmp_path: Path, at: int) -> None:
    """A run that could not be written is not in the set, and the same batch may be repeated."""
    bucket = Bucket(tmp_path, SET, EMPTY_BUCKET, FaultyFiles(at, Fault.DISK_FULL))
    if at == 2:
        add(bucket, keys_of(1))
    with pytest.raises(OSError, match="No space left"):
        bucket.check_update(keys_of(1, 2))
    assert add(bucket, keys_of(1, 2)) == [at == 1, True]


def test_verify_names_each_damaged_run(tmp_path: Path) -> None:
    """Every damaged or missing run is reported, with its path."""
    bucket = bucket_in(tmp_path)
    for number in range(3):
        add(bucket, keys_of(number))
    damaged = tmp_path / "run-2"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    (tmp_path / "run-3").unlink()
    problems = bucket_in(tmp_path, SET, bucket.state).verify()
    assert [problem.path for problem in problems] == [str(damaged), str(tmp_path / "run-3")]


def test_few_new_keys_write_no_file(tmp_path: Path) -> None:
    """Keys stay in the memtable until they are worth a run, which then holds them all; a set is opened with both."""
    kind = Kind("run", fresh_max=100)
    bucket = bucket_in(tmp_path, kind)
    for number in range(10):
        before = bucket.state.memtable
        assert all(add(bucket, np.arange(number, 1000, 100, dtype=np.uint64)))
        assert bucket.state.memtable.begins_with(before)
        assert len(bucket.state.memtable) == len(before) + 10
        bucket = bucket_in(tmp_path, kind, bucket.state)
    assert list(tmp_path.iterdir()) == []
    assert add(bucket, keys_of(5, 109, 999, 5)) == [False, False, True, False]
    assert (len(bucket.state.memtable), [run.keys for run in bucket.state.runs]) == (0, [101])
    assert add(bucket, keys_of(999, 1000)) == [False, True]
    assert (len(bucket.state.memtable), len(bucket)) == (1, 102)


def test_fresh_keys_hold_only_once_committed(tmp_path: Path) -> None:
    """A result that is dropped leaves neither its keys nor its run behind."""
    bucket = bucket_in(tmp_path, Kind("run", fresh_max=3))
    add(bucket, keys_of(1, 2))
    before = bucket.state
    bucket.check_update(keys_of(3))
    bucket.check_update(keys_of(3, 4, 5))
    assert bucket.state == before
    assert add(bucket, keys_of(5, 2, 3, 4)) == [True, False, True, True]
    assert [run.name for run in bucket.state.runs] == ["run-1"]


@pytest.mark.parametrize("fresh_max", [0, 100])
def test_entries_of_a_batch_see_those_before_them(tmp_path: Path, fresh_max: int) -> None:
    """A check tells the value as it was at its place in the batch; the last update of a key stays."""
    bucket = bucket_in(tmp_path, TURNS._replace(fresh_max=fresh_max))
    entries = ((9, CHECK, (0, 0)), (9, UPDATE, (1, 10)), (9, CHECK, (8, 8)), (5, CHECK_UPDATE, (2, 20)))
    result = apply(bucket, *entries, (9, CHECK_UPDATE, (3, 30)), (9, CHECK, (0, 0)), (5, CHECK, (0, 0)))
    assert result.found.tolist() == [False, False, True, False, True, True, True]
    assert result.values is not None
    assert result.values.tolist() == [(0, 0), (0, 0), (1, 10), (0, 0), (1, 10), (3, 30), (2, 20)]
    found, values = bucket.values(keys_of(5, 7, 9, 5))
    assert (found.tolist(), values.tolist()) == ([True, False, True, True], [(2, 20), (0, 0), (3, 30), (2, 20)])


@pytest.mark.parametrize("kind", [COUNTS, Kind("n", np.dtype("<u8"), True), Kind("n", np.dtype("u1"), True, 3)])
def test_updates_add_and_stop_at_the_highest(tmp_path: Path, kind: Kind) -> None:
    """Counts add up within a batch and over batches, and one at the highest number stays there."""
    assert kind.value is not None
    highest = int(np.iinfo(kind.value).max)
    bucket = bucket_in(tmp_path, kind)
    entries = ((1, UPDATE, 5), (2, UPDATE, highest), (1, CHECK_UPDATE, 6), (1, CHECK, 99), (2, UPDATE, highest))
    result = apply(bucket, *entries)
    assert result.values is not None
    assert result.values.tolist() == [0, 0, 5, 11, highest]
    result = apply(bucket, (1, UPDATE, highest - 12), (1, UPDATE, 1), (1, UPDATE, 0), (1, CHECK, 0), (2, UPDATE, 1))
    assert result.values is not None
    assert result.values.tolist() == [11, highest - 1, highest, highest, highest]
    assert bucket.values(keys_of(1, 2, 3))[1].tolist() == [highest, highest, 0]


@pytest.mark.parametrize("fresh_max", [0, 2, 100])
def test_whole_values_are_put_without_asking(tmp_path: Path, fresh_max: int) -> None:
    """A value that is put is the key's, also where updates add; no run is read for it."""
    bucket = bucket_in(tmp_path, COUNTS._replace(fresh_max=fresh_max))
    apply(bucket, (1, UPDATE, 5), (2, UPDATE, 6), (3, UPDATE, 7))
    for path in tmp_path.iterdir():
        path.rename(path.with_suffix(".away"))
    bucket.commit(bucket.put(keys_of(1, 9), np.array([50, 90], dtype="<u4")))
    for path in tmp_path.glob("*.away"):
        path.rename(path.with_suffix(""))
    bucket._check()
    assert bucket.values(keys_of(1, 2, 3, 9))[1].tolist() == [50, 6, 7, 90]
    with pytest.raises(ContractError):
        bucket.put(keys_of(1), np.array([1], dtype="<u8"))


def test_what_does_not_change_is_not_written(tmp_path: Path) -> None:
    """An update to the value that a key has leaves the state as it is."""
    bucket = bucket_in(tmp_path, TURNS)
    apply(bucket, (1, UPDATE, (4, 4)))
    before = bucket.state
    apply(bucket, (1, UPDATE, (7, 7)), (1, UPDATE, (4, 4)), (2, CHECK, (1, 1)))
    assert bucket.state == before


def test_the_same_few_keys_again_and_again_write_no_file(tmp_path: Path) -> None:
    """A full memtable in which few keys changed often is replaced by their newest records."""
    bucket = bucket_in(tmp_path, TURNS._replace(fresh_max=10))
    for number in range(40):
        apply(bucket, (number % 5, UPDATE, (number, 1)))
    assert list(tmp_path.iterdir()) == []
    assert bucket.values(np.arange(5, dtype=np.uint64))[1]["turn"].tolist() == [35, 36, 37, 38, 39]
    assert apply(bucket, *((key, UPDATE, (1, 1)) for key in range(11))).written[0].keys == 11


def test_a_merge_keeps_the_newest_record_of_a_key(tmp_path: Path) -> None:
    """However many runs have a record of it, the run that comes of them has one."""
    bucket = bucket_in(tmp_path, TURNS)
    for number in range(1, FAN_IN):
        apply(bucket, (7, UPDATE, (number, 0)), (100 + number, UPDATE, (number, 9)))
    assert len(bucket) == 2 * (FAN_IN - 1)
    assert bucket.values(keys_of(7))[1].tolist() == [(FAN_IN - 1, 0)]
    apply(bucket, (7, UPDATE, (50, 0)))
    assert [run.keys for run in bucket.state.runs] == [FAN_IN]
    assert bucket.values(keys_of(7, 101))[1].tolist() == [(50, 0), (1, 9)]


def test_expired_records_go_when_the_oldest_run_is_merged(tmp_path: Path) -> None:
    """What a filter does not keep goes with a merge of all runs, never sooner: an older value would come back."""
    bucket = bucket_in(tmp_path, TURNS)
    many = [(1_000 + key, UPDATE, (99, 0)) for key in range(_SMALL_KEYS)]
    apply(bucket, (7, UPDATE, (99, 0)), *many)
    asked: list[int] = []

    def recent(keys: KeyArray, values: Any) -> Any:
        asked.append(len(keys))
        return values["turn"] >= 50

    for number in range(1, FAN_IN):
        apply(bucket, (7, UPDATE, (number, 0)), keep=recent)
    assert bucket.values(keys_of(7))[1].tolist() == [(FAN_IN - 1, 0)]
    assert asked == []
    apply(bucket, *((20_000 + key, UPDATE, (60, 0)) for key in range(3 * _SMALL_KEYS)), keep=recent)
    assert asked
    assert bucket.check(keys_of(7, 1_000, 20_000)).tolist() == [False, True, True]
    assert bucket.verify() == []


def test_all_may_expire(tmp_path: Path) -> None:
    """A merge that keeps nothing writes no run."""
    bucket = bucket_in(tmp_path, TURNS)
    result = apply(bucket, (1, UPDATE, (1, 0)), keep=lambda keys, values: values["turn"] > 50)
    assert (result.written, bucket.state) == ((), EMPTY_BUCKET)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [SET, TURNS, SET._replace(fresh_max=3), TURNS._replace(fresh_max=3)])
def test_forgotten_keys_were_never_here(tmp_path: Path, kind: Kind) -> None:
    """A key is gone from all runs and the memtable, and new when it comes again."""
    bucket = bucket_in(tmp_path, kind)
    for batch in ((1, 2, 3, 4), (5, 6), (7,)):
        apply(bucket, *((key, UPDATE, (key, key)) for key in batch))
    before = bucket.state
    result = bucket.remove_keys(keys_of(7, 3, 2, 9, 2))
    assert result.found.tolist() == [True, True, True, False, True]
    assert bucket.state == before
    bucket.commit(result)
    bucket._check()
    left = [1, 4, 5, 6]
    assert bucket.check(np.arange(10, dtype=np.uint64)).tolist() == [key in left for key in range(10)]
    assert [key for chunk in bucket.records() for key in chunk.keys.tolist()] == left
    assert len(bucket) == len(left)
    assert bucket.verify() == []
    assert apply(bucket, (3, CHECK_UPDATE, (1, 1)), (3, CHECK, (0, 0))).found.tolist() == [False, True]


def test_the_name_of_a_forgotten_run_is_not_used_again(tmp_path: Path) -> None:
    """An older manifest may still name a run that lost all its keys: no later one is written over it."""
    bucket = bucket_in(tmp_path)
    add(bucket, keys_of(1))
    add(bucket, keys_of(2))
    kept = (tmp_path / "run-2").read_bytes()
    bucket.commit(bucket.remove_keys(keys_of(2)))
    add(bucket, keys_of(3))
    assert [run.name for run in bucket.state.runs] == ["run-1", "run-3"]
    assert (tmp_path / "run-2").read_bytes() == kept


def test_forgetting_what_is_not_here_changes_nothing(tmp_path: Path) -> None:
    """No file is written for it."""
    bucket = bucket_in(tmp_path)
    add(bucket, keys_of(1, 3))
    result = bucket.remove_keys(keys_of(2))
    assert result.found.tolist() == [False]
    assert (result.state_after, result.obsolete, result.written) == (bucket.state, (), ())


def test_a_batch_that_does_not_fit_its_kind_is_a_bug(tmp_path: Path) -> None:
    """Values belong to maps, of one dtype; ops are three."""
    counts, keys, ops = bucket_in(tmp_path, COUNTS), keys_of(1), np.array([UPDATE], dtype=np.uint8)
    for values in (None, np.array([1], dtype="<u8"), np.array([1, 2], dtype="<u4")):
        with pytest.raises(ContractError):
            counts.apply(keys, ops, values)
    with pytest.raises(ContractError):
        counts.check_update(keys)
    seen = bucket_in(tmp_path)
    with pytest.raises(ContractError):
        seen.apply(keys, ops, np.array([1], dtype="<u4"))
    with pytest.raises(ContractError):
        seen.apply(keys, np.array([3], dtype=np.uint8))
    with pytest.raises(ContractError):
        seen.values(keys)


def test_a_state_is_what_its_manifest_kept(tmp_path: Path) -> None:
    """Runs as rows and a memtable as strings make the same map again."""
    kind = TURNS._replace(fresh_max=4)
    bucket = bucket_in(tmp_path, kind)
    apply(bucket, *((key, UPDATE, (key, 1)) for key in range(9)))
    apply(bucket, (3, UPDATE, (77, 2)), (20, UPDATE, (1, 1)))
    runs = tuple(type(run)(*run) for run in bucket.state.runs)
    again = bucket_in(tmp_path, kind, BucketState(runs, Memtable.from_strings(bucket.state.memtable.strings_from(0))))
    assert again.state == bucket.state
    assert again.values(keys_of(3, 8, 20))[1].tolist() == [(77, 2), (8, 1), (1, 1)]
