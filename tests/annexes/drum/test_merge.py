from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bigcrawl.drum.bucket import CHECK, CHECK_UPDATE, UPDATE, Kind
from bigcrawl_drum.drum import Drum
from tests.support.disks.power_cut import Lost, PowerCutFiles
from tests.support.worlds.drum_world import BUCKETS, KINDS, DrumWorld, Offer, spread

if TYPE_CHECKING:
    from bigcrawl.drum.files import AnyPath
    from bigcrawl_drum.merge import Answer

OPERATIONS = (CHECK, UPDATE, CHECK_UPDATE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("flushed", [1, 2, 3])
def test_spills_of_one_operation_each_are_answered_in_order(tmp_path: Path, kind: str, flushed: int) -> None:
    """A merge of one spill, of two and of three, whatever each of them asks."""
    world = DrumWorld(tmp_path / "drum", KINDS[kind])
    world.open()
    for number, operations in enumerate(itertools.product(OPERATIONS, repeat=flushed)):
        for operation in operations:
            world.offer([Offer(spread(number + place), operation, number, b"") for place in range(3)])
            world.flush()
        world.merge()


@pytest.mark.parametrize(("operation", "added"), [(CHECK, 0), (UPDATE, 8), (CHECK_UPDATE, 8)])
def test_an_operation_for_each_tuple_may_be_the_same_for_all(tmp_path: Path, operation: int, added: int) -> None:
    """What only asks adds nothing."""
    keys = np.array([spread(number) for number in range(8)], dtype=np.uint64)
    answers: list[Answer] = []
    with Drum(tmp_path / "drum", answers.append, buckets=BUCKETS) as drum:
        drum.offer(keys, np.full(8, operation, dtype=np.uint8))
        drum.merge()
        assert len(drum) == added
        assert not any(answer.found.any() for answer in answers)


class EagerRenames(PowerCutFiles):
    """A disk that loses its power behind each rename, and that renames before it keeps names that were made earlier."""

    def __init__(self, directory: Path, media: Path) -> None:
        super().__init__()
        self._directory, self._media = directory, media
        self.cuts: list[Path] = []

    def replace(self, source: AnyPath, target: AnyPath) -> None:
        super().replace(source, target)
        target = Path(target)
        if target.parent in self._names:
            self._names[target.parent][target.name] = target.stat().st_ino
            self.cuts.append(self._media / f"{len(self.cuts)}")
            self.cut_power(self._directory, self.cuts[-1], Lost.NAMES)


def test_a_merge_is_on_the_medium_before_the_manifest_that_names_it(tmp_path: Path) -> None:
    """Its runs, whatever order of names a file system keeps; and its answers have been told."""
    (tmp_path / "media").mkdir()
    files = EagerRenames(tmp_path / "drum", tmp_path / "media")
    with Drum(tmp_path / "drum", lambda _: None, buckets=BUCKETS, kind=Kind("run", fresh_max=0), files=files) as drum:
        for number in range(3):
            drum.check_update(np.array([spread(number * 7 + place) for place in range(10)], dtype=np.uint64))
            drum.merge()
    assert len(files.cuts) >= 3
    for number, medium in enumerate(files.cuts[-3:], 1):
        answers: list[Answer] = []
        with Drum(medium, answers.append, buckets=BUCKETS, kind=Kind("run", fresh_max=0)) as drum:
            assert drum.verify() == []
            drum.tell()
            assert len(drum) == number * 7 + 3
        assert answers == []


def test_runs_that_a_merge_made_needless_are_deleted(tmp_path: Path) -> None:
    """What lies in the buckets' directories is what the state names."""
    with Drum(tmp_path / "drum", lambda _: None, kind=Kind("run", fresh_max=0), buckets=BUCKETS) as drum:
        for number in range(6):
            drum.update(np.array([spread(10 * number + place) for place in range(10)], dtype=np.uint64))
            drum.merge()
        named = {(number, run.name) for number, bucket in enumerate(drum._state.buckets) for run in bucket.runs}
        there = {(int(path.parent.name[1:], 16), path.name) for path in (tmp_path / "drum").glob("b*/*")}
        assert there == named
        assert len(drum) == 60
