"""The crawl's history in steps of equal length: growth a second, and levels at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.views.history import growth_of_column, steps_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TEN_MINUTES_S: Final = 600.0
STEPS_MIN: Final = 36
"""The least number of steps: crawls shorter than six hours have shorter steps."""

STEPS_MAX: Final = 600
SHORTEST_S: Final = 10.0


def step_s_of(span_s: float) -> float:
    """Return the length of a step: ten minutes if that makes `STEPS_MIN` to `STEPS_MAX` steps."""
    return max(SHORTEST_S, min(TEN_MINUTES_S, span_s / STEPS_MIN), span_s / STEPS_MAX)


class HistoryRates:
    """A crawl's history in steps of about `step_s`; old samples may be farther apart."""

    def __init__(self, columns: Mapping[str, Sequence[float | None]]) -> None:
        self._columns = columns
        times = [time_s or 0.0 for time_s in columns["time_s"]]
        self.step_s = step_s_of(times[-1] - times[0]) if times else SHORTEST_S
        self.steps = steps_of(columns, self.step_s)

    def __repr__(self) -> str:
        return f"<HistoryRates steps={len(self.steps)} of {self.step_s:g} s>"

    @property
    def ends_s(self) -> list[float]:
        return [step.to_s for step in self.steps]

    @property
    def active_s(self) -> float:
        """Seconds in all steps in which nodes ran."""
        return sum(step.to_s - step.from_s for step in self.steps if not step.is_stopped)

    def growth_per_step(self, name: str) -> list[float | None]:
        """Return the growth of a column in each step; None if no node ran, or the counter was lost."""
        return [None if step.is_stopped else growth_of_column(self._columns[name], step) for step in self.steps]

    def a_second(self, name: str, scale: float = 1.0) -> list[float | None]:
        """Return the growth of a column per second in each step, divided by `scale`."""
        return [
            None if grown is None else round(grown / (step.to_s - step.from_s) / scale, 4)
            for grown, step in zip(self.growth_per_step(name), self.steps, strict=True)
        ]

    def level_per_step(self, name: str) -> list[float | None]:
        """Return a column at the end of each step; None where no node ran."""
        return [None if step.is_stopped else self._columns[name][step.last] for step in self.steps]
