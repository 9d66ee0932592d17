"""Time as integer milliseconds, from an object that tests can replace; and timeouts that survive a standstill."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from types import TracebackType

PATIENCE_TICKS: Final = 8
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Return an identifier of the running kernel since its boot; empty if there is none."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def time_text(time_ms: int, between: str = " ") -> str:
    """Return a time in UTC to the second, in ISO 8601 with `between` as separator."""
    return datetime.fromtimestamp(time_ms // 1000, UTC).isoformat(sep=between).replace("+00:00", "Z")


def length_text(seconds: float, digits: int = 0) -> str:
    """Return a duration as text, in the largest unit of which it has at least two."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.{digits}f} {unit}"
    return f"{seconds:,.0f} s"


class Clock(Protocol):
    def now_ms(self) -> int:
        """Return milliseconds since the Unix epoch; jumps when the machine's clock is set."""

    def monotonic_ms(self) -> int:
        """Return milliseconds of the boot clock, which never goes back and runs while the machine sleeps."""

    def monotonic_us(self) -> int: ...


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000

    def monotonic_us(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000


class ManualClock:
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
    """An `asyncio.timeout` that counts ticks of the event loop, and so survives a standstill of the process or machine.

    After a standstill `asyncio.timeout` expires before the answers that arrived meanwhile are read. Here it costs one
    tick, an eighth of the time. Raises TimeoutError at the end of the block.
    """

    def __init__(self, seconds: float) -> None:
        self._tick_s = seconds / PATIENCE_TICKS
        self._left = PATIENCE_TICKS
        self._timeout = asyncio.timeout(None)

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
