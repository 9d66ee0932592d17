"""The clock of the simulated web's logs."""

from __future__ import annotations

import time
from typing import Final

# Taken once, before any process is forked: all that write to one log have the same clock.
_OFFSET_NS: Final = time.time_ns() - time.monotonic_ns()


def now_ms() -> int:
    """Ms since the epoch, by a clock that does not jump when the machine's is set: gaps must stay true."""
    return (time.monotonic_ns() + _OFFSET_NS) // 1_000_000
