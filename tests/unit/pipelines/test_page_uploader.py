"""Files are uploaded beside the crawl: again while the store is away, and at the end by a process left alone."""

from __future__ import annotations

import logging
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from bigcrawl.page_index.index_files import index_file, index_path
from bigcrawl.pipelines import page_uploader
from bigcrawl.pipelines.page_shipping import DiskUse, percent_used
from bigcrawl.pipelines.page_uploader import PageUploader
from tests.support.running.processes import wait_until
from tests.unit.page_index.test_index_files import URLS, warc_file

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.page_store.uploads import UploadResult

LONG_S = 300.0


class World:
    """A directory of pages, a store that is not mounted yet, and an uploader between them."""

    def __init__(self, place: Path) -> None:
        self.warc = place / "warc"
        self.warc.mkdir()
        self.store = place / "store"
        self.notes: list[UploadResult | None] = []

    def uploader(self) -> PageUploader:
        return PageUploader(self.warc, f"file://{self.store}", (".cdxj",), (".cdxj",), self.notes.append)

    def pages(self, urls: list[str] = URLS) -> Path:
        path = warc_file(self.warc, urls)
        index_file(path, ["cdxj"])
        return path


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(page_uploader, "REST_S", 0.05)
    return World(tmp_path)


def test_files_of_earlier_runs_and_new_ones_are_moved(world: World) -> None:
    """Each is counted once, and the end waits for what is left."""
    world.store.mkdir()
    first = world.pages()
    uploader = world.uploader()
    uploader.start()
    wait_until(lambda: not first.exists(), "the file of an earlier run is moved")
    second = world.pages(URLS[:2])
    uploader.check_for_files()
    wait_until(lambda: not second.exists(), "the new file is moved")
    third = world.pages(URLS[:1])
    uploader.end(LONG_S)
    assert [note.path for note in world.notes if note] == [first, second, third]
    assert {path.name for path in world.store.glob("*.warc.gz")} == {first.name, second.name, third.name}
    assert not list(world.warc.iterdir())


def test_a_store_that_is_away_is_asked_until_it_is_back(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """One line says that it is away, however often it is asked, and one that it is back; nothing is lost."""
    caplog.set_level(logging.INFO)
    path = world.pages()
    data = path.read_bytes()
    uploader = world.uploader()
    uploader.start()
    wait_until(lambda: world.notes.count(None) >= 3, "it was asked three times")
    assert path.read_bytes() == data
    world.store.mkdir()
    wait_until(lambda: not path.exists(), "the file is moved")
    uploader.end(LONG_S)
    lines = [record.getMessage() for record in caplog.records]
    away = [line for line in lines if line.startswith("WARC files are not uploaded to file://")]
    assert len(away) == 1
    assert "create it, or mount it" in away[0]
    assert f"they wait in {world.warc}" in away[0]
    assert len([line for line in lines if line.endswith("accepts WARC files again")]) == 1
    assert (world.store / path.name).read_bytes() == data


def test_what_is_left_at_the_end_is_told(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """With the command that moves it."""
    path = world.pages()
    uploader = world.uploader()
    uploader.start()
    wait_until(lambda: None in world.notes, "it was asked")
    uploader.end(LONG_S)
    assert path.exists()
    assert f"1 WARC files in {world.warc} wait for file://" in caplog.text
    assert "scrapy frontier warc upload" in caplog.text


def test_a_file_that_the_store_has_under_its_name_is_told_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """It stays, and is told no second time when others are moved."""
    world.store.mkdir()
    path = world.pages()
    (world.store / path.name).write_bytes(b"another")
    uploader = world.uploader()
    uploader.start()
    wait_until(lambda: "has another file of this name" in caplog.text, "it is told")
    other = world.pages(URLS[:2])
    uploader.check_for_files()
    wait_until(lambda: not other.exists(), "the other is moved")
    uploader.end(LONG_S)
    assert path.exists()
    assert caplog.text.count("has another file of this name") == 1


def test_a_file_that_the_store_never_takes_is_no_reason_to_wait(world: World) -> None:
    """A pause for it would have no end. Other files are, and it is moved once it can be."""
    world.store.mkdir()
    path = world.pages()
    theirs = world.store / path.name
    theirs.write_bytes(b"another")
    uploader = world.uploader()
    full = DiskUse(world.warc, 0, uploader.staying)
    assert full._current_complaint()
    uploader.start()
    wait_until(lambda: not full._current_complaint(), "it waits no more")
    assert path.exists()
    other = world.warc / "z.warc.gz"
    other.touch()  # it has no index
    assert full._current_complaint().endswith("1 files there wait for the store")
    other.unlink()
    theirs.unlink()
    uploader.check_for_files()
    wait_until(lambda: not path.exists(), "the file is moved")
    uploader.end(LONG_S)
    assert not uploader.staying


def test_a_file_that_a_store_refuses_while_it_takes_others_is_no_reason_to_wait(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told once, by its name. A store that is away later is told, too, and the file is moved once it is taken."""
    world.store.mkdir()
    refused, others = world.pages(), [world.pages(URLS[:1])]
    (world.store / refused.name).mkdir()
    uploader = world.uploader()
    full = DiskUse(world.warc, 0, uploader.staying)
    uploader.start()
    wait_until(lambda: uploader.staying == {refused.name}, "it is known")
    assert not full._current_complaint()
    for _ in range(2):
        others.append(world.pages(URLS[:1]))
        uploader.check_for_files()
        wait_until(lambda: not others[-1].exists(), "the others are moved")
    assert caplog.text.count(f"accepts other files, but not {refused.name}: ") == 1
    assert "are not uploaded to" not in caplog.text
    away = world.store.rename(world.store.with_name("away"))
    others.append(world.pages(URLS[:1]))
    assert full._current_complaint().endswith("1 files there wait for the store")
    uploader.check_for_files()
    wait_until(lambda: "are not uploaded to" in caplog.text, "it is away")
    away.rename(world.store)
    (world.store / refused.name).rmdir()
    wait_until(lambda: not refused.exists() and not others[-1].exists(), "all are moved")
    uploader.end(LONG_S)
    assert not uploader.staying


def test_files_that_the_store_always_refuses_keep_no_others(world: World) -> None:
    """However many there are, side by side: the next process begins behind the one at which the last one ended."""
    world.store.mkdir()
    refused = [world.pages(URLS[:2]) for _ in range(5)]
    for path in refused:
        (world.store / path.name).mkdir()
    others = [world.pages(URLS[:1]) for _ in range(2)]
    uploader = world.uploader()
    uploader.start()
    wait_until(lambda: not any(path.exists() for path in others), "the others are moved")
    uploader.end(LONG_S)
    assert [note.path for note in world.notes if note] == others
    assert all(path.exists() for path in refused)


def test_a_process_that_takes_long_is_left_to_finish(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It may have begun before the last file was there: a second one looks for that, and a line names it."""
    caplog.set_level(logging.INFO)
    door, log = tmp_path / "door", tmp_path / "log"
    os.mkfifo(door)
    waiting = tmp_path / "waiting"
    waiting.write_text(f'#!/bin/sh\necho "$$ $*" >> {log}\nread opened < {door}\n')
    waiting.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(waiting))
    world.pages()
    uploader = world.uploader()
    uploader.start()
    wait_until(lambda: log.exists() and log.read_text().endswith("\n"), "the process is at work")
    uploader.end(0.01)
    wait_until(lambda: len(log.read_text().splitlines()) == 2, "the last one has begun")
    (first, *one), (last, *two) = [line.split() for line in log.read_text().splitlines()]
    assert one[-2:] == ["--wait", "0"]
    assert two[-2:] == ["--wait", "600"]
    assert f"process {last} goes on" in caplog.text
    assert os.getsid(int(last)) == int(last) != os.getsid(0)
    for pid in (first, last):
        os.kill(int(pid), signal.SIGKILL)
    assert uploader._left
    uploader._left._process.wait(LONG_S)
    uploader._thread.join(LONG_S)
    assert len(log.read_text().splitlines()) == 2, "the uploader starts no third one"


def test_a_disk_is_too_full_only_while_files_wait(world: World) -> None:
    """What else fills it is no reason to wait for the store; the share is that of df."""
    percent = percent_used(world.warc)
    disk = os.statvfs(world.warc)
    assert 0 < percent < 100
    assert percent >= 100 * (1 - disk.f_bfree / disk.f_blocks) - 1
    full, roomy = DiskUse(world.warc, 0), DiskUse(world.warc, 101)
    assert full._current_complaint() == ""
    path = world.pages()
    assert full._current_complaint().startswith(f"the disk of {world.warc} is ")
    assert full._current_complaint().endswith(" % full, and 1 files there wait for the store")
    assert roomy._current_complaint() == ""
    index_path(path).unlink()
    path.rename(path.with_name(path.name + ".open"))
    assert full._current_complaint() == "", "a file that is written does not wait"


def test_a_watch_sees_what_changes(world: World) -> None:
    """It looks in a thread of its own, and stops when it is told to."""
    disk = DiskUse(world.warc, 0)
    disk.start()
    assert disk.complaint == ""
    path = world.pages()
    wait_until(lambda: bool(disk.complaint), "it complains")
    path.unlink()
    wait_until(lambda: not disk.complaint, "it has room again")
    disk.stop()
