"""Group commit: forces written pages to the medium, many at a time, in a thread of its own.

    written --> (`interval_s` after the previous sync, or when somebody hurries) --> sync --> safe

One sync covers everything written when it began. While the disk hangs, `safe` does not advance; callers see that in
`late_ms`. If the disk fails, `safe` does not advance until `begin_again`, and pages that were not safe must be written
again. The reason is that Linux drops the pages of a failed sync, so that the next sync may succeed without them.

The thread is a daemon, so that a hanging disk cannot keep the process from ending.
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
    """Counts pages written and pages safe. Also runs other disk work, such as closing full files.

    Args:
        syncing: returns a function that the thread calls to force everything written so far to the medium; it raises
            OSError on failure.
        interval_s: shortest time from one sync to the next; None: nothing is synced, and all written pages count as
            safe.

    Attributes:
        written: how many pages were written.
        error: why a sync failed; no further sync until `begin_again`.
    """

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
        self._waiting_since_ms = -1  # start of the current sync or work; -1: none
        self._thread = threading.Thread(target=self._run, name="warc-disk", daemon=True)

    def __repr__(self) -> str:
        return f"<GroupCommit written={self.written} safe={self.safe}>"

    @property
    def safe(self) -> int:
        """How many of the written pages, counted from the first, are safe."""
        return self.written if self.interval_s is None else self._synced

    @property
    def late_ms(self) -> int:
        """How long the disk has been busy with one operation."""
        since_ms = self._waiting_since_ms
        return 0 if since_ms < 0 else self._clock.monotonic_ms() - since_ms

    def sync_every(self, interval_s: float | None) -> None:
        """Set the shortest time between two syncs, as `interval_s` above; to be called before anything is written."""
        self.interval_s = interval_s

    def note_written(self) -> None:
        """Count one more written page. Cost: 1 us."""
        self.written += 1
        if self.interval_s is not None:
            self._due = self.written, self._syncing()
            self._rouse()

    def hurry(self) -> None:
        """Let the next sync begin now, whenever the last one was."""
        self._in_a_hurry.set()

    def submit(self, work: Callable[[], bool]) -> None:
        """Run `work` in the thread before the next sync. If it returns False, that counts as a failed sync."""
        self._work.append(work)
        self._rouse()

    def begin_again(self) -> None:
        """Continue after an error: pages beyond `safe` count as not written."""
        self._due = None
        self.written = self._synced
        self.error = None

    @property
    def has_ended(self) -> bool:
        """Whether all work is finished, or has failed, after `end`; also before the first of it."""
        return not self._thread.is_alive()

    def end(self, within_s: float) -> bool:
        """Finish the remaining work and wait at most `within_s`. False: the disk has not completed it.

        May be called again to wait longer.
        """
        if not self._is_ending:
            self._is_ending = True
            self._in_a_hurry.set()
            self._rouse()
        self._thread.join(within_s)
        return not self._thread.is_alive() and self.error is None

    def _rouse(self) -> None:
        if not self._wake.is_set():
            if not self._thread.is_alive():
                self._thread.start()
            self._wake.set()

    # In the thread.

    def _run(self) -> None:
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
        # Read first, so that any full file it covers is closed by work that is already queued.
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
