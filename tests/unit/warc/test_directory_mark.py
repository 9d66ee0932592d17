"""Neither pages nor full files go where nothing is mounted."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.page_store.uploads import DirectoryUploads
from bigcrawl.store.whole_files import StoredFiles
from bigcrawl.warc.directory_mark import MARK, DirectoryMark
from bigcrawl.warc.segments import WarcWriter
from tests.unit.page_index.test_index_files import URLS, warc_file
from tests.unit.warc.reading import exchange

if TYPE_CHECKING:
    from pathlib import Path


def test_no_file_is_begun_where_the_directory_is_not(tmp_path: Path) -> None:
    """It is unmounted between two files, and mounted again; the message names it and says what to do."""
    place, away = tmp_path / "warc", tmp_path / "away"
    place.mkdir()
    writer = WarcWriter(DirectoryMark(place), "c", "n")
    writer.write(exchange(1))
    assert writer.close()
    place.rename(away)
    place.mkdir()
    with pytest.raises(TransientStoreError, match=f"{place} cannot be written: it is not the directory .* mount it"):
        writer.write(exchange(1))
    assert not list(place.iterdir())
    place.rmdir()
    with pytest.raises(TransientStoreError, match="mount it"):
        writer.write(exchange(1))
    away.rename(place)
    writer.write(exchange(1))
    assert writer.close()
    assert len(list(place.glob("*.warc.gz"))) == 2


def test_writers_of_one_directory_have_one_mark(tmp_path: Path) -> None:
    """Whoever comes first makes it; a disk that is full makes none, and is asked again."""
    first, second = DirectoryMark(tmp_path), DirectoryMark(tmp_path)
    assert first._make_mark() == second._make_mark()
    assert first.require_id() == second.require_id() == DirectoryMark(tmp_path).require_id()
    assert [path.name for path in tmp_path.iterdir()] == [MARK]


def test_a_full_disk_leaves_no_half_of_a_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next try makes it."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    mark = DirectoryMark(tmp_path)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="full"):
        mark.require_id()
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    assert mark.require_id()


def test_no_file_is_moved_to_a_store_that_is_not_mounted(tmp_path: Path) -> None:
    """Its mount point takes files, which are hidden once it is mounted: they stay here until it is."""
    directory, place, away = (tmp_path / name for name in ("warc", "store", "away"))
    directory.mkdir()
    place.mkdir()
    DirectoryMark(directory).require_id()

    def moved() -> int:
        store = StoredFiles(f"file://{place}", "S")
        return sum(not done.problem for done in DirectoryUploads(store, (), ()).of_directory(directory))

    first = warc_file(directory, URLS)
    assert moved() == 1
    place.rename(away)
    place.mkdir()
    path = warc_file(directory, URLS).rename(directory / f"b-{first.name}")
    with pytest.raises(TransientStoreError, match=f"file://{place} is not the store that files were moved to before"):
        moved()
    assert path.exists()
    assert not list(place.iterdir())
    place.rmdir()
    away.rename(place)
    assert moved() == 1
    assert {each.name for each in place.glob("*.warc.gz")} == {first.name, path.name}
    assert not path.exists()


def test_a_directory_that_is_not_mounted_at_a_start_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    """The state directory knows its id; whoever means the other one removes the record. Half of a line is no record."""
    place, away, record = tmp_path / "warc", tmp_path / "away", tmp_path / "marks"
    place.mkdir()
    record.write_text(f"0123456789abcdef {tmp_path}/other\n0123")  # as a machine that went down leaves it
    name = DirectoryMark(place, record=record).require_id()
    assert DirectoryMark(place, record=record).require_id() == name
    assert record.read_text().count(name) == 1
    place.rename(away)
    for number in range(2):
        place.mkdir()
        (place / "pages").touch()
        if number:
            DirectoryMark(place).require_id()  # another crawl's
        for _ in range(2):
            mark = DirectoryMark(place, record=record)
            with pytest.raises(FileNotFoundError, match=f"mount it.* after removing {record}"):
                mark.require_id()
        assert len(list(place.iterdir())) == 1 + number
        place.rename(tmp_path / f"other-{number}")
    away.rename(place)
    assert mark.require_id() == DirectoryMark(place, record=record).require_id() == name
    place.rename(away)
    place.mkdir()
    record.unlink()
    assert DirectoryMark(place, record=record).require_id() != name


def test_nothing_is_recorded_where_there_is_no_state_directory(tmp_path: Path) -> None:
    record = tmp_path / "state" / "marks"
    assert DirectoryMark(tmp_path, record=record).require_id()
    assert not record.parent.exists()
