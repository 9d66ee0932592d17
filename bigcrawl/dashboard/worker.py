"""The thread that runs the dashboard's jobs, one at a time, and keeps results, so that watching has a bounded cost.

However many browsers watch, each question is asked once in its time. A thread that hangs, with a disk for instance,
delays no end: it is a daemon, and dies with the process.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.bounded import BoundedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

JOBS_MAX: Final = 32  # that wait; a further one is refused
KEPT_MAX: Final = 64  # results
STOP_S: Final = 3.0  # for the job under way to end


class JobAnswer(NamedTuple):
    """The result of a job: an HTTP status and JSON."""

    status: int
    body: bytes


BUSY: Final = JobAnswer(503, b'{"error": "too many questions wait; ask again in a few seconds"}')
OVER: Final = JobAnswer(503, b'{"error": "the node is ending"}')

Result = asyncio.Future[JobAnswer]


class _Job(NamedTuple):
    run: Callable[[], JobAnswer]  # must not raise
    result: Result


class Worker:
    """One thread and what it has answered. All methods belong to the event loop; only jobs run in the thread."""

    def __init__(self, name: str, at_end: Callable[[], None] | None = None) -> None:
        """`at_end` is called in the thread when it ends, and must not raise."""
        self._name = name
        self._at_end = at_end
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._waiting = 0
        self._kept: BoundedDict[Hashable, tuple[float, Result]] = BoundedDict(KEPT_MAX)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"<Worker {self._name} waiting={self._waiting} kept={len(self._kept)}>"

    def start(self) -> None:
        """Begin the thread."""
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        threading.Thread(target=self._work, name=self._name, daemon=True).start()

    async def stop(self) -> None:
        """Wait for the job under way, `STOP_S` at most, and refuse those that wait."""
        if self._ended is None:
            return
        with suppress(queue.Empty):
            while (job := self._jobs.get_nowait()) is not None:
                self._note(job, OVER)
        self._jobs.put(None)
        await asyncio.wait({self._ended}, timeout=STOP_S)

    async def ask(self, key: Hashable, run: Callable[[], JobAnswer], kept_s: float) -> JobAnswer:
        """Return the result of a job, or that of a job with the same key that is under way or ended `kept_s` ago.

        Args:
            key: of the question.
            run: answers it; it may block for long, and must not raise.
            kept_s: how long its result is given again.
        """
        until, result = self._kept.get(key, (0.0, None))
        if result is None or time.monotonic() >= until:
            if self._waiting >= JOBS_MAX:
                return BUSY
            result = self._begin(run)
            self._kept.remember(key, (float("inf"), result))
            result.add_done_callback(lambda done: self._keep(key, done, kept_s))
        return await asyncio.shield(result)

    async def change(self, run: Callable[[], JobAnswer]) -> JobAnswer:
        """Return the result of a job that changes something; what was kept before is asked for anew."""
        if self._waiting >= JOBS_MAX:
            return BUSY
        answer = await asyncio.shield(self._begin(run))
        self.forget()
        return answer

    def forget(self) -> None:
        """Keep no result any longer."""
        self._kept.clear()

    def _keep(self, key: Hashable, result: Result, kept_s: float) -> None:
        """Keep a result that has come, unless a change has come first."""
        if self._kept.get(key, (0.0, None))[1] is result:
            self._kept.remember(key, (time.monotonic() + kept_s, result))

    def _begin(self, run: Callable[[], JobAnswer]) -> Result:
        assert self._loop is not None, "it was started"
        job = _Job(run, self._loop.create_future())
        self._waiting += 1
        self._jobs.put(job)
        return job.result

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._tell(self._note, job, job.run())
        if self._at_end is not None:
            self._at_end()
        self._tell(self._note_end)

    def _tell(self, call: Callable[..., None], *values: object) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the process ended meanwhile
            self._loop.call_soon_threadsafe(call, *values)

    def _note(self, job: _Job, answer: JobAnswer) -> None:
        self._waiting -= 1
        if not job.result.done():
            job.result.set_result(answer)

    def _note_end(self) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)
