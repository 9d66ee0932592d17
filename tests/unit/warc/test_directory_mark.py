"""Neither pages nor full files go where nothing is mounted."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.page_store.uploads import Uploads
from bigcrawl.store.whole_files import WholeFiles
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
    writer = WarcWriter(place, "c", "n", mark=DirectoryMark(place))
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
    assert first._make() == second._make()
    assert first.require() == second.require() == DirectoryMark(tmp_path).require()
    assert [path.name for path in tmp_path.iterdir()] == [MARK]


def test_a_full_disk_leaves_no_half_of_a_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next try makes it."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    mark = DirectoryMark(tmp_path)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="full"):
        mark.require()
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    assert mark.require()


def test_no_file_is_moved_to_a_store_that_is_not_mounted(tmp_path: Path) -> None:
    """Its mount point takes files, which are hidden once it is mounted: they stay here until it is."""
    directory, place, away = (tmp_path / name for name in ("warc", "store", "away"))
    directory.mkdir()
    place.mkdir()
    DirectoryMark(directory).require()

    def moved() -> int:
        store = WholeFiles(f"file://{place}", "S")
        return sum(not done.problem for done in Uploads(store, (), ()).of_directory(directory))

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
