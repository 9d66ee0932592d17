from __future__ import annotations

import errno
import itertools
import os
import re
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.exceptions import TransientStoreError
from bigcrawl.warc.files import OsFiles
from bigcrawl.warc.origins import RecentOrigins
from bigcrawl.warc.records import new_record_id
from bigcrawl.warc.recovery import recover_directory
from bigcrawl.warc.segments import SealingOptions, WarcWriter
from tests.unit.warc.elsewhere import grow_old
from tests.unit.warc.reading import exchange, numbers_of, read_checked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class FailingFiles(OsFiles):
    """A disk with room for `room` more bytes (None: enough), and calls that fail when named."""

    def __init__(self) -> None:
        super().__init__()
        self.room: int | None = None
        self.failing: set[str] = set()

    def write(self, fd: int, data: memoryview) -> int:
        if self.room is not None:
            if not self.room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            data = data[: self.room]
            self.room -= len(data)
        return super().write(fd, data)

    def _check(self, call: str) -> None:
        if call in self.failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def create(self, path: Path) -> int:
        self._check("create")
        return super().create(path)

    def truncate(self, fd: int, size: int) -> None:
        self._check("truncate")
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        self._check("sync")
        super().sync(fd)

    def rename(self, source: Path, target: Path) -> None:
        self._check("rename")
        super().rename(source, target)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_file_is_open_while_written_and_sealed_on_close(tmp_path: Path) -> None:
    """The name ends in .open until close, says crawl, UTC time, serial and node, and is in the warcinfo."""
    writer = WarcWriter(tmp_path, "my crawl", "node/1", clock=ManualClock(1_700_000_000_123))
    written = writer.write(exchange(1))
    assert names(tmp_path) == ["my_crawl-20231114221320123-00000-node_1.warc.gz.open"]
    assert (written.records, written.size) == (3, writer.open_path.stat().st_size)  # type: ignore[union-attr]
    assert writer.write(exchange(2)).records == 2
    writer.close()
    assert names(tmp_path) == ["my_crawl-20231114221320123-00000-node_1.warc.gz"]
    records = read_checked(tmp_path / names(tmp_path)[0])
    assert [record.type for record in records] == ["warcinfo"] + ["response", "request"] * 2
    assert records[0].headers["WARC-Filename"] == names(tmp_path)[0]
    assert {r.headers["WARC-Warcinfo-ID"] for r in records[1:]} == {records[0].headers["WARC-Record-ID"]}


def test_full_file_is_sealed_and_the_next_begun(tmp_path: Path) -> None:
    """A file that has reached bytes_max is sealed at once; each file has its own warcinfo."""
    writer = WarcWriter(tmp_path, "c", "n", sealing=SealingOptions(1))
    for number in range(3):
        writer.write(exchange(number))
        assert not list(tmp_path.glob("*.open"))
    assert re.sub(r"-\d{17}-", "-T-", " ".join(names(tmp_path))) == " ".join(
        f"c-T-{serial:05d}-n.warc.gz" for serial in range(3)
    )
    assert [numbers_of(read_checked(path)) for path in sorted(tmp_path.iterdir())] == [[0], [1], [2]]


def test_copies_of_what_was_written_are_stored_by_reference(tmp_path: Path) -> None:
    """Also across files; what a failed write did not store is no original."""
    files = FailingFiles()
    writer = WarcWriter(tmp_path, "c", "n", files=files, sealing=SealingOptions(1_000), origins=RecentOrigins(100))
    pages = [exchange(number, b"%01000d" % (number % 2), record_id=new_record_id()) for number in range(6)]
    files.room = 100
    with pytest.raises(TransientStoreError):
        writer.write(pages[0])
    files.room = None
    assert [writer.write(page).origin is not None for page in pages] == [False, False, True, True, True, True]
    writer.close()
    assert len(names(tmp_path)) > 1
    records = [record for path in sorted(tmp_path.iterdir()) for record in read_checked(path)]
    stored = {record.headers["WARC-Record-ID"]: record for record in records if record.type == "response"}
    revisits = [record for record in records if record.type == "revisit"]
    assert (len(stored), len(revisits)) == (2, 4)
    for record in revisits:
        original = stored[record.headers["WARC-Refers-To"]]
        assert original.headers["WARC-Payload-Digest"] == record.headers["WARC-Payload-Digest"]
        assert original.headers["WARC-Target-URI"] == record.headers["WARC-Refers-To-Target-URI"]
        assert original.headers["WARC-Date"] == record.headers["WARC-Refers-To-Date"]


def test_writer_without_exchanges_leaves_no_file(tmp_path: Path) -> None:
    """A file comes into being with its first exchange."""
    WarcWriter(tmp_path, "c", "n").close()
    assert names(tmp_path) == []


def test_disk_that_fills_up_at_any_byte_leaves_whole_records(tmp_path: Path) -> None:
    """However many bytes of an exchange fit, none stay, the caller is told, and the next try is whole."""
    files = FailingFiles()
    writer = WarcWriter(tmp_path, "c", "n", files=files)
    size = writer.write(exchange(0)).size + writer.write(exchange(1)).size
    path = writer.open_path
    assert path
    for room in itertools.count():
        files.room = room
        try:
            writer.write(exchange(2))
        except TransientStoreError as error:
            assert re.search("No space left on device; .* bytes are free", str(error))  # noqa: PT017
            assert path.stat().st_size == size
        else:
            break
    assert room > 300
    writer.close()
    assert numbers_of(read_checked(path.with_suffix(""))) == [0, 1, 2]


def test_disk_full_at_the_first_exchange_repeats_the_warcinfo(tmp_path: Path) -> None:
    """A file whose first exchange did not fit is empty, and still opens with a warcinfo later."""
    files = FailingFiles()
    writer = WarcWriter(tmp_path, "c", "n", files=files)
    for room in 0, 400:
        files.room = room
        with pytest.raises(TransientStoreError):
            writer.write(exchange(0))
        assert [path.stat().st_size for path in tmp_path.iterdir()] == [0]
    files.room = None
    assert writer.write(exchange(0)).records == 3
    writer.close()
    assert numbers_of(read_checked(next(tmp_path.iterdir()))) == [0]


def test_empty_file_of_a_full_disk_is_removed_on_close(tmp_path: Path) -> None:
    """A file that never took an exchange does not stay behind."""
    files = FailingFiles()
    files.room = 10
    writer = WarcWriter(tmp_path, "c", "n", files=files)
    with pytest.raises(TransientStoreError):
        writer.write(exchange(0))
    writer.close()
    assert names(tmp_path) == []


def test_tail_that_cannot_be_cut_at_once_is_cut_before_the_next_append(tmp_path: Path) -> None:
    """While cutting back fails nothing is appended behind the torn tail; once it works, writing goes on."""
    files = FailingFiles()
    writer = WarcWriter(tmp_path, "c", "n", files=files)
    writer.write(exchange(0))
    path = writer.open_path
    assert path
    files.room, files.failing = 100, {"truncate"}
    for _ in range(2):
        with pytest.raises(TransientStoreError):
            writer.write(exchange(1))
        files.room = None
    files.failing = set()
    writer.write(exchange(1))
    writer.close()
    assert numbers_of(read_checked(path.with_suffix(""))) == [0, 1]


@pytest.mark.parametrize("call", ["sync", "rename", "truncate"])
def test_file_that_cannot_be_sealed_is_left_to_recovery(tmp_path: Path, call: str) -> None:
    """A failing seal keeps the .open file, unlocked and complete, and the writer goes on in a new one."""
    files = FailingFiles()
    writer = WarcWriter(tmp_path, "c", "n", files=files)
    writer.write(exchange(0))
    files.failing = {call}
    if call == "truncate":
        files.room = 100
        with pytest.raises(TransientStoreError):
            writer.write(exchange(1))
    writer.close()
    files.failing, files.room = set(), None
    assert [path.suffix for path in tmp_path.iterdir()] == [".open"]
    writer.write(exchange(2))
    (recovered,) = recover_directory(tmp_path)
    assert numbers_of(read_checked(recovered.path)) == [0]
    writer.close()
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".gz", ".gz"]


def test_directory_that_takes_no_file_is_a_transient_error(tmp_path: Path) -> None:
    """Creating a file may fail like writing one, and may work the next time."""
    files = FailingFiles()
    files.failing = {"create"}
    writer = WarcWriter(tmp_path, "c", "n", files=files)
    with pytest.raises(TransientStoreError, match=re.escape(str(tmp_path))):
        writer.write(exchange(0))
    files.failing = set()
    writer.write(exchange(0))
    writer.close()


class HurryingClock(ManualClock):
    """A clock that moves by a millisecond whenever it is read."""

    def now_ms(self) -> int:
        self.advance(1)
        return super().now_ms()


def test_names_are_in_the_order_in_which_files_were_begun(tmp_path: Path) -> None:
    """Also if a name is taken, and a millisecond ends before the next one is tried."""
    begun: list[str] = []
    for clock in (ManualClock(999), ManualClock(999), HurryingClock(998), ManualClock(1000)):
        writer = WarcWriter(tmp_path, "c", "n", clock=clock)
        writer.write(exchange(1))
        assert writer.open_path is not None
        begun.append(writer.open_path.name)
        writer.close()
    assert begun == sorted(begun)
    assert len(set(begun)) == 4


def test_writers_of_one_name_never_share_or_overwrite_a_file(tmp_path: Path) -> None:
    """Same crawl, node and millisecond: each writer still gets names of its own, sealed ones included."""
    clock = ManualClock()
    first = WarcWriter(tmp_path, "c", "n", clock=clock)
    second = WarcWriter(tmp_path, "c", "n", clock=clock)
    first.write(exchange(1))
    second.write(exchange(2))
    first.close()
    third = WarcWriter(tmp_path, "c", "n", clock=clock)
    third.write(exchange(3))
    second.close()
    third.close()
    found = [numbers_of(read_checked(path)) for path in sorted(tmp_path.iterdir())]
    assert found == [[1], [2], [3]]


def test_file_taken_by_a_recovering_node_before_its_lock_is_not_written(tmp_path: Path) -> None:
    """Between create and lock a file looks abandoned; a writer that lost it begins another."""

    class RacedFiles(OsFiles):
        races = 1

        def create(self, path: Path) -> int:
            fd = super().create(path)
            if self.races:
                self.races -= 1
                grow_old(path)  # as by a clock of the file system that jumps
                assert [r.kept_records for r in recover_directory(path.parent)] == [0]
            return fd

    writer = WarcWriter(tmp_path, "c", "n", files=RacedFiles())
    writer.write(exchange(1))
    writer.close()
    (path,) = tmp_path.iterdir()
    assert "-00001-" in path.name
    assert numbers_of(read_checked(path)) == [1]


def test_a_recovery_does_not_take_a_file_that_is_being_begun(tmp_path: Path) -> None:
    """One that looks between create and lock, and is slow to let go of what it looked at, leaves no empty file."""
    closings: list[Callable[[], None]] = []

    class SlowFiles(OsFiles):
        def close(self, fd: int) -> None:
            closings.append(partial(super().close, fd))

    class VisitedFiles(OsFiles):
        def create(self, path: Path) -> int:
            fd = super().create(path)
            if not closings:
                assert recover_directory(path.parent, files=SlowFiles()) == []
            return fd

    writer = WarcWriter(tmp_path, "c", "n", files=VisitedFiles())
    writer.write(exchange(1))
    assert len(closings) == 1
    closings[0]()
    writer.close()
    (path,) = tmp_path.iterdir()
    assert "-00000-" in path.name
    assert numbers_of(read_checked(path)) == [1]


def test_sealing_may_run_elsewhere(tmp_path: Path) -> None:
    """A full file is handed to seal_in, and writing goes on in the next before it is sealed."""
    waiting: list[Callable[[], bool]] = []
    writer = WarcWriter(tmp_path, "c", "n", sealing=SealingOptions(1, waiting.append))
    writer.write(exchange(0))
    writer.write(exchange(1))
    assert len(list(tmp_path.glob("*.open"))) == 2
    for seal in waiting:
        seal()
    assert [numbers_of(read_checked(path)) for path in sorted(tmp_path.iterdir())] == [[0], [1]]


def test_a_file_is_sealed_once(tmp_path: Path) -> None:
    """One thread may give a file up while another closes the writer: a descriptor closed twice is somebody else's."""
    waiting: list[Callable[[], bool]] = []
    closed: list[int] = []

    class CountingFiles(OsFiles):
        def close(self, fd: int) -> None:
            closed.append(fd)
            super().close(fd)

    writer = WarcWriter(tmp_path, "c", "n", sealing=SealingOptions(1, waiting.append), files=CountingFiles())
    writer.write(exchange(0))
    (seal,) = waiting
    assert seal()
    assert seal()
    assert len(closed) == 1
    (path,) = tmp_path.iterdir()
    assert numbers_of(read_checked(path)) == [0]


FULL_DISK = """
import resource, sys
from bigcrawl.exceptions import TransientStoreError
from bigcrawl.warc.records import new_record_id
from bigcrawl.warc.segments import WarcWriter
from tests.unit.warc.reading import exchange

writer = WarcWriter(sys.argv[1], "c", "n")
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
refused = 0
for number in range(20):
    if number % 5 == 4:
        resource.setrlimit(resource.RLIMIT_FSIZE, (writer.open_path.stat().st_size + 100 * number, hard))
    try:
        writer.write(exchange(number))
    except TransientStoreError:
        refused += 1
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        writer.write(exchange(number))
writer.close()
print(refused)
"""


def test_kernel_that_refuses_bytes_in_mid_record_costs_nothing(tmp_path: Path) -> None:
    """With a real limit on the file's size, real partial writes are cut back and repeated whole."""
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, tmp_path], check=True, capture_output=True, text=True, timeout=300
    )
    assert int(done.stdout) >= 1
    (path,) = tmp_path.iterdir()
    assert numbers_of(read_checked(path)) == list(range(20))
