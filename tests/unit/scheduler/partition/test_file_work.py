"""The thread that works on files, and those that help it to sync."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.exceptions import TransientStoreError
from bigcrawl.scheduler.partition.file_work import SYNCS_AT_ONCE, FileThread

PATIENCE_MS = 1_000
LONG_S = 60.0  # reached by a hang alone


def made() -> tuple[FileThread, ManualClock]:
    clock = ManualClock()
    return FileThread(clock, PATIENCE_MS, may_rest=lambda: False), clock


def test_several_syncs_are_under_way_at_a_time_and_each_has_its_result() -> None:
    """The error of one is its result."""
    thread, _ = made()
    meeting = threading.Barrier(SYNCS_AT_ONCE)
    error = TransientStoreError("the disk failed")

    def work(number: int) -> int:
        meeting.wait(LONG_S)
        if number == 1:
            raise error
        return number

    results = asyncio.run(thread.run_together([partial(work, number) for number in range(SYNCS_AT_ONCE)]))
    assert results == [0, error, *range(2, SYNCS_AT_ONCE)]
    thread.close(wait=True)


def test_no_sync_goes_on_behind_an_error_that_nobody_expects() -> None:
    thread, _ = made()
    has_failed, ended = threading.Event(), []

    def fail() -> None:
        has_failed.set()
        raise ZeroDivisionError

    def end_later() -> None:
        assert has_failed.wait(LONG_S)
        ended.append(True)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(thread.run_together([fail, end_later]))
    assert ended
    assert not thread.work.stands_still
    thread.close(wait=True)


def test_the_progress_of_each_helper_counts() -> None:
    """The disk answers as long as one of them comes on."""
    thread, clock = made()
    found: list[bool] = []

    def work() -> None:
        clock.advance(PATIENCE_MS)
        found.append(thread.work.stands_still)
        thread.work.record_sign()
        found.append(thread.work.stands_still)

    asyncio.run(thread.run_together([work]))
    thread.work.record_sign()  # of a thread that does no part of it
    clock.advance(PATIENCE_MS)
    assert found == [True, False]
    assert not thread.work.stands_still
    thread.close(wait=True)
