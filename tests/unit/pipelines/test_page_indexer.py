"""Indexes are made beside the crawl: by a process if the file is large, and at the next start if something fails."""

from __future__ import annotations

import logging
import os
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from bigcrawl.page_index.index_files import IndexedFile, index_path
from bigcrawl.pipelines import page_indexer
from bigcrawl.pipelines.page_indexer import PageIndexer
from bigcrawl.warc.files import locked_file
from tests.support.running.processes import wait_until
from tests.unit.page_index.test_index_files import URLS, warc_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LONG_S = 120.0


@pytest.fixture(params=["in a thread", "by a process"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How files are indexed: as small ones are, or as large ones."""
    if request.param == "by a process":
        monkeypatch.setattr(page_indexer, "SMALL_BYTES", 0)
    return str(request.param)


def made_by(use: Callable[[PageIndexer], None]) -> list[IndexedFile]:
    made: list[IndexedFile] = []
    indexer = PageIndexer(("cdxj",), 0o640, made.append)
    use(indexer)
    indexer.end(LONG_S)
    return made


def test_what_was_left_without_an_index_gets_one(tmp_path: Path, way: str) -> None:
    """Files of earlier runs, and those that are added, each once and with the crawl's permissions."""
    left, added = warc_file(tmp_path), warc_file(tmp_path, URLS[:2])
    (tmp_path / "running.warc.gz.open").write_bytes(b"not yet")
    made = made_by(lambda indexer: indexer.add_missing(tmp_path))
    assert sorted(made) == sorted([(left, len(URLS), ""), (added, 2, "")])
    assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("*.cdxj")} == {0o640}
    assert made_by(lambda indexer: indexer.add_missing(tmp_path)) == []
    assert made_by(lambda indexer: indexer.add_file(left)) == []
    index_path(left).unlink()
    assert made_by(lambda indexer: indexer.add_file(left)) == [(left, len(URLS), "")]


def test_a_file_that_cannot_be_indexed_costs_one_line(
    tmp_path: Path, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It says which, why, and what will mend it; the next file is indexed, and one that is gone is no error."""
    path = warc_file(tmp_path)
    refused = tmp_path / "refused.warc.gz"
    refused.mkdir()

    def use(indexer: PageIndexer) -> None:
        for each in (refused, tmp_path / "gone.warc.gz", path):
            indexer.add_file(each)

    assert made_by(use) == [(path, len(URLS), "")]
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert line.startswith(f"{refused} has no index: ")
    assert "it is tried again every 5 minutes" in line
    assert "scrapy frontier warc index" in line


def test_a_file_whose_index_failed_is_tried_again(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After a rest, and without a second line; so is one that others had locked, and did not index."""
    monkeypatch.setattr(page_indexer, "AGAIN_S", 0.2)
    failing, held = tmp_path / "failing.warc.gz", warc_file(tmp_path)
    (tmp_path / "directory").mkdir()
    failing.symlink_to(tmp_path / "directory")
    made: list[IndexedFile] = []
    indexer = PageIndexer(("cdxj",), 0o640, made.append)
    with locked_file(held) as is_ours:
        assert is_ours
        indexer.add_file(failing)
        indexer.add_file(held)
        wait_until(lambda: len(indexer._again_s) == 2, "both have been tried")
    wait_until(lambda: bool(made), "the one that was locked is indexed")
    held.replace(failing)  # at once, so that it is never seen to be gone
    wait_until(lambda: len(made) == 2, "the other is indexed once it can be")
    indexer.end(LONG_S)
    assert made == [(held, len(URLS), ""), (failing, len(URLS), "")]
    assert caplog.text.count(f"{failing} has no index: ") == 1
    assert not indexer._again_s


def test_a_damaged_file_is_told_and_indexed_up_to_there(
    tmp_path: Path, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What comes before the damage can be found; the line names file and byte."""
    path = warc_file(tmp_path)
    path.write_bytes(path.read_bytes()[:-5])
    (made,) = made_by(lambda indexer: indexer.add_file(path))
    assert made.pages == len(index_path(path).read_bytes().splitlines()) == len(URLS)  # its notes are cut off
    assert f"{path}: damaged at byte" in caplog.text


def test_a_process_that_is_killed_leaves_the_index_to_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing with the name of an index is there, and the node goes on."""
    monkeypatch.setattr(page_indexer, "SMALL_BYTES", 0)
    path = warc_file(tmp_path)
    killer = tmp_path / "bin" / "killed"
    killer.parent.mkdir()
    killer.write_text("#!/bin/sh\nkill -9 $$\n")
    killer.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(killer))
        assert made_by(lambda indexer: indexer.add_file(path)) == []
    assert "its process ended with status -9" in caplog.text
    assert not index_path(path).exists()
    assert made_by(lambda indexer: indexer.add_missing(tmp_path)) == [(path, len(URLS), "")]


def test_the_end_does_not_wait_for_a_process_that_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It goes on by itself, which a line says; it is in no group that a signal to the crawl reaches."""
    monkeypatch.setattr(page_indexer, "SMALL_BYTES", 0)
    caplog.set_level(logging.INFO)
    path, door = warc_file(tmp_path), tmp_path / "door"
    os.mkfifo(door)
    waiting = tmp_path / "waiting"
    waiting.write_text(f"#!/bin/sh\necho $$ > {door}\nread opened < {door}\n")
    waiting.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(waiting))
    indexer = PageIndexer(("cdxj",), 0o600, lambda _: None)
    indexer.add_file(path)
    pid = int(door.read_text())
    wait_until(lambda: indexer._process is not None, "the indexer knows its process")
    indexer.end(0.01)
    assert os.getsid(pid) == pid != os.getsid(0)
    assert f"WARC files still have to be indexed: process {pid} goes on" in caplog.text
    door.write_text("open\n")
    indexer._thread.join(LONG_S)
    assert not indexer._thread.is_alive()


def test_what_the_end_would_break_off_is_left_to_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk takes its time when the crawl ends: the index is made once the node is gone, and nothing else stays."""
    caplog.set_level(logging.INFO)
    path = warc_file(tmp_path)
    began, is_gone = threading.Event(), threading.Event()

    def hang(path: Path, *_: object) -> None:
        with locked_file(path):
            index_path(path).with_name(f"{index_path(path).name}.new").write_bytes(b"half")
            began.set()
            is_gone.wait(LONG_S)

    monkeypatch.setattr(page_indexer, "index_file", hang)
    indexer = PageIndexer(("cdxj",), 0o640, lambda _: None)
    indexer.add_file(path)
    assert began.wait(LONG_S)
    indexer.end(0.01)
    assert indexer._left is not None
    assert f"WARC files still have to be indexed: process {indexer._left.pid} goes on" in caplog.text
    assert not index_path(path).exists(), "it waits"
    is_gone.set()
    assert indexer._left.wait(LONG_S) == 0
    assert not list(tmp_path.glob("*.new"))
    assert len(index_path(path).read_bytes().splitlines()) == len(URLS)
    assert index_path(path).stat().st_mode & 0o777 == 0o640
    indexer._thread.join(LONG_S)


def test_without_kinds_nothing_is_made(tmp_path: Path) -> None:
    """An empty BIGCRAWL_WARC_INDEX starts no thread."""
    path = warc_file(tmp_path)
    indexer = PageIndexer((), 0o600, lambda _: None)
    indexer.add_file(path)
    indexer.add_missing(tmp_path)
    indexer.end(LONG_S)
    assert indexer._thread.ident is None
    assert not index_path(path).exists()


@pytest.mark.system
def test_parquet_is_made_by_a_process_even_of_a_small_file(tmp_path: Path) -> None:
    """What it imports stays out of the node; an index that is missing is made although the other is there."""
    path = warc_file(tmp_path)
    made: list[IndexedFile] = []
    for kinds in (("cdxj",), ("cdxj", "parquet")):
        indexer = PageIndexer(kinds, 0o640, made.append)
        indexer.add_file(path)
        indexer.end(LONG_S)
    assert made == [(path, len(URLS), "")] * 2
    assert index_path(path, "parquet").stat().st_mode & 0o777 == 0o640
