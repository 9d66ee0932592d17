from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bigcrawl.clock import time_text
from bigcrawl.commands.result import Result, table_lines
from bigcrawl.views.history import history_of, last_of, rates_of
from bigcrawl.views.opened_crawl import in_crawl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from bigcrawl.config import Config

ROWS: Final = 20
ROWS_MAX: Final = 2_000
WIDTHS: Final = {
    "until": -21,
    "pages/s": 10,
    "items/s": 10,
    "errors/s": 10,
    "dropped/s": 11,
    "new/s": 10,
    "MB/s": 10,
    "pages": 13,
    "waiting": 14,
    "ready": 9,
    "nodes": 7,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--rows", type=int, default=ROWS, metavar="N", help=f"how many rows at most; {ROWS} by default")
    add("--hours", type=float, default=0.0, metavar="H", help="only the last H hours; all by default")


def history(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show the course of the crawl: pages, errors and new URLs per second, and waiting URLs, by time."""
    columns = in_crawl(config, history_of)
    columns = last_of(columns, opts.hours * 3600) if opts.hours > 0 else columns
    return Result(columns, history_text(rates_of(columns, min(max(1, opts.rows), ROWS_MAX))))


def history_text(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "there is no history yet: it begins with the first node, and has a sample every ten seconds"
    cells: list[tuple[str, ...]] = []
    for row in rows:
        until = time_text(int(row["to_s"] * 1000))
        if row["is_stopped"]:
            cells.append((until, "  no node ran"))
            continue
        rates, levels = row["rates"], row["levels"]
        changing = (_number_text(rates[name], 1) for name in ("pages", "items", "errors", "dropped", "new"))
        waiting = _number_text(_sum(levels["urls_disk"], levels["urls_queued"]))
        numbers = (
            _number_text(levels["pages"]),
            waiting,
            _number_text(levels["hosts_ready"]),
            _number_text(levels["nodes"]),
        )
        cells.append((until, *changing, _number_text(_in_millions(rates["bytes"]), 2), *numbers))
    return "\n".join(table_lines(WIDTHS, cells))


def _number_text(number: float | None, digits: int = 0) -> str:
    return "" if number is None else f"{number:,.{digits}f}"


def _sum(*numbers: float | None) -> float | None:
    return None if None in numbers else sum(number or 0 for number in numbers)


def _in_millions(number: float | None) -> float | None:
    return None if number is None else number / 1e6
