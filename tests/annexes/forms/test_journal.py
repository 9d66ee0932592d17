"""The state of forms on its disk: in order, safe before anything follows from it, and no disk holds up the loop."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.warc.files import OsFiles
from bigcrawl_forms import journal as disk
from bigcrawl_forms.journal import Journal, StateDisk
from tests.annexes.forms.hung_disk import HungDisk
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ENTRIES = [{"kind": "ask", "term": f"word{number}"} for number in range(9)]


async def until(holds: Callable[[], object]) -> None:
    """Let the loop run until something holds."""
    while not holds():  # noqa: ASYNC110 - of threads
        await asyncio.sleep(0)


def journal_in(directory: Path) -> Journal:
    return Journal(directory, StateDisk(directory))


def read(directory: Path) -> list[dict[str, Any]]:
    return asyncio.run(journal_in(directory).read_new())


async def keep(journal: Journal, *entries: dict[str, Any]) -> None:
    for entry in entries:
        journal.append(entry)
    await journal.sync()


def failing(monkeypatch: pytest.MonkeyPatch, name: str, times: int, error: OSError) -> list[int]:
    """Let a call of the disk fail so many times; the list has one entry for each."""
    call: Callable[..., Any] = getattr(OsFiles, name)
    failed: list[int] = []

    def fail(files: OsFiles, *args: Any) -> Any:
        if len(failed) < times:
            failed.append(1)
            raise error
        return call(files, *args)

    monkeypatch.setattr(OsFiles, name, fail)
    monkeypatch.setattr(disk, "RETRY_S", 0)
    return failed


def test_entries_are_read_by_another_process_in_their_order_and_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        one, other = journal_in(tmp_path / "form"), journal_in(tmp_path / "form")
        assert await other.read_new() == []
        await keep(one, *ENTRIES[:3])
        assert await other.read_new() == ENTRIES[:3]
        await keep(one, *ENTRIES[3:])
        assert (await other.read_new(), await other.read_new()) == (ENTRIES[3:], [])
        assert await one.read_new() == [], "its own"

    asyncio.run(scenario())


def test_a_hung_disk_holds_who_waits_for_it_and_not_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What comes meanwhile is written together, by one more sync; it is said once, and so is the end."""
    caplog.set_level("INFO")
    monkeypatch.setattr(disk, "HANGING_S", 0.01)
    hung = HungDisk(monkeypatch)

    async def scenario() -> None:
        journal = journal_in(tmp_path)
        waiting = [asyncio.ensure_future(keep(journal, ENTRIES[0]))]
        await until(hung.is_asked.is_set)
        waiting += [asyncio.ensure_future(keep(journal, entry)) for entry in ENTRIES[1:]]
        await until(lambda: "no answer for" in caplog.text)
        assert not any(one.done() for one in waiting)
        monkeypatch.setattr(disk, "HANGING_S", 300)
        hung.answers.set()
        await asyncio.gather(*waiting)

    asyncio.run(scenario())
    assert read(tmp_path) == ENTRIES
    assert hung.syncs == 2
    assert caplog.text.count("cannot be used: no answer for 0.01 s") == 1
    assert caplog.text.count("can be used again") == 1


def test_who_stops_waiting_for_a_hung_disk_is_held_by_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the loop nor the end of the process waits for the thread."""
    hung = HungDisk(monkeypatch)

    async def scenario() -> None:
        waiting = asyncio.ensure_future(keep(journal_in(tmp_path), *ENTRIES))
        await until(hung.is_asked.is_set)
        waiting.cancel()
        await asyncio.wait({waiting})

    asyncio.run(scenario())
    threads = [thread for thread in threading.enumerate() if thread.name == "bigcrawl-forms"]
    assert threads
    assert all(thread.daemon for thread in threads)
    hung.answers.set()
    wait_until(lambda: not any(thread.is_alive() for thread in threads), "the disk's threads end")


@pytest.mark.parametrize("call", ["create", "write"])
def test_a_full_disk_is_tried_again_until_it_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, call: str
) -> None:
    """One line says what to do, nothing is lost, and tries in vain leave no files."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    failed = failing(monkeypatch, call, 20, full)
    asyncio.run(keep(journal_in(tmp_path), *ENTRIES))
    assert len(failed) == 20
    assert read(tmp_path) == ENTRIES
    assert len(list(tmp_path.iterdir())) == 1
    assert caplog.text.count("No space left on device") == caplog.text.count("make room") == 1


def test_lines_of_a_failed_sync_go_into_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux may have dropped them, and call the next sync of that file a success."""
    journal = journal_in(tmp_path)
    asyncio.run(keep(journal, *ENTRIES[:4]))
    [first] = tmp_path.iterdir()
    whole = first.read_bytes()
    failing(monkeypatch, "sync", 1, OSError(errno.EIO, os.strerror(errno.EIO)))
    asyncio.run(keep(journal, *ENTRIES[4:]))
    first.write_bytes(whole)
    assert sorted(read(tmp_path), key=str) == ENTRIES


def test_a_directory_that_went_away_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Below the mount point of a disk that is gone, it would hide what the disk has; then this could not be renamed."""
    directory, gone = tmp_path / "form", tmp_path / "gone"

    async def scenario() -> None:
        journal = journal_in(directory)
        await keep(journal, *ENTRIES[:4])
        directory.rename(gone)
        failed = failing(monkeypatch, "sync", 1, OSError(errno.ESTALE, os.strerror(errno.ESTALE)))
        waiting = asyncio.ensure_future(keep(journal, *ENTRIES[4:]))
        await until(lambda: failed and "cannot be used" in caplog.text)
        gone.rename(directory)
        await waiting

    asyncio.run(scenario())
    assert sorted({entry["term"] for entry in read(directory)}) == [entry["term"] for entry in ENTRIES]


def test_what_could_not_be_read_is_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With the files that were read before it: none of their lines is left out."""
    monkeypatch.setattr(disk, "RETRY_S", 0)
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    first.write_text(f"{json.dumps(ENTRIES[0])}\n")
    second.symlink_to(second)  # a loop cannot be opened

    async def scenario() -> None:
        reading = asyncio.ensure_future(journal_in(tmp_path).read_new())
        await until(lambda: "cannot be used" in caplog.text)
        assert not reading.done()
        second.unlink()
        second.write_text(f"{json.dumps(ENTRIES[1])}\n")
        assert await reading == ENTRIES[:2]

    asyncio.run(scenario())
