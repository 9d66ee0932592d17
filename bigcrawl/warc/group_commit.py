"""Group commit: syncs written pages in a thread, many per sync.

A sync covers everything written when it began. While the disk hangs, `safe_count` does not advance. After a failed sync
it does not advance until `begin_again`, and unsafe pages must be written again: Linux drops the pages of a failed sync,
so that the next one may succeed without them.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from bigcrawl.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.clock import Clock

_FAILED: Final = "a file could not be closed, or has lost its name"


class GroupCommit:
    """Counts written and safe pages, and syncs them in a thread with `syncing()`; if `interval_s` is None, never."""

    def __init__(
        self, syncing: Callable[[], Callable[[], None]], interval_s: float | None, clock: Clock | None = None
    ) -> None:
        self._syncing = syncing
        self.interval_s = interval_s
        self._clock = clock or SystemClock()
        self.written = 0
        self._synced = 0
        self._due: tuple[int, Callable[[], None]] | None = None
        self._work: deque[Callable[[], bool]] = deque()
        self._wake = threading.Event()
        self._is_ending = False
        self._in_a_hurry = threading.Event()
        self.error: OSError | None = None
        self._waiting_since_ms = -1  # -1: not busy
        self._thread = threading.Thread(target=self._run_thread, name="warc-disk", daemon=True)

    @property
    def safe_count(self) -> int:
        return self.written if self.interval_s is None else self._synced

    @property
    def late_ms(self) -> int:
        since_ms = self._waiting_since_ms
        return 0 if since_ms < 0 else self._clock.monotonic_ms() - since_ms

    def sync_every(self, interval_s: float | None) -> None:
        self.interval_s = interval_s

    def record_written(self) -> None:
        self.written += 1
        if self.interval_s is not None:
            self._due = self.written, self._syncing()
            self._start_or_wake()

    def hurry(self) -> None:
        self._in_a_hurry.set()

    def submit(self, work: Callable[[], bool]) -> None:
        self._work.append(work)
        self._start_or_wake()

    def begin_again(self) -> None:
        """Continue after an error; unsafe pages count as unwritten."""
        self._due = None
        self.written = self._synced
        self.error = None

    @property
    def has_ended(self) -> bool:
        """Return whether no work remains after `end`, or none was ever started."""
        return not self._thread.is_alive()

    def end(self, within_s: float) -> bool:
        """Finish the remaining work; return False if that takes longer than `within_s`."""
        if not self._is_ending:
            self._is_ending = True
            self._in_a_hurry.set()
            self._start_or_wake()
        self._thread.join(within_s)
        return not self._thread.is_alive() and self.error is None

    def _start_or_wake(self) -> None:
        if not self._wake.is_set():
            if not self._thread.is_alive():
                self._thread.start()
            self._wake.set()

    def _run_thread(self) -> None:
        while not self._is_ending:
            self._wake.wait()
            self._wake.clear()
            began_s = time.monotonic()
            self._in_a_hurry.clear()
            self._do_all()
            if self.interval_s is not None and not self._is_ending:
                self._in_a_hurry.wait(max(0.0, began_s + self.interval_s - time.monotonic()))
        self._do_all()

    def _do_all(self) -> None:
        self._waiting_since_ms = self._clock.monotonic_ms()
        # Take these before the work, so that full files that it covers are closed by then.
        due = self._due if self.error is None else None
        try:
            while self._work:
                if not self._work.popleft()() and self.interval_s is not None:
                    raise OSError(_FAILED)  # noqa: TRY301 - counts as a failed sync
            if due is not None and due[0] > self._synced:
                due[1]()
                self._synced = due[0]
        except OSError as error:
            self.error = error
        finally:
            self._waiting_since_ms = -1
