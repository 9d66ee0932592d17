"""How much room is left on the disks, asked in a thread of its own: a disk that hangs keeps whoever asks it."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LOOK_S: Final = 10.0
STALE_S: Final = 60.0  # an older answer is no answer


class DiskLeft:
    """Bytes that the user of this process may still write, by directory. Begin with `start`, end with `stop`."""

    def __init__(self, directories: Mapping[str, Path]) -> None:
        """Look at directories, which have names; each may be missing until the crawl makes it."""
        self._directories = directories
        self._found: dict[str, tuple[float, int]] = {}  # when, and how much
        self._is_over = threading.Event()

    def __repr__(self) -> str:
        return f"<DiskLeft {self._found}>"

    def start(self) -> None:
        """Begin a thread for each directory, so that one that hangs does not keep the others."""
        for name, directory in self._directories.items():
            # A daemon: a process that ends must not wait for a disk.
            threading.Thread(target=self._watch, args=(name, directory), name="bigcrawl-disk", daemon=True).start()

    def stop(self) -> None:
        """End the threads, soon."""
        self._is_over.set()

    def left(self) -> dict[str, float]:
        """Bytes left, by name; without a directory whose disk has not answered for a minute."""
        since_s = time.monotonic() - STALE_S
        return {name: free for name, (when_s, free) in self._found.items() if when_s >= since_s}

    def _watch(self, name: str, directory: Path) -> None:
        while not self._is_over.is_set():
            try:
                disk = os.statvfs(directory)
                self._found[name] = (time.monotonic(), disk.f_bavail * disk.f_frsize)
            except OSError:
                self._found.pop(name, None)
            self._is_over.wait(LOOK_S)
