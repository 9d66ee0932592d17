"""Time as integer milliseconds, from an object that tests can replace; and patience, which no standstill ends."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from types import TracebackType

PATIENCE_TICKS: Final = 8
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Return what names the kernel that runs here, and since when; empty if it has no name.

    A lock that another process of the same kernel holds is seen for certain. Containers of a machine share a kernel.
    """
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


class Clock(Protocol):
    """A source of time."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch; jumps when the machine's clock is set."""

    def monotonic_ms(self) -> int:
        """Milliseconds of the boot clock, which never goes back and runs while the machine sleeps."""

    def monotonic_us(self) -> int:
        """Microseconds of the same clock."""


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000

    def monotonic_us(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000


class ManualClock:
    """A clock that moves only when set, for tests."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = 0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def monotonic_us(self) -> int:
        return 1_000 * self._monotonic_ms

    def advance(self, ms: int) -> None:
        self._now_ms += ms
        self._monotonic_ms += ms


class Patience:
    """An `asyncio.timeout` for answers of others, which counts by its event loop's ticks.

    While a process or its machine stands still, answers come that nobody reads. Afterwards `asyncio.timeout` finds its
    time over and throws them away. Here each eighth of the time counts once, however late it ends. So a standstill
    costs an eighth of the patience, and the loop has the others to read what has come.

    Raises:
        TimeoutError: at the end of the block, if that was cut off.
    """

    def __init__(self, seconds: float) -> None:
        self._tick_s = seconds / PATIENCE_TICKS
        self._left = PATIENCE_TICKS
        self._timeout = asyncio.timeout(None)

    def __repr__(self) -> str:
        return f"<Patience left={self._left * self._tick_s:g} s>"

    async def __aenter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._timeout.__aenter__()
        self._timer = self._loop.call_later(self._tick_s, self._end_tick)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._timer.cancel()
        await self._timeout.__aexit__(kind, error, traceback)

    def _end_tick(self) -> None:
        self._left -= 1
        if self._left:
            self._timer = self._loop.call_later(self._tick_s, self._end_tick)
        else:
            self._timeout.reschedule(self._loop.time())
