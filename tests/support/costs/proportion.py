"""Compares what an input costs with what another of its size costs through the same code, in the same process.

A busy machine slows both, so no bound is in seconds. They are measured in turns, and one turn within the bound is
enough: what grows with the square of its size is beyond it in all of them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

TURNS: Final = 8


def cpu_s(work: Callable[[], object]) -> float:
    """Return the seconds of CPU that work takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


def assert_costs(most: float, work: Callable[[], object], reference: Callable[[], object]) -> None:
    """Assert that work costs at most so many times what the reference costs."""
    ratios: list[float] = []
    for _ in range(TURNS):
        before_s, work_s = cpu_s(reference), cpu_s(work)
        ratios.append(work_s / max(before_s, cpu_s(reference)))
        if ratios[-1] <= most:
            return
    raise AssertionError(f"{min(ratios):.1f} times the reference, and not {most}, in the cheapest turn of {TURNS}")
