"""Force what was written to the medium, many pages at a time, in a thread of its own (group commit).

    written --> (at most `interval_s` after the sync before) --> sync --> safe

One sync covers all that was written when it began. A disk that hangs keeps `safe` where it is; whoever waits for
it sees that by `late_ms`. A disk that fails does the same until `begin_again`, and what was not safe must be written
again: Linux forgets the pages of a sync that failed, so that the next one may well succeed without them.

The thread is a daemon: a disk that hangs must not keep the process from ending.
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

_FAILED: Final = "a full file could not be closed"


class GroupCommit:
    """Counts what was written, and what of it is safe; also runs other work on the disk, such as closing full files.

    Args:
        syncing: gives what to call, in the thread, to force all that is written now to the medium; OSError: it failed.
        interval_s: from one sync to the next at least; None: nothing is synced, and all that is written counts as safe.

    Attributes:
        written: how many pages were written.
        error: why a sync failed; there is none until `begin_again`.
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
        self._is_ending = threading.Event()
        self.error: OSError | None = None
        self._waiting_since_ms = -1  # the sync or work that is under way; -1: none
        self._thread = threading.Thread(target=self._run, name="warc-disk", daemon=True)

    def __repr__(self) -> str:
        return f"<GroupCommit written={self.written} safe={self.safe}>"

    @property
    def safe(self) -> int:
        """How many of the pages that were written are safe, the first ones."""
        return self.written if self.interval_s is None else self._synced

    @property
    def late_ms(self) -> int:
        """For how long the disk has been busy with one thing."""
        since_ms = self._waiting_since_ms
        return 0 if since_ms < 0 else self._clock.monotonic_ms() - since_ms

    def note_written(self) -> None:
        """One page more was written. Cost: 1 us."""
        self.written += 1
        if self.interval_s is not None:
            self._due = self.written, self._syncing()
            self._rouse()

    def submit(self, work: Callable[[], bool]) -> None:
        """Have something done in the thread, before the next sync; False: it failed, as a sync may."""
        self._work.append(work)
        self._rouse()

    def begin_again(self) -> None:
        """After an error: what is written beyond `safe` counts as not written from now on."""
        self._due = None
        self.written = self._synced
        self.error = None

    def end(self, within_s: float) -> bool:
        """Do what is left, and wait for it so long; False: the disk has not done it."""
        self._is_ending.set()
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
        while not self._is_ending.is_set():
            self._wake.wait()
            self._wake.clear()
            began_s = time.monotonic()
            self._do_all()
            if self.interval_s is not None:
                self._is_ending.wait(max(0.0, began_s + self.interval_s - time.monotonic()))
        self._do_all()

    def _do_all(self) -> None:
        self._waiting_since_ms = self._clock.monotonic_ms()
        # First: what it covers in a full file is then closed by work that is here already.
        due = self._due if self.error is None else None
        try:
            while self._work:
                if not self._work.popleft()() and self.interval_s is not None:
                    raise OSError(_FAILED)  # noqa: TRY301 - it counts as a sync that failed
            if due is not None and due[0] > self._synced:
                due[1]()
                self._synced = due[0]
        except OSError as error:
            self.error = error
        finally:
            self._waiting_since_ms = -1
