"""What counts as safe is on the medium: power cuts at random, a disk that hangs, a disk that fails."""

from __future__ import annotations

import errno
import random
from typing import TYPE_CHECKING, Final

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.warc.group_commit import GroupCommit
from bigcrawl.warc.origins import RecentOrigins
from bigcrawl.warc.records import new_record_id
from bigcrawl.warc.recovery import recover_directory
from bigcrawl.warc.segments import SealingOptions, WarcWriter
from tests.support.running.processes import wait_until
from tests.unit.warc.medium import Lost, Medium
from tests.unit.warc.reading import exchange, numbers_of, read_checked

if TYPE_CHECKING:
    from pathlib import Path


PAGES: Final = 60
CUT: Final = 0.3
"""How likely the power goes after a page. Each medium is recovered and read, so few pages are cut often."""


class Store:
    """A writer and its group commit, as the pipeline ties them."""

    def __init__(self, directory: Path, *, bytes_max: int = 1 << 30, interval_s: float | None = 0.0) -> None:
        self.disk = Medium()
        self.clock = ManualClock(1_700_000_000_000)
        self.commit = GroupCommit(lambda: self.writer.sync_function(), interval_s, self.clock)  # noqa: PLW0108 - made below
        self.writer = WarcWriter(
            directory,
            "c",
            "n",
            files=self.disk,
            sealing=SealingOptions(bytes_max, self.commit.submit),
            origins=RecentOrigins(4),
        )

    def write(self, number: int, body: bytes = b"<p>a page</p>") -> bool:
        written = self.writer.write(exchange(number, body, record_id=new_record_id()))
        self.commit.record_written()
        return written.origin is not None

    def end(self) -> bool:
        self.disk.may_sync.set()
        self.commit.submit(self.writer.close)
        return self.commit.end(60)


def found(directory: Path) -> list[int]:
    """The exchanges in the files of a directory, after recovery."""
    recover_directory(directory)
    return sorted(number for path in directory.glob("*.gz") for number in numbers_of(read_checked(path)))


@pytest.mark.parametrize("lost", Lost)
@pytest.mark.parametrize("bytes_max", [1 << 30, 3_000], ids=["one file", "many files"])
def test_after_a_power_cut_every_safe_page_is_there(tmp_path: Path, lost: Lost, bytes_max: int) -> None:
    """Whenever the power goes, while syncs and the closing of full files are under way."""
    moments, losses = random.Random(bytes_max), random.Random(lost.value)
    directory = tmp_path / "warc"
    directory.mkdir()
    store = Store(directory, bytes_max=bytes_max)
    cuts = []
    for number in range(PAGES):
        store.write(number)
        if moments.random() < CUT:
            wait_until(lambda: store.commit.safe_count > number - 20, "the disk keeps up")  # noqa: B023
            safe, medium = store.commit.safe_count, tmp_path / f"cut{number}"
            store.disk.cut_power(medium, lost, losses)
            cuts.append((safe, medium))
    assert store.end()
    assert store.commit.safe_count == PAGES
    assert found(directory) == list(range(PAGES))
    assert len(cuts) > 10
    for safe, medium in cuts:
        assert set(range(safe)) <= set(found(medium))


@pytest.mark.parametrize("lost", Lost)
def test_after_a_power_cut_every_copy_has_its_original(tmp_path: Path, lost: Lost) -> None:
    """Whatever the medium kept of the files, in the one of the copy or in an earlier one; safe or not."""
    moments = random.Random(lost.value)
    directory = tmp_path / "warc"
    directory.mkdir()
    store = Store(directory, bytes_max=3_000)
    cuts, copies = [], 0
    for number in range(PAGES):
        copies += store.write(number, b"%0600d" % (number // 20 * 3 + number % 3))
        if moments.random() < CUT:
            wait_until(lambda: store.commit.safe_count > number - 20, "the disk keeps up")  # noqa: B023
            safe, medium = store.commit.safe_count, tmp_path / f"cut{number}"
            store.disk.cut_power(medium, lost, moments)
            cuts.append((safe, medium))
    assert store.end()
    assert copies, "while the file of the original is being closed, a copy is stored whole"
    for safe, medium in [*cuts, (PAGES, directory)]:
        recover_directory(medium)
        records = [record for path in medium.glob("*.gz") for record in read_checked(path)]
        originals = {record.headers["WARC-Record-ID"] for record in records if record.type == "response"}
        pages = [record for record in records if record.type in ("response", "revisit")]
        numbers = {int(record.headers["WARC-Target-URI"].rpartition("/")[2]) for record in pages}
        assert set(range(safe)) <= numbers
        assert {record.headers.get("WARC-Refers-To") for record in pages} <= {None, *originals}


def test_one_sync_is_for_all_that_was_written_before_it(tmp_path: Path) -> None:
    """While one is under way, others gather; two syncs make a hundred pages safe."""
    store = Store(tmp_path)
    store.disk.may_sync.clear()
    for number in range(100):
        store.write(number)
        assert store.disk.is_syncing.wait(60)
    assert store.commit.safe_count == 0
    store.disk.may_sync.set()
    wait_until(lambda: store.commit.safe_count == 100, "all are safe")
    assert store.disk.syncs == 2
    assert store.end()


def test_nothing_is_synced_where_nothing_is_asked_for(tmp_path: Path) -> None:
    """Then what the kernel has counts as safe; closing syncs it."""
    store = Store(tmp_path, interval_s=None)
    store.write(0)
    assert store.commit.safe_count == 1
    assert store.end()
    assert found(tmp_path) == [0]


def test_disk_that_hangs_makes_nothing_safe_and_keeps_nobody(tmp_path: Path) -> None:
    """It is seen to be late; an end that has waited long enough says so and leaves the file to recovery."""
    store = Store(tmp_path)
    store.disk.may_sync.clear()
    store.write(0)
    assert store.disk.is_syncing.wait(60)
    store.clock.advance(12_000)
    assert store.commit.late_ms == 12_000
    assert store.commit.safe_count == 0
    store.commit.submit(store.writer.close)
    assert not store.commit.end(0.01)
    store.disk.may_sync.set()
    wait_until(lambda: not list(tmp_path.glob("*.open")), "the file is closed when the disk comes back")
    assert found(tmp_path) == [0]


@pytest.mark.parametrize("bytes_max", [1 << 30, 1], ids=["in a sync", "in closing a full file"])
def test_disk_that_fails_makes_nothing_safe_until_it_is_written_again(tmp_path: Path, bytes_max: int) -> None:
    """The next sync would succeed without the pages that the kernel has given up."""
    store = Store(tmp_path, bytes_max=bytes_max)
    store.disk.error = OSError(errno.EIO, "Input/output error")
    store.write(0)
    wait_until(lambda: store.commit.error is not None, "the error is seen")
    store.write(1)
    store.commit.begin_again()
    store.writer.give_up_file()
    assert (store.commit.written, store.commit.safe_count) == (0, 0)
    for number in range(2):
        store.write(number)
    wait_until(lambda: store.commit.safe_count == 2, "both are safe")
    assert store.end()
    assert set(found(tmp_path)) == {0, 1}


def test_a_disk_that_fails_takes_no_original_from_a_copy(tmp_path: Path) -> None:
    """What the failed sync should have covered is no original any more; the copy is written again behind a new one."""
    store, body = Store(tmp_path), b"%0600d" % 7
    store.disk.error = OSError(errno.EIO, "Input/output error")
    assert not store.write(0, body)
    wait_until(lambda: store.commit.error is not None, "the error is seen")
    assert store.write(1, body)
    store.commit.begin_again()
    store.writer.give_up_file()
    assert [store.write(number, body) for number in range(2)] == [False, True]
    assert store.end()
    records = [record for path in tmp_path.glob("*.gz") for record in read_checked(path)]
    originals = {record.headers["WARC-Record-ID"] for record in records if record.type == "response"}
    assert {record.headers["WARC-Refers-To"] for record in records if record.type == "revisit"} <= originals


def test_somebody_in_a_hurry_does_not_wait_for_the_next_sync(tmp_path: Path) -> None:
    """However long it is until then; also if it is said while a sync is under way."""
    store = Store(tmp_path, interval_s=3_600)
    store.disk.may_sync.clear()
    store.write(0)
    assert store.disk.is_syncing.wait(60)
    store.write(1)
    store.commit.hurry()
    store.disk.may_sync.set()
    wait_until(lambda: store.commit.safe_count == 2, "the second is safe")
    store.write(2)
    store.commit.hurry()
    wait_until(lambda: store.commit.safe_count == 3, "the third is safe")
    assert store.end()
