"""Files of living writers stay theirs, where locks do not reach and where there are none."""

from __future__ import annotations

import errno
import fcntl
import os
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.exceptions import TransientStoreError
from bigcrawl.warc.files import QUIET_S, lacks_locks
from bigcrawl.warc.recovery import PerhapsWrittenError, recover_directory, recover_file
from bigcrawl.warc.segments import WarcWriter
from tests.unit.warc.elsewhere import grow_old, write_elsewhere
from tests.unit.warc.reading import exchange, numbers_of, read_checked

if TYPE_CHECKING:
    from pathlib import Path


def opened(writer: WarcWriter) -> Path:
    assert writer.open_path
    return writer.open_path


def stored(directory: Path) -> list[int]:
    """The exchanges in complete files."""
    return sorted(number for path in directory.glob("*.gz") for number in numbers_of(read_checked(path)))


def test_file_of_another_machine_is_closed_only_once_it_is_quiet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its free lock proves nothing. How many are left is told, and why."""
    caplog.set_level("INFO", "bigcrawl")
    write_elsewhere(monkeypatch)
    writer = WarcWriter(tmp_path, "c", "n")
    writer.write(exchange(0))
    with opened(writer).open("ab") as file:
        file.write(b"the beginning of a record")
    before = opened(writer).read_bytes()
    assert recover_directory(tmp_path) == []
    assert opened(writer).read_bytes() == before
    assert "1 files in" in caplog.text
    assert "other machines" in caplog.text
    with pytest.raises(PerhapsWrittenError, match="may be written there; call again later"):
        recover_file(opened(writer))
    grow_old(opened(writer))
    (found,) = recover_directory(tmp_path)
    assert found.cut_bytes == 25
    assert stored(tmp_path) == [0]


def test_file_of_this_machine_is_closed_at_once(tmp_path: Path) -> None:
    """Its lock would be seen, however lately it was written to."""
    writer = WarcWriter(tmp_path, "c", "n")
    writer.write(exchange(0))
    data, name = opened(writer).read_bytes(), opened(writer).name
    writer.close()
    (tmp_path / name.removesuffix(".open")).unlink()
    (tmp_path / name).write_bytes(data)
    assert [found.kept_records for found in recover_directory(tmp_path)] == [3]


def test_a_writer_that_shows_itself_is_not_quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though nothing is fetched for hours, as in a pause."""
    write_elsewhere(monkeypatch)
    writer = WarcWriter(tmp_path, "c", "n")
    assert writer.touch(), "there is no file yet"
    writer.write(exchange(0))
    grow_old(opened(writer))
    assert writer.touch()
    assert recover_directory(tmp_path) == []
    writer.write(exchange(1))
    assert writer.close()
    assert stored(tmp_path) == [0, 1]


@pytest.mark.parametrize("notices", ["with its next write", "when it shows itself"])
def test_a_writer_that_stood_still_loses_its_file_and_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notices: str
) -> None:
    """What was closed meanwhile gets nothing more, nor is it cut; what comes is in a new file."""
    write_elsewhere(monkeypatch)
    clock = ManualClock()
    writer = WarcWriter(tmp_path, "c", "n", clock=clock)
    writer.write(exchange(0))
    grow_old(opened(writer))
    (closed,) = recover_directory(tmp_path)
    before = closed.path.read_bytes()
    clock.advance(int(QUIET_S * 1000))
    if notices == "when it shows itself":
        assert not writer.touch()
    writer.write(exchange(1))
    assert writer.close()
    assert closed.path.read_bytes() == before
    assert stored(tmp_path) == [0, 1]


def test_a_writer_that_ends_after_it_stood_still_leaves_the_closed_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It neither cuts nor renames what has another owner, and says that it could not close its file."""
    write_elsewhere(monkeypatch)
    writer = WarcWriter(tmp_path, "c", "n")
    writer.write(exchange(0))
    sync = writer.sync_function()
    grow_old(opened(writer))
    (closed,) = recover_directory(tmp_path)
    before = closed.path.read_bytes()
    with pytest.raises(FileNotFoundError, match="removed or closed"):
        sync()
    assert not writer.close()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {closed.path.name: before}


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_where_there_are_no_locks_nothing_is_written_or_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The errors say what to do, and attempts leave no files."""
    assert not lacks_locks(tmp_path)
    path = tmp_path / "c.warc.gz.open"
    path.write_bytes(b"\x1f\x8b")
    grow_old(path)

    def refuse(*args: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert lacks_locks(tmp_path)
    assert recover_directory(tmp_path) == []
    assert "mount it with locks" in caplog.text
    writer = WarcWriter(tmp_path, "c", "n")
    for _ in range(3):
        with pytest.raises(TransientStoreError):
            writer.write(exchange(0))
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"\x1f\x8b"


def test_no_page_is_lost_when_every_file_is_taken_from_its_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that stands still again and again: each exchange is in one complete file."""
    write_elsewhere(monkeypatch)
    clock = ManualClock()
    writer = WarcWriter(tmp_path, "c", "n", clock=clock)
    for number in range(12):
        writer.write(exchange(number))
        if number % 3 == 2:
            grow_old(opened(writer))
            assert len(recover_directory(tmp_path)) == 1
            clock.advance(int(QUIET_S * 1000))
    writer.close()
    assert stored(tmp_path) == list(range(12))
    sizes = [len(read_checked(path)) for path in tmp_path.glob("*.gz")]
    assert sizes == [7] * 4
