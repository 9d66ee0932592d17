"""The crawl's history in steps of equal length: growth a second, and levels at the end."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Final

from bigcrawl.scheduler.crawl.history import TIME_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Columns = dict[str, list[float | None]]

TEN_MINUTES_S: Final = 600.0
STEPS_MIN: Final = 36
"""Crawls shorter than six hours have shorter steps, so that their plots have this many."""

STEPS_MAX: Final = 600
SHORTEST_S: Final = 10.0


def step_s_of(span_s: float) -> float:
    """Return the length of a step: ten minutes if that makes `STEPS_MIN` to `STEPS_MAX` steps."""
    return max(SHORTEST_S, min(TEN_MINUTES_S, span_s / STEPS_MIN), span_s / STEPS_MAX)


@dataclass(frozen=True, slots=True)
class SampleStep:
    """From one sample to a later one; `is_stopped`: no node ran."""

    first: int
    last: int
    from_s: float
    to_s: float
    is_stopped: bool


class Rates:
    """A crawl's history in steps of about `step_s`; old samples may be farther apart."""

    def __init__(self, columns: Mapping[str, Sequence[float | None]]) -> None:
        self._columns = columns
        times = [time_s or 0.0 for time_s in columns[TIME_S]]
        self.step_s = step_s_of(times[-1] - times[0]) if times else SHORTEST_S
        nodes = columns["nodes"]
        ends = {ceil((time_s - times[0]) / self.step_s - 0.001): at for at, time_s in enumerate(times)}
        bounds = sorted({0, *ends.values()})
        self.steps = [
            SampleStep(first, last, times[first], times[last], not any(nodes[first:last]))
            for first, last in pairwise(bounds)
            if times[last] > times[first]
        ]

    def __repr__(self) -> str:
        return f"<Rates steps={len(self.steps)} of {self.step_s:g} s>"

    @property
    def ends_s(self) -> list[float]:
        return [step.to_s for step in self.steps]

    @property
    def active_s(self) -> float:
        """Seconds in all steps in which nodes ran."""
        return sum(step.to_s - step.from_s for step in self.steps if not step.is_stopped)

    def grown(self, name: str) -> list[float | None]:
        """Return the growth of a column in each step; None if no node ran, or the counter was lost."""
        values = self._columns[name]
        grown: list[float | None] = []
        for step in self.steps:
            before, after = values[step.first], values[step.last]
            if before is None or after is None or after < before or step.is_stopped:
                grown.append(None)
            else:
                grown.append(after - before)
        return grown

    def a_second(self, name: str, scale: float = 1.0) -> list[float | None]:
        """Return the growth of a column per second in each step, divided by `scale`."""
        return [
            None if grown is None else round(grown / (step.to_s - step.from_s) / scale, 4)
            for grown, step in zip(self.grown(name), self.steps, strict=True)
        ]

    def levels(self, name: str) -> list[float | None]:
        """Return a column at the end of each step; None where no node ran."""
        return [None if step.is_stopped else self._columns[name][step.last] for step in self.steps]
