"""The course of a crawl since its start, as rates over time."""

from __future__ import annotations

from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.scheduler.crawl.history import TIME_S, read_history

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bigcrawl.views.opened_crawl import OpenedCrawl

RATES: Final = {"pages": "pages", "errors": "errors", "dropped": "dropped", "seen": "new", "bytes": "bytes"}

LEVELS: Final = ("pages", "urls_disk", "urls_queued", "hosts_ready", "nodes")


async def history_of(crawl: OpenedCrawl) -> dict[str, list[float | None]]:
    return await read_history(crawl.client, crawl.config.crawl.name)


def last_of(columns: Mapping[str, Sequence[float | None]], span_s: float) -> dict[str, list[float | None]]:
    times = [time_s or 0.0 for time_s in columns[TIME_S]]
    first = next((at for at, time_s in enumerate(times) if time_s >= times[-1] - span_s), 0)
    return {name: list(values[first:]) for name, values in columns.items()}


def rates_of(columns: Mapping[str, Sequence[float | None]], rows: int) -> list[dict[str, Any]]:
    """Divide the time into at most `rows` rows of about the same length.

    Returns:
        Rows with `from_s` and `to_s`, Unix seconds; `rates` per second, by the names in `RATES`; `levels` at `to_s`;
        and `is_stopped`, whether no node ran. None stands for a missing sample.
    """
    times = [time_s or 0.0 for time_s in columns[TIME_S]]
    if len(times) < 2:
        return []
    length_s = max((times[-1] - times[0]) / rows, 0.001)
    ends = {ceil((time_s - times[0]) / length_s - 0.001): at for at, time_s in enumerate(times)}  # last of each row
    ats = sorted({0, *ends.values()})
    return [_row(columns, times, first, last) for first, last in pairwise(ats)]


def _row(
    columns: Mapping[str, Sequence[float | None]], times: Sequence[float], first: int, last: int
) -> dict[str, Any]:
    def rate(name: str) -> float | None:
        before, after = columns[name][first], columns[name][last]
        span_s = times[last] - times[first]
        return None if before is None or after is None or not span_s else (after - before) / span_s

    return {
        "from_s": times[first],
        "to_s": times[last],
        "rates": {shown: rate(name) for name, shown in RATES.items()},
        "levels": {name: columns[name][last] for name in LEVELS},
        "is_stopped": not any(columns["nodes"][first:last]),
    }
