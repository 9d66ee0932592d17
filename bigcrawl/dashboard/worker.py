"""A daemon thread that runs the dashboard's jobs and caches results; a hung disk does not delay the process's end."""

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
    from contextlib import AbstractContextManager

JOBS_MAX: Final = 32  # further jobs are refused
KEPT_MAX: Final = 64
STOP_S: Final = 3.0  # for the running job to end


class JobAnswer(NamedTuple):
    status: int
    body: bytes


BUSY: Final = JobAnswer(503, b'{"error": "too many questions wait; ask again in a few seconds"}')
OVER: Final = JobAnswer(503, b'{"error": "the node is ending"}')

Result = asyncio.Future[JobAnswer]


class _Job(NamedTuple):
    run: Callable[[], JobAnswer]  # must not raise
    result: Result


class JobThread:
    """One thread and its cached results. Methods must be called in the event loop; only jobs run in the thread."""

    def __init__(self, name: str, during: AbstractContextManager[None]) -> None:
        """Run the jobs within the context manager `during`, which must not raise."""
        self._name = name
        self._during = during
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._waiting = 0
        self._kept: BoundedDict[Hashable, tuple[float, Result]] = BoundedDict(KEPT_MAX)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Future[None] | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        threading.Thread(target=self._run_jobs, name=self._name, daemon=True).start()

    async def stop(self) -> None:
        """Refuse the waiting jobs, and wait for the running one, `STOP_S` at most."""
        if self._ended is None:
            return
        with suppress(queue.Empty):
            while (job := self._jobs.get_nowait()) is not None:
                self._set_result(job, OVER)
        self._jobs.put(None)
        await asyncio.wait({self._ended}, timeout=STOP_S)

    async def run_cached(self, key: Hashable, run: Callable[[], JobAnswer], kept_s: float) -> JobAnswer:
        """Return the result of a job, or that of its `key` if not older than `kept_s`; `run` must not raise."""
        until, result = self._kept.get(key, (0.0, None))
        if result is None or time.monotonic() >= until:
            if self._waiting >= JOBS_MAX:
                return BUSY
            result = self._queue_job(run)
            self._kept.remember(key, (float("inf"), result))
            result.add_done_callback(lambda done: self._cache_result(key, done, kept_s))
        return await asyncio.shield(result)

    async def run_change(self, run: Callable[[], JobAnswer]) -> JobAnswer:
        if self._waiting >= JOBS_MAX:
            return BUSY
        answer = await asyncio.shield(self._queue_job(run))
        self.clear_cache()
        return answer

    def clear_cache(self) -> None:
        self._kept.clear()

    def _cache_result(self, key: Hashable, result: Result, kept_s: float) -> None:
        """Cache a result, unless a change has cleared the cache meanwhile."""
        if self._kept.get(key, (0.0, None))[1] is result:
            self._kept.remember(key, (time.monotonic() + kept_s, result))

    def _queue_job(self, run: Callable[[], JobAnswer]) -> Result:
        assert self._loop is not None, "it was started"
        job = _Job(run, self._loop.create_future())
        self._waiting += 1
        self._jobs.put(job)
        return job.result

    def _run_jobs(self) -> None:
        with self._during:
            while (job := self._jobs.get()) is not None:
                self._call_in_loop(self._set_result, job, job.run())
        self._call_in_loop(self._record_end)

    def _call_in_loop(self, call: Callable[..., None], *values: object) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the process ended meanwhile
            self._loop.call_soon_threadsafe(call, *values)

    def _set_result(self, job: _Job, answer: JobAnswer) -> None:
        self._waiting -= 1
        if not job.result.done():
            job.result.set_result(answer)

    def _record_end(self) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)
