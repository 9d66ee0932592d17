"""The clock of the logs."""

from __future__ import annotations

import time
from typing import Final

# Taken before any fork, so that all writers of a log share one clock.
_OFFSET_NS: Final = time.time_ns() - time.monotonic_ns()


def now_ms() -> int:
    """Return ms since the epoch, from a clock that does not jump when the machine's is set."""
    return (time.monotonic_ns() + _OFFSET_NS) // 1_000_000
