"""A stack sampler inside the crawler: where the CPU time of a page goes.

SIGPROF comes every few milliseconds of CPU time that the process has used; Python runs the handler in the main
thread, at the next call's end or function's start, so a C function's time falls to the line that called it. A
sample of a thread weighs as much as that thread has worked since its last one, by its own CPU clock. What the
threads of Python do not account for is native. The garbage collector is told apart, and the handler's own time
left out.
"""

from __future__ import annotations

import gc
import json
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrapy import signals
from scrapy.utils.asyncio import call_later

if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Self

    from scrapy.crawler import Crawler

INTERVAL_S: Final = 0.002  # of CPU; the kernel rounds it up to its own tick, 1 to 10 ms
PAGES_BEFORE: Final = 200
WARM_UP_S: Final = 5.0  # after them: by then the seeds are queued, and connections open


class Sampler:
    """CPU nanoseconds by stack; a stack is the code objects from the innermost call outwards."""

    def __init__(self) -> None:
        self.main: Counter[tuple[CodeType, ...]] = Counter()
        self.others: Counter[tuple[CodeType, ...]] = Counter()
        self.gc_ns = 0
        self.main_ns = 0
        self.process_ns = 0
        self._since_ns = 0
        self._gc_since_ns = 0
        self._is_collecting = False
        self._is_sampling = False
        self._main = threading.get_ident()
        self._clocks: dict[int, tuple[int, int]] = {}  # of other threads: clock, and what it showed last

    def start(self) -> None:
        """Begin; call it in the main thread."""
        signal.signal(signal.SIGPROF, self._sample)
        gc.callbacks.append(self._record_gc)
        self.main_ns, self.process_ns = -time.thread_time_ns(), -time.process_time_ns()
        self._since_ns = time.thread_time_ns()
        for thread in sys._current_frames():
            self._worked_ns(thread)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)

    def stop(self) -> None:
        """End; call it in the main thread."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)
        gc.callbacks.remove(self._record_gc)
        self.main_ns += time.thread_time_ns()
        self.process_ns += time.process_time_ns()

    def as_profile(self, pages: int) -> dict[str, Any]:
        """What `stages.stage_costs` takes; fit for JSON."""
        return {
            "pages": pages,
            "gc_ns": self.gc_ns,
            "main_ns": self.main_ns,
            "process_ns": self.process_ns,
            "main": _named(self.main),
            "others": _named(self.others),
        }

    def _sample(self, number: int, frame: FrameType | None) -> None:
        # In a weak reference's callback the collector accounts for itself; in this handler nothing is to be counted.
        if self._is_collecting or self._is_sampling:
            return
        self._is_sampling = True
        self.main[_stack(frame)] += time.thread_time_ns() - self._since_ns
        innermost_of = sys._current_frames()
        # This frame must not hold itself: such a cycle keeps the crawl's frames, and burdens the collector.
        del innermost_of[self._main]
        for thread, innermost in innermost_of.items():
            worked_ns = self._worked_ns(thread)
            if worked_ns:
                self.others[_stack(innermost)] += worked_ns
        self._since_ns = time.thread_time_ns()
        self._is_sampling = False

    def _worked_ns(self, thread: int) -> int:
        """What another thread has worked since it was last asked."""
        if thread == self._main:
            return 0
        kept = self._clocks.pop(thread, None)
        try:
            clock, before_ns = kept or (time.pthread_getcpuclockid(thread), 0)
            now_ns = time.clock_gettime_ns(clock)
        except OSError:  # it has ended; another one that bears its number is found at the next sample
            return 0
        self._clocks[thread] = (clock, now_ns)
        return now_ns - before_ns

    def _record_gc(self, phase: str, info: dict[str, Any]) -> None:
        """Keep the collector's time apart: it would fall to whoever happened to allocate."""
        now_ns = time.thread_time_ns()
        if phase == "start":
            self._is_collecting = threading.get_ident() == self._main
            self._gc_since_ns = now_ns
        elif self._is_collecting:
            self._is_collecting = False
            self.gc_ns += now_ns - self._gc_since_ns
            self._since_ns += now_ns - self._gc_since_ns


def _stack(frame: FrameType | None) -> tuple[CodeType, ...]:
    stack = []
    while frame is not None:
        stack.append(frame.f_code)
        frame = frame.f_back
    return tuple(stack)


def _named(stacks: Counter[tuple[CodeType, ...]]) -> list[tuple[list[str], int]]:
    return [([f"{code.co_filename}:{code.co_qualname}" for code in stack], ns) for stack, ns in stacks.items()]


class Profile:
    """Samples for BENCH_PROFILE_SECONDS once the crawl is warm; writes BENCH_PROFILE_FILE at the end."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._sampler = Sampler()
        self._responses = 0
        self._pages = 0
        crawler.signals.connect(self._count, signals.response_received)
        crawler.signals.connect(self._write, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def _count(self) -> None:
        self._responses += 1
        if self._responses == PAGES_BEFORE:
            call_later(WARM_UP_S, self._start)

    def _start(self) -> None:
        self._pages = -self._responses
        self._sampler.start()
        call_later(self._crawler.settings.getfloat("BENCH_PROFILE_SECONDS"), self._stop)

    def _stop(self) -> None:
        if self._pages < 0:
            self._sampler.stop()
            self._pages += self._responses

    def _write(self) -> None:
        self._stop()
        told = self._sampler.as_profile(self._pages)
        Path(self._crawler.settings["BENCH_PROFILE_FILE"]).write_text(json.dumps(told))
