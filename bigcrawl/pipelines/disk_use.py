"""Watches whether files that wait for a store fill the disk, in a thread of its own, because a disk may hang."""

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
    """Watches the disk of a directory. Begin with `start`, end with `stop`.

    Args:
        directory: of the WARC files.
        percent_max: how full the disk may be while files wait. If no files wait, the disk may be full of other things.
        staying: names of files that the store will never take, so that waiting for them would never end. May change.

    Attributes:
        complaint: a sentence that says what is too full; empty if nothing is. As of the last look.
    """

    def __init__(self, directory: Path, percent_max: int, staying: Container[str] = ()) -> None:
        self._directory = directory
        self._percent_max = percent_max
        self._staying = staying
        self.complaint = ""
        self._is_over = threading.Event()

    def __repr__(self) -> str:
        return f"<DiskUse {self.complaint!r}>"

    def start(self) -> None:
        """Look every second from now on."""
        threading.Thread(target=self._watch, name="warc-disk-use", daemon=True).start()

    def stop(self) -> None:
        """End the thread, soon."""
        self._is_over.set()

    def _watch(self) -> None:
        while not self._is_over.is_set():
            try:
                self.complaint = self._look()
            except OSError:
                self.complaint = ""  # whatever writes there reports what is wrong
            self._is_over.wait(LOOK_S)

    def _look(self) -> str:
        percent = percent_used(self._directory)
        if percent < self._percent_max:
            return ""
        waiting = [path for path in waiting_files(self._directory) if path.name not in self._staying]
        if not waiting:
            return ""
        files = f"{len(waiting):,} files there wait for the store"
        return f"the disk of {self._directory} is {percent:.0f} % full, and {files}"


def percent_used(directory: Path) -> float:
    """How full a disk is, counted as `df` does, without the space that only root may use.

    Raises:
        OSError: it cannot be read.
    """
    disk = os.statvfs(directory)
    used = disk.f_blocks - disk.f_bfree
    return 100 * used / max(1, used + disk.f_bavail)
