"""The crawl's history in steps of equal length: growth per second, and levels at each end."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from bigcrawl.views.history import HistoryStep, growth_of_column, steps_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TEN_MINUTES_S: Final = 600.0
STEPS_MIN: Final = 36
"""The least number of steps: crawls shorter than six hours have shorter steps."""

STEPS_MAX: Final = 600
SHORTEST_S: Final = 10.0

BREAK_S: Final = 25.0
"""Samples of the last hour are ten seconds apart; one may be missing."""

BREAK_TIMES: Final = 1.8
"""Older samples are about as far apart as those around them."""


def step_s_of(span_s: float) -> float:
    """Return the length of a step: ten minutes if that makes `STEPS_MIN` to `STEPS_MAX` steps."""
    return max(SHORTEST_S, min(TEN_MINUTES_S, span_s / STEPS_MIN), span_s / STEPS_MAX)


def steps_with_breaks(columns: Mapping[str, Sequence[float | None]], length_s: float) -> list[HistoryStep]:
    """Divide the history into steps of about this length; a time between samples in which nothing ran is one step.

    A node that dies takes no sample any more, so only the time until the next one shows that none ran.
    """
    times = [time_s or 0.0 for time_s in columns["time_s"]]
    found: list[HistoryStep] = []
    for first, end in pairwise([0, *_breaks(times), len(times)]):
        if first:
            found.append(HistoryStep(first - 1, first, times[first - 1], times[first], is_stopped=True))
        part = {name: columns[name][first:end] for name in ("time_s", "nodes")}
        found += [
            step._replace(first=step.first + first, last=step.last + first)
            for step in (steps_of(part, length_s) if end > first else [])
        ]
    return found


def _breaks(times: Sequence[float]) -> list[int]:
    """Return the samples whose distance to the previous one is much longer than the distances around it."""
    apart = [after - before for before, after in pairwise(times)]
    return [
        at + 1
        for at, seconds in enumerate(apart)
        if seconds
        > max(BREAK_S, BREAK_TIMES * max([*apart[max(0, at - 1) : at], *apart[at + 1 : at + 2]], default=0.0))
    ]


class HistoryRates:
    """A crawl's history in steps of about `step_s`; old samples may be farther apart."""

    def __init__(self, columns: Mapping[str, Sequence[float | None]]) -> None:
        self._columns = columns
        times = [time_s or 0.0 for time_s in columns["time_s"]]
        self.step_s = step_s_of(times[-1] - times[0]) if times else SHORTEST_S
        self.steps = steps_with_breaks(columns, self.step_s)

    def __repr__(self) -> str:
        return f"<HistoryRates steps={len(self.steps)} of {self.step_s:g} s>"

    @property
    def ends_s(self) -> list[float]:
        return [step.to_s for step in self.steps]

    @property
    def stops(self) -> list[tuple[float, float]]:
        """The periods in which no node ran."""
        return [(step.from_s, step.to_s) for step in self.steps if step.is_stopped]

    @property
    def active_s(self) -> float:
        """The total seconds of all steps in which nodes ran."""
        return sum(step.to_s - step.from_s for step in self.steps if not step.is_stopped)

    def growth_per_step(self, name: str) -> list[float | None]:
        """Return the growth of a column in each step; None if no node ran, or the counter is missing or lost."""
        column = self._columns.get(name)
        return [None if column is None or step.is_stopped else growth_of_column(column, step) for step in self.steps]

    def a_second(self, name: str, scale: float = 1.0) -> list[float | None]:
        """Return the growth of a column per second in each step, divided by `scale`."""
        return [
            None if grown is None else round(grown / (step.to_s - step.from_s) / scale, 4)
            for grown, step in zip(self.growth_per_step(name), self.steps, strict=True)
        ]

    def level_per_step(self, name: str) -> list[float | None]:
        """Return a column at the end of each step; None where no node ran."""
        return [None if step.is_stopped else self._columns[name][step.last] for step in self.steps]
