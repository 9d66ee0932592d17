from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.drum.drum import _SMALL_KEYS, FAN_IN, Drum, merge_ascending, runs_to_merge
from bigcrawl.drum.files import DiskFiles
from bigcrawl.drum.fresh import FRESH_KEYS_MAX
from tests.support.faulty_files import Fault, FaultyFiles

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.drum.format import KeyArray


@pytest.fixture(autouse=True)
def no_key_stays_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most tests are about runs: every batch becomes one."""
    monkeypatch.setattr("bigcrawl.drum.drum.FRESH_KEYS_MAX", 0)


def keys_of(*numbers: int) -> KeyArray:
    return np.array(numbers, dtype=np.uint64)


def add(drum: Drum, keys: KeyArray) -> list[bool]:
    result = drum.check_update(keys)
    drum.commit(result)
    drum._check()
    answers: list[bool] = result.new.tolist()
    return answers


def test_the_first_arrival_of_a_key_is_new(tmp_path: Path) -> None:
    """Of equal keys in a batch the first is new, and none is in a later batch."""
    drum = Drum(tmp_path, (), DiskFiles())
    assert add(drum, keys_of(7, 3, 7, 2**64 - 1, 3, 0)) == [True, True, False, True, False, True]
    assert add(drum, keys_of(0, 8, 2**64 - 1)) == [False, True, False]
    assert drum.check(keys_of(8, 9, 8, 0)).tolist() == [True, False, True, True]
    assert len(drum) == 5


def test_an_empty_batch_writes_nothing(tmp_path: Path) -> None:
    """No key, or no new one, leaves the runs as they are."""
    drum = Drum(tmp_path, (), DiskFiles())
    assert add(drum, keys_of()) == []
    assert drum.runs == ()
    add(drum, keys_of(5))
    runs = drum.runs
    assert add(drum, keys_of(5, 5)) == [False, False]
    assert drum.runs == runs


def test_nothing_holds_before_it_is_committed(tmp_path: Path) -> None:
    """A result that is dropped leaves the set as it was, and its run's name is used again."""
    drum = Drum(tmp_path, (), DiskFiles())
    drum.check_update(keys_of(1, 2))
    assert add(drum, keys_of(2, 3)) == [True, True]
    assert [run.name for run in drum.runs] == ["run-1"]
    assert Drum(tmp_path, drum.runs, DiskFiles()).check(keys_of(1, 2, 3)).tolist() == [False, True, True]


def test_it_agrees_with_a_set_over_many_merges(tmp_path: Path) -> None:
    """Small and large batches, reopened in between, are answered as a Python set would."""
    random = np.random.default_rng(7)
    seen: set[int] = set()
    drum = Drum(tmp_path, (), DiskFiles())
    for number in range(60):
        size = 2_000 if number % 20 == 19 else 40
        batch = random.integers(0, 40_000, size, dtype=np.uint64) * np.uint64(2**48 - 59)
        expected = []
        for key in batch.tolist():
            expected.append(key not in seen)
            seen.add(key)
        assert add(drum, batch) == expected
        if number % 7 == 0:
            drum = Drum(tmp_path, drum.runs, DiskFiles())
    assert len(drum) == len(seen)
    assert drum.verify() == []
    probes = np.arange(0, 40_000, 3, dtype=np.uint64) * np.uint64(2**48 - 59)
    assert drum.check(probes).tolist() == [key in seen for key in probes.tolist()]


def test_large_runs_are_searched_and_streamed_alike(tmp_path: Path) -> None:
    """Few keys and many, between, at and beyond the ends of a run of many blocks, get the same answers."""
    held = np.arange(100_000, dtype=np.uint64) * np.uint64(10) + np.uint64(5)
    drum = Drum(tmp_path, (), DiskFiles())
    add(drum, held)
    few = keys_of(0, 5, 6, 5115, 5125, 500_005, 999_995, 999_996, 2**64 - 1)
    assert drum.check(few).tolist() == [False, True, False, True, True, True, True, False, False]
    many = np.arange(0, 1_000_100, 5, dtype=np.uint64)
    assert np.array_equal(drum.check(many), np.isin(many, held))


@given(st.lists(st.integers(FRESH_KEYS_MAX + 1, 30_000), max_size=200))
def test_few_runs_exist_and_keys_are_rewritten_seldom(batches: list[int]) -> None:
    """Runs stay below eight a tier; a key is rewritten some times a tier of 8, not once a batch."""
    counts: list[int] = []
    rewritten = 0
    for added in batches:
        merged = runs_to_merge(counts, added)
        total = added + sum(counts[len(counts) - merged :])
        rewritten += total - added
        counts = [*counts[: len(counts) - merged], total]
    tiers = 1 + len(np.base_repr(max(sum(counts) // _SMALL_KEYS, 1), FAN_IN))
    assert len(counts) <= (FAN_IN - 1) * (tiers + 1)
    assert rewritten <= sum(batches) * 2 * tiers


def test_old_runs_stay_until_the_caller_deletes_them(tmp_path: Path) -> None:
    """A merge says which runs it made needless, and touches none of them."""
    drum = Drum(tmp_path, (), DiskFiles())
    for number in range(FAN_IN - 1):
        add(drum, keys_of(number))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    result = drum.check_update(keys_of(100))
    assert [run.name for run in result.obsolete] == [f"run-{n}" for n in range(1, FAN_IN)]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name in before} == before
    assert len(result.runs_after) == 1
    assert result.runs_after[0].keys == FAN_IN


@pytest.mark.parametrize("at", [1, 2])
def test_a_full_disk_changes_nothing(tmp_path: Path, at: int) -> None:
    """A run that could not be written is not in the set, and the same batch may be repeated."""
    drum = Drum(tmp_path, (), FaultyFiles(at, Fault.DISK_FULL))
    if at == 2:
        add(drum, keys_of(1))
    with pytest.raises(OSError, match="No space left"):
        drum.check_update(keys_of(1, 2))
    assert add(drum, keys_of(1, 2)) == [at == 1, True]


def test_verify_names_each_damaged_run(tmp_path: Path) -> None:
    """Every damaged or missing run is reported, with its path."""
    drum = Drum(tmp_path, (), DiskFiles())
    for number in range(3):
        add(drum, keys_of(number))
    damaged = tmp_path / "run-2"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    (tmp_path / "run-3").unlink()
    reopened = Drum(tmp_path, drum.runs, DiskFiles())
    assert [problem.path for problem in reopened.verify()] == [str(damaged), str(tmp_path / "run-3")]


def test_few_new_keys_write_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys stay fresh until they are worth a run, which then holds them all; a set is opened with both."""
    monkeypatch.setattr("bigcrawl.drum.drum.FRESH_KEYS_MAX", 100)
    drum = Drum(tmp_path, (), DiskFiles())
    for number in range(10):
        before = drum.fresh
        assert all(add(drum, np.arange(number, 1000, 100, dtype=np.uint64)))
        assert drum.fresh.begins_with(before)
        assert len(drum.fresh) == len(before) + 10
        drum = Drum(tmp_path, drum.runs, DiskFiles(), drum.fresh)
    assert list(tmp_path.iterdir()) == []
    assert add(drum, keys_of(5, 109, 999, 5)) == [False, False, True, False]
    assert (len(drum.fresh), [run.keys for run in drum.runs]) == (0, [101])
    assert add(drum, keys_of(999, 1000)) == [False, True]
    assert (len(drum.fresh), len(drum)) == (1, 102)


def test_fresh_keys_hold_only_once_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result that is dropped leaves neither its keys nor its run behind."""
    monkeypatch.setattr("bigcrawl.drum.drum.FRESH_KEYS_MAX", 3)
    drum = Drum(tmp_path, (), DiskFiles())
    add(drum, keys_of(1, 2))
    before = (drum.runs, drum.fresh)
    drum.check_update(keys_of(3))
    drum.check_update(keys_of(3, 4, 5))
    assert (drum.runs, drum.fresh) == before
    assert add(drum, keys_of(5, 2, 3, 4)) == [True, False, True, True]
    assert [run.name for run in drum.runs] == ["run-1"]


def test_merging_holds_one_chunk_of_each_source() -> None:
    """Sources of uneven chunks come out ascending and complete."""
    sources = [np.arange(start, 5_000, 3, dtype=np.uint64) for start in range(3)]
    chunked = [iter(np.array_split(keys, 4 + 3 * place)) for place, keys in enumerate(sources)]
    merged = np.concatenate(list(merge_ascending(chunked)))
    assert np.array_equal(merged, np.arange(5_000, dtype=np.uint64))
