from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

import pytest

from bigcrawl.drum.key_set import LOG_KEYS, KeySet
from bigcrawl.exceptions import CorruptionError, TransientStoreError
from tests.support.disks.faulty_files import Fault, FaultyFiles, SimulatedCrashError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def put(keys: KeySet, numbers: Iterable[int]) -> list[bool]:
    """Add keys as the duplicate filter does, writing what is due."""
    answers = []
    for number in numbers:
        answers.append(keys.add(number))
        if keys.is_due:
            keys.write()
    keys._check()
    return answers


def test_a_key_is_new_once(tmp_path: Path) -> None:
    """Over memory, the log, runs and merges of runs, and over reopening, it answers as a Python set does."""
    random_numbers = random.Random(3)
    seen: set[int] = set()
    keys = KeySet(tmp_path / "set", run_keys=300)
    for _ in range(12):
        batch = [random_numbers.randrange(6000) * (2**64 // 6000) for _ in range(900)]
        expected = []
        for number in batch:
            expected.append(number in seen)
            seen.add(number)
        assert put(keys, batch) == expected
        assert len(keys) == len(seen)
        keys.close()
        keys = KeySet(tmp_path / "set", run_keys=300)
    assert keys.verify() == []
    assert [run.name for run in keys._bucket.state.runs] == ["run-16"], "they were merged"


def test_kill_loses_only_the_keys_that_were_not_appended(tmp_path: Path) -> None:
    """Without close, all but the last keys are there again, less than a log record of them."""
    keys = KeySet(tmp_path / "set", run_keys=1000)
    put(keys, range(1, 2800))
    again = KeySet(tmp_path / "set", run_keys=1000)
    answers = put(again, range(1, 2800))
    lost = answers.count(False)
    assert lost < LOG_KEYS
    assert answers == [True] * (2799 - lost) + [False] * lost


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_DURING, Fault.CRASH_AFTER])
def test_a_crash_anywhere_loses_less_than_a_log_record(tmp_path: Path, fault: Fault) -> None:
    """At each operation of writing logs, runs and manifests the keys before the last record survive, and no others."""
    for at in itertools.count(1):
        directory = tmp_path / f"{fault.name}-{at}"
        added: list[int] = []
        files = FaultyFiles(at, fault)
        try:
            keys = KeySet(directory, files, run_keys=350)
            for number in range(1, 900):
                keys.add(number)
                added.append(number)
                if keys.is_due:
                    keys.write()
            keys.close()
        except SimulatedCrashError:
            pass
        after = KeySet(directory)
        held = [number for number in range(1, 1200) if after.add(number)]
        assert held == added[: len(held)]
        assert len(added) - len(held) <= LOG_KEYS
        if not files.is_dead:
            break
    assert at > 15


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """What could not be written stays in memory and is written later; answers go on."""
    files = FaultyFiles(10**9, Fault.DISK_FULL, lasting=3)
    keys = KeySet(tmp_path / "set", files, run_keys=400)
    files.fail(files.operations + 1, Fault.DISK_FULL)
    failures = 0
    for number in range(1, 1000):
        assert not keys.add(number)
        if keys.is_due:
            try:
                keys.write()
            except TransientStoreError:
                failures += 1
    assert failures == 3
    keys.close()
    assert put(KeySet(tmp_path / "set"), range(1, 1000)) == [True] * 999


def test_damage_is_named(tmp_path: Path) -> None:
    """A flipped byte in a log stops the set from opening, one in a run its answers; both say where."""
    keys = KeySet(tmp_path / "set", run_keys=400)
    put(keys, range(0, 700 * 2**50, 2**50))
    keys.close()
    log = next((tmp_path / "set").glob("new-*"))
    data = log.read_bytes()
    log.write_bytes(data[:20] + bytes([data[20] ^ 4]) + data[21:])
    with pytest.raises(CorruptionError) as caught:
        KeySet(tmp_path / "set")
    assert (caught.value.path, caught.value.offset) == (str(log), 0)
    log.write_bytes(data)
    run = next((tmp_path / "set").glob("b000/run-*"))
    data = run.read_bytes()
    run.write_bytes(data[:20] + bytes([data[20] ^ 4]) + data[21:])
    keys = KeySet(tmp_path / "set")
    assert [problem.path for problem in keys.verify()] == [str(run)]
    with pytest.raises(CorruptionError):
        put(keys, range(0, 700 * 2**50, 2**50))
