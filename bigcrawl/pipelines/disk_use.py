"""Whether files that wait for a store fill the disk, looked at in a thread of its own: a disk may hang."""

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
        percent_max: how full the disk may be while files wait. A disk that something else fills is not complained of.
        staying: names of files that the store will never take, and that therefore do not wait. May change.

    Attributes:
        complaint: what is too full, as a sentence; empty if nothing is. As of the last look.
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
        """Begin to look, every second."""
        threading.Thread(target=self._watch, name="warc-disk-use", daemon=True).start()

    def stop(self) -> None:
        """End the thread, soon."""
        self._is_over.set()

    def _watch(self) -> None:
        while not self._is_over.is_set():
            try:
                self.complaint = self._look()
            except OSError:
                self.complaint = ""  # whoever writes there tells what is wrong
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
    """How full a disk is, as `df` counts: what only root may use is left out.

    Raises:
        OSError: it cannot be read.
    """
    disk = os.statvfs(directory)
    used = disk.f_blocks - disk.f_bfree
    return 100 * used / max(1, used + disk.f_bavail)
