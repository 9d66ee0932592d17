from __future__ import annotations

from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.scheduler.crawl.history import TIME_S, read_history

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bigcrawl.views.opened_crawl import OpenedCrawl

RATES: Final = {
    "pages": "pages",
    "items": "items",
    "errors": "errors",
    "dropped": "dropped",
    "seen": "new",
    "bytes": "bytes",
}

LEVELS: Final = ("pages", "urls_disk", "urls_queued", "hosts_ready", "nodes")


async def history_of(crawl: OpenedCrawl) -> dict[str, list[float | None]]:
    return await read_history(crawl.client, crawl.config.crawl.name)


def last_of(columns: Mapping[str, Sequence[float | None]], span_s: float) -> dict[str, list[float | None]]:
    times = [time_s or 0.0 for time_s in columns[TIME_S]]
    first = next((at for at, time_s in enumerate(times) if time_s >= times[-1] - span_s), 0)
    return {name: list(values[first:]) for name, values in columns.items()}


class HistoryStep(NamedTuple):
    """The time between two samples, given by their indexes in the columns; `is_stopped` if no node ran."""

    first: int
    last: int
    from_s: float
    to_s: float
    is_stopped: bool


def steps_of(columns: Mapping[str, Sequence[float | None]], length_s: float) -> list[HistoryStep]:
    """Divide the history into steps of about this length; where samples are old, steps may be longer."""
    times = [time_s or 0.0 for time_s in columns[TIME_S]]
    ends = {ceil((time_s - times[0]) / length_s - 0.001): at for at, time_s in enumerate(times)}  # last of each step
    return [
        HistoryStep(first, last, times[first], times[last], not any(columns["nodes"][first:last]))
        for first, last in pairwise(sorted({0, *ends.values()}))
        if times[last] > times[first]
    ]


def growth_of_column(values: Sequence[float | None], step: HistoryStep) -> float | None:
    """Return by how much a column grew in a step; None if a sample is missing, or the counter was lost."""
    before, after = values[step.first], values[step.last]
    return None if before is None or after is None or after < before else after - before


def rates_of(columns: Mapping[str, Sequence[float | None]], rows: int) -> list[dict[str, Any]]:
    """Divide the history into at most `rows` rows for equal lengths of time, or nearly so.

    Returns:
        Rows with `from_s` and `to_s`, Unix seconds; `rates` per second, by the names in `RATES`; `levels` at `to_s`;
        and `is_stopped`. None stands for a missing sample.
    """
    times = [time_s or 0.0 for time_s in columns[TIME_S]]
    span_s = times[-1] - times[0] if times else 0.0
    return [_row_of_step(columns, step) for step in steps_of(columns, max(span_s / rows, 0.001))]


def _row_of_step(columns: Mapping[str, Sequence[float | None]], step: HistoryStep) -> dict[str, Any]:
    def rate(name: str) -> float | None:
        grown = growth_of_column(columns[name], step)
        return None if grown is None else grown / (step.to_s - step.from_s)

    return {
        "from_s": step.from_s,
        "to_s": step.to_s,
        "rates": {shown: rate(name) for name, shown in RATES.items()},
        "levels": {name: columns[name][step.last] for name in LEVELS},
        "is_stopped": step.is_stopped,
    }
