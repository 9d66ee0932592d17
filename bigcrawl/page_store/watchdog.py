from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

GAVE_UP: Final = 2


class Watchdog:
    """Ends the process with status `GAVE_UP` after `stall_s` without progress."""

    def __init__(self, stall_s: float, tell: Callable[[], object]) -> None:
        self._stall_s = stall_s
        self._tell = tell
        self._moved_s = time.monotonic()
        threading.Thread(target=self._wait_for_stall, name="bigcrawl-watchdog", daemon=True).start()

    def record_progress(self) -> None:
        self._moved_s = time.monotonic()

    def _wait_for_stall(self) -> None:
        while (left_s := self._moved_s + self._stall_s - time.monotonic()) > 0:
            time.sleep(left_s)
        try:
            self._tell()
        finally:
            os._exit(GAVE_UP)
