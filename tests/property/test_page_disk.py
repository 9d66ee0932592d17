"""Pages and power: whenever it is cut, after a restart everything acknowledged is there, whole, and found by its index.

Every point of a small run, and of the restart after it, is tried with every kind of loss; and longer runs at random.
"""

from __future__ import annotations

import errno
import random
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from tests.support.page_disk import Item, PageDisk, Restarts, checked, restart
from tests.support.sizes import examples
from tests.unit.warc.medium import Lost, Medium, Survivors, contents_of, lay_out

if TYPE_CHECKING:
    from collections.abc import Iterator

BYTES_MAX, SYNCED_AT = 3_000, (1, 3, 5)


def small_run(patch: pytest.MonkeyPatch, directory: Path) -> PageDisk:
    """Pages, copies and notes in several files, to the end of the crawl; a sync fails, and the disk is full once.

    Some files are synced while they are written, and some are full before; the last one with the last page.
    """
    disk = PageDisk(patch, directory, BYTES_MAX)
    for number in range(8):
        disk.page(number // 2)
        if number % 3 == 1:
            disk.note()
        if number == 4:
            disk.medium.error = OSError(errno.EIO, "Input/output error")
        if number == 6:
            disk.medium.room = 300
            disk.page(number)
            disk.medium.room = None
            disk.look()
        if number in SYNCED_AT:
            disk.step()
            disk.look()
    for _ in range(2):
        while disk.page(0):
            pass
    disk.close()
    assert disk.safe == len(disk.items)
    return disk


def cuts(medium: Medium, seed: int) -> Iterator[tuple[int, Lost, dict[str, bytes]]]:
    """What is left after each change of a journal with each kind of loss."""
    files = Survivors(medium.found)
    for at in range(len(medium.journal) + 1):
        for lost in Lost:
            yield at, lost, files.after(lost, random.Random(f"{seed} {at} {lost}"))
        if at < len(medium.journal):
            medium.journal[at](files)


def safe_at(disk: PageDisk, at: int) -> frozenset[Item]:
    """What was acknowledged when a journal had so many changes."""
    count = max((safe for length, safe in disk.marks if length <= at), default=0)
    return frozenset(disk.items[:count])


@pytest.mark.long("each point of a run; each point of a restart is tried here")
def test_power_may_go_at_any_point_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rotation, indexes, copies, notes, failed syncs, a full disk and the end; every kind of loss."""
    (tmp_path / "warc").mkdir()
    disk = small_run(monkeypatch, tmp_path / "warc")
    restarts = Restarts(tmp_path)
    for at, lost, contents in cuts(disk.medium, 0):
        stored = restarts.stored(contents)
        assert not safe_at(disk, at) - stored.items, f"after {at} changes, {lost}"
        assert not stored.dangling, f"after {at} changes, {lost}"
    assert len(restarts) > len(disk.medium.journal), "losses differ"


def double_cuts(directory: Path, patch: pytest.MonkeyPatch, work: Path, share: float) -> int:
    """Cut the power during the run, and during the restart after that, at a share of all pairs. Return how many."""
    disk = small_run(patch, directory)
    restarts, dice = Restarts(work / "again"), random.Random(share)
    (work / "again").mkdir()
    known, count = Restarts(work / "once"), 0
    (work / "once").mkdir()
    for at, lost, contents in cuts(disk.medium, 1):
        if known.is_known(contents) or dice.random() > share:
            continue
        known.stored(contents)
        restarting = work / "restarting"
        lay_out(restarting, contents)
        medium = Medium(contents_of(restarting))
        restart(restarting, medium)
        shutil.rmtree(restarting)
        for then, lost_then, left in cuts(medium, 2):
            stored = restarts.stored(left)
            where = f"after {at} changes, {lost}, and {then} of the restart, {lost_then}"
            assert not safe_at(disk, at) - stored.items, where
            assert not stored.dangling, where
            count += 1
    return count


@pytest.mark.long("a second loss of power; the machine here has both")
def test_power_may_go_again_while_files_are_recovered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of the pairs; the test below tries more."""
    (tmp_path / "warc").mkdir()
    assert double_cuts(tmp_path / "warc", monkeypatch, tmp_path, 0.04) > 50


@pytest.mark.fault
@pytest.mark.timeout(3_000)
def test_power_may_go_at_any_point_of_any_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs of a moment of the run and one of its restart."""
    (tmp_path / "warc").mkdir()
    assert double_cuts(tmp_path / "warc", monkeypatch, tmp_path, 1.0) > 5_000


class PageDiskMachine(RuleBasedStateMachine):
    """Runs that are cut, killed, closed and continued, on a disk that fails and fills up."""

    def __init__(self) -> None:
        super().__init__()
        self.work = Path(tempfile.mkdtemp(prefix="bigcrawl-pages-"))
        self.patch = pytest.MonkeyPatch()
        self.runs = 0
        self.acknowledged: set[Item] = set()
        self._begin({}, 0)

    def _begin(self, contents: dict[str, bytes], first: int) -> None:
        self.runs += 1
        self.directory = self.work / f"run{self.runs}"
        lay_out(self.directory, contents)
        restart(self.directory)
        stored = checked(self.directory)
        assert self.acknowledged <= stored.items
        assert not stored.dangling
        self.disk = PageDisk(self.patch, self.directory, BYTES_MAX, first)

    @rule(body=st.integers(0, 2))
    def page(self, body: int) -> None:
        self.disk.page(body)

    @rule()
    def note(self) -> None:
        self.disk.note()

    @rule()
    def step(self) -> None:
        self.disk.step()

    @rule()
    def look(self) -> None:
        self.disk.look()

    @rule()
    def sync_fails(self) -> None:
        self.disk.medium.error = OSError(errno.EIO, "Input/output error")

    @rule(room=st.integers(0, 900))
    def fills_up(self, room: int) -> None:
        self.disk.medium.room = room

    @precondition(lambda self: self.disk.medium.room is not None)
    @rule()
    def has_room(self) -> None:
        self.disk.medium.room = None

    @rule(lost=st.sampled_from(Lost), seed=st.integers(0, 99), closes=st.booleans())
    def power_goes(self, lost: Lost, seed: int, closes: bool) -> None:
        if closes:
            self.disk.close()
        self.acknowledged |= set(self.disk.items[: self.disk.safe])
        contents = self.disk.medium.now.after(lost, random.Random(seed))
        self._begin(contents, self.disk.next_number)

    def teardown(self) -> None:
        self.power_goes(Lost.SECTORS, 0, closes=True)
        self.patch.undo()
        shutil.rmtree(self.work)


def test_page_disk_machine() -> None:
    """Whatever happens to it in whatever order, by the rules above."""
    run_state_machine_as_test(PageDiskMachine, settings=settings(max_examples=examples(60), stateful_step_count=40))
