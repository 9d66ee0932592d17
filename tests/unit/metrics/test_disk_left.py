"""Room on disks, asked by threads that may hang."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from bigcrawl.metrics.source import DiskSpaceLeft
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_room_is_told_by_directory(tmp_path: Path) -> None:
    """One that does not exist is left out."""
    disk = DiskSpaceLeft({"state": tmp_path, "warc": tmp_path / "missing"})
    disk.start()
    wait_until(lambda: bool(disk.free_bytes()), "the disk answers")
    assert disk.free_bytes().keys() == {"state"}
    assert disk.free_bytes()["state"] > 0
    disk.stop()


def test_a_disk_that_hangs_keeps_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks gets an answer at once, without that disk; the other one is told, and the process may end."""
    hangs, is_over = tmp_path / "hangs", threading.Event()
    statvfs = os.statvfs

    def asked(path: Path) -> os.statvfs_result:
        if path == hangs:
            is_over.wait()
        return statvfs(tmp_path)

    monkeypatch.setattr(os, "statvfs", asked)
    disk = DiskSpaceLeft({"state": tmp_path, "warc": hangs})
    disk.start()
    wait_until(lambda: bool(disk.free_bytes()), "the other disk answers")
    assert disk.free_bytes().keys() == {"state"}
    threads = [thread for thread in threading.enumerate() if thread.name == "bigcrawl-disk"]
    assert threads
    assert all(thread.daemon for thread in threads), "the interpreter does not wait for them"
    disk.stop()
    is_over.set()
