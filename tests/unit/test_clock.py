"""Patience with others ends in time, and no standstill of this process is taken for their silence."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bigcrawl.clock import PATIENCE_TICKS, ManualClock, Patience
from tests.support.running.stepped_time import SteppedLoop, run_stepped
from tests.support.running.tables import each

if TYPE_CHECKING:
    from collections.abc import Coroutine

SECONDS = 2.0
TICK_MS = round(1000 * SECONDS / PATIENCE_TICKS)


def run(work: Coroutine[None, None, None]) -> int:
    """Run it in a time of its own; how many ms it took."""
    clock = ManualClock()
    run_stepped(clock, work)
    return clock.monotonic_ms()


async def wait_for(answer_s: float) -> None:
    async with Patience(SECONDS):
        await asyncio.sleep(answer_s)


def test_patience_ends() -> None:
    """With the error of `asyncio.timeout`, when its time is over."""

    async def work() -> None:
        with pytest.raises(TimeoutError):
            await wait_for(60)

    assert run(work()) == 1000 * SECONDS


def test_answer_ends_the_wait() -> None:
    """Nothing of it is left that could cut anything off later."""

    async def work() -> None:
        await wait_for(SECONDS - 0.1)
        await asyncio.sleep(60)

    assert run(work()) == round(1000 * (SECONDS - 0.1)) + 60_000


@each("turns", range(1, 40))
def test_what_comes_during_a_standstill_is_an_answer(turns: int) -> None:
    """Wherever the loop stands still for longer than the patience, it has time to do what was to be done meanwhile."""

    async def work() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SteppedLoop)
        loop.stand_still(turns, round(5000 * SECONDS))
        async with Patience(SECONDS):
            for _ in range(20):
                await asyncio.sleep(0.01)

    run(work())


def test_standstills_cannot_hold_off_the_end() -> None:
    """Each of them costs a tick: as many of them as there are ticks, and the patience is over."""

    async def work() -> None:
        loop = asyncio.get_running_loop()

        def work_too_long() -> None:
            clock.advance(10 * TICK_MS)
            loop.call_soon(work_too_long)

        loop.call_soon(work_too_long)
        with pytest.raises(TimeoutError):
            await wait_for(3600)

    clock = ManualClock()
    run_stepped(clock, work())
    assert clock.monotonic_ms() <= 1000 * SECONDS + 30 * PATIENCE_TICKS * TICK_MS
