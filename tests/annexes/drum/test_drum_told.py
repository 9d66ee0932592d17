"""What a DRUM tells, and what it keeps over crashes, power cuts and full disks."""

from __future__ import annotations

import contextlib
import itertools
import random
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bigcrawl.drum.bucket import CHECK, CHECK_UPDATE, UPDATE, Kind
from bigcrawl.exceptions import ConfigError, ContractError, TransientStoreError
from bigcrawl_drum.drum import Drum
from tests.support.disks.faulty_files import Fault, FaultyFiles, SimulatedCrashError
from tests.support.disks.power_cut import Lost, PowerCutFiles
from tests.support.worlds.drum_world import KINDS, DrumWorld, Offer, ReceiverError, spread

if TYPE_CHECKING:
    from bigcrawl_drum.merge import Answer


def batch_of(seed: int, count: int = 10) -> list[Offer]:
    """Tuples of all operations, on few keys."""
    dice = random.Random(seed)
    return [
        Offer(spread(dice.randrange(30)), dice.choice((CHECK, UPDATE, CHECK_UPDATE)), dice.randrange(99), b"x" * number)
        for number in range(count)
    ]


class Told:
    """A receiver that keeps what it is told."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []

    def __call__(self, answer: Answer) -> None:
        self.answers.append(answer)

    def rows(self) -> list[tuple[int, bool, bytes]]:
        return [
            (key, found, aux)
            for answer in self.answers
            for key, found, aux in zip(answer.keys.tolist(), answer.found.tolist(), answer.aux, strict=True)
        ]


@pytest.mark.parametrize("kind", KINDS)
def test_mixed_batches_are_answered_in_order(tmp_path: Path, kind: str) -> None:
    """Checks, updates and both, on sets and on maps that replace and add, over spills and merges."""
    world = DrumWorld(tmp_path / "drum", KINDS[kind])
    world.open()
    for seed in range(30):
        world.offer(batch_of(seed))
        if seed % 9 == 8:
            world.merge()
    world.merge()
    assert world.told == 300


def test_urls_come_back_as_text_was_offered(tmp_path: Path) -> None:
    """Text of any script is told as UTF-8, in the order it came over all buckets; keys alone have empty strings."""
    told = Told()
    with Drum(tmp_path / "drum", told, buckets=16) as drum:
        urls = [f"http://a.example/{number}" for number in range(500)]
        keys = np.array([spread(number) for number in range(500)], dtype=np.uint64)
        drum.check_update(keys, aux=urls)
        drum.check(keys[:2], aux=["é", "\u4e2d" * 70_000])
        drum.check(keys[:1])
        drum.merge()
    assert [aux.decode() for _, _, aux in told.rows()] == [*urls, "é", "\u4e2d" * 70_000, ""]
    assert [found for _, found, _ in told.rows()] == [False] * 500 + [True] * 3
    answer = told.answers[0]
    assert answer.aux.select(answer.keys == keys[7]) == [b"http://a.example/7"]
    assert answer.aux[499] == b"http://a.example/499"


def test_a_full_bucket_is_merged_unasked(tmp_path: Path) -> None:
    """More tuples of one bucket than a merge takes into memory, or more bytes on disk than allowed, begin a merge."""
    told = Told()
    drum = Drum(tmp_path / "one", told, buckets=4, memory_bytes=30_000)
    for number in range(40):
        drum.check_update(np.arange(number * 10, number * 10 + 10, dtype=np.uint64))
    assert len(told.rows()) >= 150
    assert drum.waiting <= 160
    told = Told()
    drum = Drum(tmp_path / "two", told, buckets=4, disk_bytes=10_000)
    for number in range(40):
        keys = np.array([spread(place) for place in range(number * 100, number * 100 + 100)], dtype=np.uint64)
        drum.check_update(keys, aux=[str(key) * 5 for key in keys.tolist()])
        drum.flush()
    assert len(told.rows()) >= 1000


def test_nothing_is_told_before_it_is_durable(tmp_path: Path) -> None:
    """When the receiver is called, another process that opens a copy of the disk as synced finds the answers there."""
    files = PowerCutFiles()
    directory = tmp_path / "drum"
    media = itertools.count()

    def receive(answer: Answer) -> None:
        medium = tmp_path / f"medium{next(media)}"
        files.cut_power(directory, medium, Lost.ALL)
        again = Told()
        Drum(medium, again, buckets=4, memory_bytes=3500).tell()
        assert {other.first: other.keys.tolist() for other in again.answers}[answer.first] == answer.keys.tolist()

    drum = Drum(directory, receive, buckets=4, memory_bytes=3500, files=files)
    for number in range(12):
        drum.check_update(np.array([spread(number * 5 + place) for place in range(5)], dtype=np.uint64))
    drum.merge()
    assert next(media) > 0


@pytest.mark.parametrize("lost", list(Lost))
def test_a_power_cut_loses_nothing_that_was_flushed(tmp_path: Path, lost: Lost) -> None:
    """After each step, whatever unsynced bytes are lost, what was flushed is told, in order, as the model says."""
    files = PowerCutFiles()
    world = DrumWorld(tmp_path / "drum", KINDS["map"])
    world.open(files)
    for seed in range(12):
        world.offer(batch_of(seed, 7))
        if seed % 4 == 1:
            world.flush()
        if seed % 4 == 3:
            world.merge()
        other = DrumWorld(tmp_path / f"medium{seed}", world.kind)
        files.cut_power(world.directory, other.directory, lost)
        other.offers, other.flushed, other.told = [*world.offers], world.flushed, world.told
        other.open()
        other.merge()
        assert other.drum is not None
        assert other.drum.verify() == []


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_DURING, Fault.CRASH_AFTER])
def test_a_crash_at_any_operation_loses_nothing_that_was_flushed(tmp_path: Path, fault: Fault) -> None:
    """Each file operation of opening, spilling, flushing, merging and telling, once each."""
    for at in itertools.count(1):
        world = DrumWorld(tmp_path / f"{at}", KINDS["set"])
        files = FaultyFiles(at, fault)
        offered: list[Offer] = []
        try:
            world.open(files)
            for seed in range(5):
                batch = batch_of(seed)
                offered += batch
                world.offer(batch)
                if seed == 1:
                    world.flush()
                if seed == 2:
                    world.merge()
            world.merge()
        except SimulatedCrashError:
            pass
        world.offers = offered
        world.open()
        world.merge()
        assert world.drum is not None
        world.drum._check()
        if not files.is_dead:
            break
    assert at > 40, "there were so many operations"


@pytest.mark.parametrize("fault", [Fault.DISK_FULL, Fault.FAILS_AFTER])
def test_a_failing_disk_is_told_and_the_call_may_be_repeated(tmp_path: Path, fault: Fault) -> None:
    """An offer, a flush or a merge that failed has changed nothing that counts."""
    failed = 0
    for at in range(1, 90, 3):
        world = DrumWorld(tmp_path / f"{at}", KINDS["counts"])
        files = FaultyFiles(10**9, fault)
        world.open(files)
        files.fail(files.operations + at, fault)
        for seed in range(5):
            batch = batch_of(seed)
            for step in (lambda: world.offer(batch), world.flush if seed == 1 else world.merge):  # noqa: B023
                with contextlib.suppress(TransientStoreError):
                    step()
                    continue
                failed += 1
                step()
        assert world.drum is not None
        world.drum._check()
        world.merge()
    assert failed > 20


def test_an_unwilling_receiver_is_told_again(tmp_path: Path) -> None:
    """An error of the receiver goes through; the same answer comes next, in this process or another."""
    world = DrumWorld(tmp_path / "drum", KINDS["set"])
    world.open()
    for seed in range(4):
        world.offer(batch_of(seed, 4))
    world.refuses = 1
    with pytest.raises(ReceiverError):
        world.merge()
    world.refuses = 1
    with pytest.raises(ReceiverError):
        world.open().tell()
    world.merge()
    assert world.told == 16


def test_a_receiver_does_not_call_its_drum(tmp_path: Path) -> None:
    """The call is refused, and the answer comes again: what it offers would be part of the merge that is told."""
    answers: list[Answer] = []

    def receive(answer: Answer) -> None:
        answers.append(answer)
        if len(answers) == 1:
            drum.check_update(answer.keys + np.uint64(1))

    drum = Drum(tmp_path / "drum", receive, buckets=4)
    drum.check_update(np.arange(3, dtype=np.uint64))
    with pytest.raises(ContractError, match="receiver"):
        drum.merge()
    drum.merge()
    assert [answer.keys.tolist() for answer in answers] == [[0, 1, 2]] * 2
    assert len(drum) == 3


def test_offered_arrays_are_the_callers_again(tmp_path: Path) -> None:
    """Changed before they are written, they change no tuple."""
    world = DrumWorld(tmp_path / "drum", KINDS["map"])
    drum = world.open()
    keys, ops = np.arange(3, dtype=np.uint64), np.array([CHECK, UPDATE, CHECK_UPDATE], dtype=np.uint8)
    values = np.arange(3, dtype="<u4")
    drum.offer(keys, ops, values)
    world.offers += [Offer(number, number, number, b"") for number in range(3)]
    for column in (keys, ops, values):
        column[:] = 1
    world.merge()
    assert world.told == 3


def test_a_drum_is_opened_as_it_was_made(tmp_path: Path) -> None:
    """Another number of buckets, or another kind, is refused and named; a number that is no power of two too."""
    kind = Kind("run", np.dtype([("time", "<u4"), ("status", "<u2")]))
    Drum(tmp_path / "drum", Told(), kind=kind, buckets=8).close()
    Drum(tmp_path / "drum", Told(), kind=kind, buckets=8).close()
    with pytest.raises(ConfigError, match=r"not .*16"):
        Drum(tmp_path / "drum", Told(), kind=kind, buckets=16)
    with pytest.raises(ConfigError, match="None"):
        Drum(tmp_path / "drum", Told(), buckets=8)
    with pytest.raises(ConfigError, match="packed dtype"):
        Drum(tmp_path / "other", Told(), kind=Kind("run", np.dtype("u1,u4", align=True)))
    with pytest.raises(ConfigError, match="must be a power of two"):
        Drum(tmp_path / "drum", Told(), buckets=100)


def test_the_most_buckets_answer_as_few_do(tmp_path: Path) -> None:
    """Each key is new once, in two merges, with more buckets than keys and files for them."""
    keys = np.arange(1, 2_001, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    found: list[list[bool]] = []
    with Drum(tmp_path / "drum", lambda answer: found.append(answer.found.tolist()), buckets=1 << 14) as drum:
        for some in (keys[:1_200], keys[800:]):
            drum.check_update(some)
            drum.merge()
    assert [*itertools.chain.from_iterable(found)] == [False] * 1_200 + [True] * 400 + [False] * 800
    with pytest.raises(ConfigError, match="up to 16384"):
        Drum(tmp_path / "other", Told(), buckets=1 << 15)


def test_the_example_of_the_documentation_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program on the page is whole, and prints the new URLs."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "drum.md").read_text("utf-8")
    program = page.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "drum.md", "exec"), {})  # noqa: S102 - our own page
    assert capsys.readouterr().out.split() == ["b'http://a.example/7'", "b'http://a.example/8'"]


def test_calls_outside_the_contract_are_refused(tmp_path: Path) -> None:
    """Columns of different length, values of another dtype, unknown operations, too many tuples, a closed DRUM."""
    keys = np.arange(4, dtype=np.uint64)
    drum = Drum(tmp_path / "drum", Told(), kind=KINDS["map"], buckets=4, memory_bytes=3500)
    values = np.arange(4, dtype="<u4")
    with pytest.raises(ContractError, match="lengths"):
        drum.check(keys, aux=["a"])
    with pytest.raises(ContractError, match="int64"):
        drum.update(keys, values.astype(np.int64))
    with pytest.raises(ContractError, match="operations"):
        drum.offer(keys, np.array([0, 1, 2, 3], dtype=np.uint8), values)
    with pytest.raises(ContractError, match="at most"):
        drum.update(np.arange(1000, dtype=np.uint64))
    drum.update(keys, values)
    drum.close()
    with pytest.raises(ContractError, match="closed"):
        drum.check(keys)
