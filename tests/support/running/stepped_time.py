"""An event loop whose time is a test's clock: it passes only when nothing runs and nothing outside is waited for.

Sleeps, timers and timeouts all go by it. So a test may run a node's own loops side by side, and what it finds out about
times does not depend on how busy the machine is. What lies outside, Redis and threads, takes as long as the test says.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from bigcrawl.redisdb.client import RedisClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from bigcrawl.clock import ManualClock

T = TypeVar("T")

HANG_S = 300.0  # of the machine's clock; nothing outside takes so long on any machine


class _SteppedSelector(selectors.DefaultSelector):
    """Moves the clock to the next timer instead of waiting for it."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock
        self._left = 0  # turns of the loop before it stands still
        self._standstill_ms = 0
        self.under_way = 0  # waits for what lies outside; no time passes meanwhile

    def stand_still(self, turns: int, ms: int) -> None:
        """Let time pass while nothing runs, after so many turns of the loop."""
        self._left, self._standstill_ms = turns, ms

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready, as any selector."""
        self._left -= 1
        if not self._left:
            self._clock.advance(self._standstill_ms)
        if self.under_way and timeout != 0:
            ready = super().select(HANG_S)
            assert ready, "what the test waits for does not come"
            return ready
        ready = super().select(0)
        if not ready and timeout != 0:
            assert timeout is not None, "nothing will ever happen again"
            self._clock.advance(math.ceil(1000 * timeout))
        return ready


class SteppedLoop(asyncio.SelectorEventLoop):
    """Goes by a test's clock.

    Args:
        clock: the test's.
        delay_ms: how long a message from or to Redis or a thread is under way: asked anew for each of them.
    """

    def __init__(self, clock: ManualClock, delay_ms: Callable[[], int] = lambda: 0) -> None:
        self._stepped = _SteppedSelector(clock)
        self._stepped_clock = clock
        self._delay_ms = delay_ms
        self.stand_still = self._stepped.stand_still
        super().__init__(self._stepped)

    def time(self) -> float:
        """Seconds of the test's clock."""
        return self._stepped_clock.monotonic_ms() / 1000

    @asynccontextmanager
    async def outside(self) -> AsyncIterator[None]:
        """Wait for something outside of the loop."""
        await asyncio.sleep(self._delay_ms() / 1000)
        self._stepped.under_way += 1
        try:
            yield
        finally:
            self._stepped.under_way -= 1
        await asyncio.sleep(self._delay_ms() / 1000)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """As any loop does it."""
        in_thread = super().run_in_executor

        async def work() -> Any:
            async with self.outside():
                return await in_thread(executor, func, *args)

        return self.create_task(work())

    async def shutdown_default_executor(self, *args: Any) -> None:
        """As any loop does it."""
        self._stepped.under_way += 1
        await super().shutdown_default_executor(*args)


def run_stepped(clock: ManualClock, work: Coroutine[Any, Any, T], delay_ms: Callable[[], int] = lambda: 0) -> T:
    """Run a coroutine, as `asyncio.run` does, by a test's clock."""
    watched = RedisClient._translating_errors

    @asynccontextmanager
    async def outside(client: RedisClient) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SteppedLoop)
        async with loop.outside(), watched(client):
            yield

    with (
        asyncio.Runner(loop_factory=lambda: SteppedLoop(clock, delay_ms)) as runner,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(RedisClient, "_translating_errors", outside)
        return runner.run(work)
