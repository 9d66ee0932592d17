"""Jobs run one at a time in a thread; a question that many ask is run once."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from bigcrawl.dashboard.worker import BUSY, JOBS_MAX, OVER, JobAnswer, JobThread

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


class Counted:
    """A job that waits until it may end, and counts its runs."""

    def __init__(self) -> None:
        self.runs = 0
        self.threads: set[int] = set()
        self.may_end = threading.Event()

    def __call__(self) -> JobAnswer:
        self.may_end.wait(60)
        self.runs += 1
        self.threads.add(threading.get_ident())
        return JobAnswer(200, b"%d" % self.runs)


def ended(job: Counted) -> Counted:
    job.may_end.set()
    return job


async def started() -> JobThread:
    worker = JobThread("test", nullcontext())
    worker.start()
    return worker


def test_ten_watchers_cost_what_one_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the job is under way, and for as long as its result is kept; then it is run anew."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    async def watch() -> None:
        worker, job = await started(), Counted()
        asking = [asyncio.ensure_future(worker.run_cached("status", job, 2.0)) for _ in range(10)]
        await asyncio.sleep(0)
        job.may_end.set()
        assert {(await each).body for each in asking} == {b"1"}
        now[0] += 1.9
        assert (await worker.run_cached("status", job, 2.0)).body == b"1"
        now[0] += 0.2
        assert (await worker.run_cached("status", job, 2.0)).body == b"2"
        assert (await worker.run_cached("nodes", job, 2.0)).body == b"3"
        assert job.threads.isdisjoint({threading.get_ident()})
        assert len(job.threads) == 1
        await worker.stop()

    asyncio.run(watch())


def test_after_a_change_everything_is_asked_anew() -> None:
    async def steer() -> None:
        worker, job, change = await started(), ended(Counted()), ended(Counted())
        await worker.run_cached("status", job, 60.0)
        assert (await worker.run_change(change)).body == b"1"
        assert (await worker.run_change(change)).body == b"2"
        assert (await worker.run_cached("status", job, 60.0)).body == b"2"
        await worker.stop()

    asyncio.run(steer())


def test_an_answer_that_a_change_overtook_is_not_kept() -> None:
    """A slow question may have looked before the change."""

    async def steer() -> None:
        worker, job = await started(), Counted()
        asking = asyncio.ensure_future(worker.run_cached("plds", job, 60.0))
        await asyncio.sleep(0)
        worker.clear_cache()  # as after a change in the other thread
        job.may_end.set()
        assert (await asking).body == b"1"
        assert (await worker.run_cached("plds", job, 60.0)).body == b"2"
        await worker.stop()

    asyncio.run(steer())


def test_what_a_thread_keeps_open_is_closed_there_when_it_ends() -> None:
    """After the last job, in the same thread."""

    async def serve() -> None:
        ended_in: list[int] = []

        @contextmanager
        def open_here() -> Iterator[None]:
            yield
            ended_in.append(threading.get_ident())

        worker, job = JobThread("test", open_here()), ended(Counted())
        worker.start()
        await worker.run_cached("status", job, 0.0)
        assert ended_in == []
        await worker.stop()
        assert set(ended_in) == job.threads

    asyncio.run(serve())


def test_too_many_questions_are_refused_and_those_that_wait_at_the_end_too() -> None:
    """One that hangs delays the end by its bound only."""

    async def flood() -> None:
        worker, job = await started(), Counted()
        asking = [asyncio.ensure_future(worker.run_cached(n, job, 0.0)) for n in range(JOBS_MAX)]
        await asyncio.sleep(0)
        assert await worker.run_cached("more", job, 0.0) == BUSY
        assert await worker.run_change(job) == BUSY
        stopping = asyncio.ensure_future(worker.stop())
        await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        job.may_end.set()
        await stopping
        answers = [await each for each in asking]
        assert answers.count(OVER) >= JOBS_MAX - 1
        assert job.runs <= 1

    asyncio.run(flood())
