"""The free space of the disks, read in threads, because a hung disk blocks its callers."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LOOK_S: Final = 10.0
STALE_S: Final = 60.0  # older answers are dropped


class DiskSpaceLeft:
    """Watches how many bytes this process may still write, by directory."""

    def __init__(self, directories: Mapping[str, Path]) -> None:
        self._directories = directories
        self._found: dict[str, tuple[float, int]] = {}
        self._is_over = threading.Event()

    def start(self) -> None:
        for name, directory in self._directories.items():
            # A daemon, because an ending process must not wait for a disk.
            threading.Thread(target=self._poll_disk, args=(name, directory), name="bigcrawl-disk", daemon=True).start()

    def stop(self) -> None:
        self._is_over.set()

    def free_bytes(self) -> dict[str, float]:
        """Return the free bytes by name, without disks silent for `STALE_S`."""
        since_s = time.monotonic() - STALE_S
        return {name: free for name, (when_s, free) in self._found.items() if when_s >= since_s}

    def _poll_disk(self, name: str, directory: Path) -> None:
        while not self._is_over.is_set():
            try:
                disk = os.statvfs(directory)
                self._found[name] = (time.monotonic(), disk.f_bavail * disk.f_frsize)
            except OSError:
                self._found.pop(name, None)
            self._is_over.wait(LOOK_S)
