"""Checks whether files that wait for a store fill the disk, in a thread, because a disk may hang."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final

from bigcrawl.page_store.uploads import waiting_files

if TYPE_CHECKING:
    from collections.abc import Container
    from pathlib import Path

LOOK_S: Final = 1.0


class DiskUse:
    """Watches the disk of a directory, `percent_max` full at most while files wait, but for those `staying` here."""

    def __init__(self, directory: Path, percent_max: int, staying: Container[str] = ()) -> None:
        self._directory = directory
        self._percent_max = percent_max
        self._staying = staying
        self.complaint = ""
        self._is_over = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._poll_disk, name="warc-disk-use", daemon=True).start()

    def stop(self) -> None:
        self._is_over.set()

    def _poll_disk(self) -> None:
        while not self._is_over.is_set():
            try:
                self.complaint = self._complaint_now()
            except OSError:
                self.complaint = ""  # the writers there report the error
            self._is_over.wait(LOOK_S)

    def _complaint_now(self) -> str:
        percent = percent_used(self._directory)
        if percent < self._percent_max:
            return ""
        waiting = [path for path in waiting_files(self._directory) if path.name not in self._staying]
        if not waiting:
            return ""
        files = f"{len(waiting):,} files there wait for the store"
        return f"the disk of {self._directory} is {percent:.0f} % full, and {files}"


def percent_used(directory: Path) -> float:
    """Return how full a disk is, counted as `df` does, without the space reserved for root."""
    disk = os.statvfs(directory)
    used = disk.f_blocks - disk.f_bfree
    return 100 * used / max(1, used + disk.f_bavail)
