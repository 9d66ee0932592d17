"""Ends a process whose event loop stands still, and logs where it stood.

A hung node cannot be stopped: signals wait for the loop, and the next owner takes the same page again. So the process
ends, and the URLs in process are suspects at the next start.

A thread counts its own ticks, so suspensions do not count, and subtracts the loop thread's waits for a busy CPU. While
C code holds the interpreter's lock, the thread cannot run. Then a kernel timer of CPU time is no longer reset, and its
signal ends the process after `faulthandler` has written the stack.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from types import FrameType

logger = logging.getLogger(__name__)

TICK_S = 1.0  # or half of the time that the loop may stand still
BUSY_SHARE = 0.25  # the part of a tick that always counts, however busy the machine is
LAST_WORDS_S = 3.0  # a blocked log must not keep the process alive
STOOD_STILL = 70

_AT_A_PROMPT = frozenset({"bdb", "pdb", "code", "scrapy.shell", "pydevd"})


class Watchdog:
    def __init__(
        self, standstill_s: float, running_url: Callable[[], str], end: Callable[[int], object] = os._exit
    ) -> None:
        self._standstill_s = standstill_s
        self._tick_s = min(TICK_S, standstill_s / 2)
        self._running_url = running_url
        self._end = end
        self._beats = 0
        self._stopped = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._watched = 0
        self._waits_fd = -1
        self._has_alarm = False

    def __repr__(self) -> str:
        return f"<Watchdog standstill_s={self._standstill_s} beats={self._beats}>"

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._standstill_s or _is_traced():
            return
        self._loop = loop
        self._watched = threading.get_ident()
        with contextlib.suppress(OSError):  # not every kernel has it
            self._waits_fd = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
        self._beat()
        self._set_alarm()
        threading.Thread(target=self._run, name="bigcrawl-watchdog", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        if self._timer is not None:
            self._timer.cancel()
        self._unset_alarm()

    def _unset_alarm(self) -> None:
        if self._has_alarm:
            self._has_alarm = False
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            faulthandler.unregister(signal.SIGVTALRM)

    def _beat(self) -> None:
        self._beats += 1
        assert self._loop is not None
        now_s = self._loop.time()
        # At whole seconds an idle node wakes anyway.
        next_s = now_s // TICK_S + TICK_S if self._tick_s == TICK_S else now_s + self._tick_s / 2
        self._timer = self._loop.call_at(next_s, self._beat)

    def _set_alarm(self) -> None:
        """Let the kernel end the process if even the watchdog's thread cannot run, unless the signal is in use."""
        if signal.getsignal(signal.SIGVTALRM) is not signal.SIG_DFL or sys.__stderr__ is None:
            return
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            faulthandler.register(signal.SIGVTALRM, file=sys.__stderr__, all_threads=True, chain=True)
            self._has_alarm = True
            self._reset_alarm()

    def _reset_alarm(self) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, self._standstill_s)

    def _run(self) -> None:
        try:
            self._watch()
        finally:
            if self._waits_fd >= 0:
                os.close(self._waits_fd)

    def _watch(self) -> None:
        seen, waited_s, stood_s = -1, 0.0, 0.0
        while not self._stopped.wait(self._tick_s):
            if self._loop is None or not self._loop.is_running():
                self._unset_alarm()
                return
            if self._has_alarm:
                self._reset_alarm()
            beats, waited_before_s, waited_s = self._beats, waited_s, self._waited_s()
            if beats != seen:
                seen, stood_s = beats, 0.0
                continue
            stood_s += max(self._tick_s * BUSY_SHARE, self._tick_s - (waited_s - waited_before_s))
            if stood_s >= self._standstill_s:
                frame = sys._current_frames().get(self._watched)
                if frame is None or _is_at_a_prompt(frame):
                    stood_s = 0.0
                    continue
                self._log_and_end(frame)
                return

    def _waited_s(self) -> float:
        try:
            return int(os.pread(self._waits_fd, 100, 0).split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            return 0.0

    def _log_and_end(self, frame: FrameType) -> None:
        last_words = threading.Thread(target=self._log, args=(frame,), daemon=True)
        last_words.start()
        last_words.join(LAST_WORDS_S)
        self._end(STOOD_STILL)

    def _log(self, frame: FrameType) -> None:
        logger.critical(
            "the event loop has stood still for %(seconds)g s, in the page %(url)s as far as is known, and the process "
            "ends; it stands here:\n%(stack)s",
            {
                "seconds": self._standstill_s,
                "url": self._running_url() or "(none)",
                "stack": "".join(traceback.format_stack(frame)),
            },
        )


def _is_traced() -> bool:
    monitoring = getattr(sys, "monitoring", None)
    has_debugger = monitoring is not None and monitoring.get_tool(monitoring.DEBUGGER_ID) is not None
    return sys.gettrace() is not None or has_debugger


def _is_at_a_prompt(frame: FrameType) -> bool:
    """Return whether the process is at a prompt: a debugger's, or that of `inspect_response`."""
    at: FrameType | None = frame
    while at is not None:
        module = str(at.f_globals.get("__name__", ""))
        if at.f_trace is not None or module in _AT_A_PROMPT or module.startswith("IPython."):
            return True
        at = at.f_back
    return False
