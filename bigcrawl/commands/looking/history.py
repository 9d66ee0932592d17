"""`scrapy frontier history`: how the crawl went since its start, as rates over time."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.commands.looking.explain import time_text
from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.scheduler.crawl.history import TIME_S, read_history

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from bigcrawl.config import Config

ROWS: Final = 20
ROWS_MAX: Final = 2_000
RATES: Final = {"pages": "pages", "errors": "errors", "dropped": "dropped", "seen": "new", "bytes": "bytes"}
"""The columns whose growth a second is shown, and what it is called."""

LEVELS: Final = ("pages", "urls_disk", "urls_queued", "hosts_ready", "nodes")
"""The columns that are shown as they are at the end of a row's time."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose rows."""
    add = parser.add_argument
    add("--rows", type=int, default=ROWS, metavar="N", help=f"how many rows at most; {ROWS} by default")
    add("--hours", type=float, default=0.0, metavar="H", help="only the last H hours; all by default")


def history(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show how the crawl went: pages, errors and new URLs a second, and what waited, by time.

    Raises:
        ConfigError: there is no such crawl.
        TransientStoreError: Redis does not answer.
    """
    with server_of(config) as server:
        columns = asyncio.run(_read(config, server))
    columns = last_of(columns, opts.hours * 3600) if opts.hours > 0 else columns
    return Result(columns, history_text(rates_of(columns, min(max(1, opts.rows), ROWS_MAX))))


async def _read(config: Config, server: str) -> dict[str, list[float | None]]:
    async with opened(config, server) as crawl:
        return await read_history(crawl.client, config.crawl.name)


def last_of(columns: Mapping[str, Sequence[float | None]], span_s: float) -> dict[str, list[float | None]]:
    """Return the samples of the last `span_s` seconds before the newest one."""
    times = [time_s or 0.0 for time_s in columns[TIME_S]]
    first = next((at for at, time_s in enumerate(times) if time_s >= times[-1] - span_s), 0)
    return {name: list(values[first:]) for name, values in columns.items()}


def rates_of(columns: Mapping[str, Sequence[float | None]], rows: int) -> list[dict[str, Any]]:
    """Divide the time into at most so many rows of about the same length, each from one sample to a later one.

    Returns:
        Rows with `from_s` and `to_s`, Unix seconds; `rates`, a second, by the names in `RATES`; `levels` at `to_s`, by
        the names in `LEVELS`; and `is_stopped`, whether no node ran. None stands for what was not sampled.
    """
    times = [time_s or 0.0 for time_s in columns[TIME_S]]
    if len(times) < 2:
        return []
    length_s = max((times[-1] - times[0]) / rows, 0.001)
    ends = {ceil((time_s - times[0]) / length_s - 0.001): at for at, time_s in enumerate(times)}  # the last of each row
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


def history_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a table."""
    if not rows:
        return "there is no history yet: it begins with the first node, and has a sample every ten seconds"
    head = (
        f"{'until':<21}{'pages/s':>10}{'errors/s':>10}{'dropped/s':>11}{'new/s':>10}{'MB/s':>10}"
        f"{'pages':>13}{'waiting':>14}{'ready':>9}{'nodes':>7}"
    )
    lines = [head]
    for row in rows:
        if row["is_stopped"]:
            lines.append(f"{time_text(int(row['to_s'] * 1000)):<21}  no node ran")
            continue
        rates, levels = row["rates"], row["levels"]
        waiting = _sum(levels["urls_disk"], levels["urls_queued"])
        lines.append(
            f"{time_text(int(row['to_s'] * 1000)):<21}{_text(rates['pages'], 10, 1)}{_text(rates['errors'], 10, 1)}"
            f"{_text(rates['dropped'], 11, 1)}{_text(rates['new'], 10, 1)}{_text(_scaled(rates['bytes']), 10, 2)}"
            f"{_text(levels['pages'], 13)}{_text(waiting, 14)}{_text(levels['hosts_ready'], 9)}"
            f"{_text(levels['nodes'], 7)}"
        )
    return "\n".join(lines)


def _text(number: float | None, width: int, digits: int = 0) -> str:
    return f"{'' if number is None else f'{number:,.{digits}f}':>{width}}"


def _sum(*numbers: float | None) -> float | None:
    return None if None in numbers else sum(number or 0 for number in numbers)


def _scaled(number: float | None) -> float | None:
    return None if number is None else number / 1e6
