"""Recent activity of all nodes, the crawl's history, and other crawls and jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bigcrawl.clock import time_text
from bigcrawl.commands.result import BOLD, YELLOW, Result, painted, table_lines, wrapped_lines
from bigcrawl.views.activity.events import events_of
from bigcrawl.views.activity.jobs import crawls_of, read_jobs
from bigcrawl.views.activity.recent import recent_now
from bigcrawl.views.history import history_of, last_of, rates_of
from bigcrawl.views.opened_crawl import in_crawl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from bigcrawl.config import Config

SHOWN: Final = 20
INDENT: Final = 10
_PARTS: Final = {"log": "warnings and errors", "fetches": "last fetches", "items": "last items, some of them"}


def recent(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show the last fetches, items, warnings and errors of all nodes."""
    found = in_crawl(config, recent_now)
    return Result(found, recent_text(found), paint=_painted)


def recent_text(found: dict[str, Any]) -> str:
    lines: list[str] = []
    for part, title in _PARTS.items():
        rows = found[part][:SHOWN]
        lines += [title, *(line for row in rows for line in wrapped_lines(_line(row), INDENT))]
        lines += [] if rows else ["  none"]
    return "\n".join(lines)


def _line(row: dict[str, Any]) -> str:
    at = time_text(round(row["at"] * 1000))[11:19]
    if "level" in row:
        count = f" ({row['count']:,} times)" if row["count"] > 1 else ""
        return f"{at}  {row['level'].lower()}: {row['text']}{count}"
    if "url" in row:
        outcome = row["status"] if row["status"] is not None else row["outcome"]
        return f"{at}  {outcome}  {row['ms']:,} ms  {row['bytes']:,} bytes  {row['url']}"
    return f"{at}  {row['text']}"


def _painted(text: str) -> str:
    def line(each: str) -> str:
        if each in _PARTS.values():
            return painted(each, BOLD)
        return painted(each, YELLOW) if each[INDENT:].startswith(("error:", "critical:")) else each

    return "\n".join(map(line, text.split("\n")))


_EVENT_INDENT: Final = 34


def events(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show the crawl's events, the last first: nodes that came and went, orders, Redis outages, start and end."""
    found = in_crawl(config, events_of)
    lines = [
        line
        for event in found["events"]
        for line in wrapped_lines(
            f"{time_text(round(event['at'] * 1000))}  {event['kind']:<12}{event['text']}", _EVENT_INDENT
        )
    ]
    return Result(found, "\n".join(lines) or "nothing has happened yet")


STEPS_SHOWN: Final = 20
STEPS_MAX: Final = 2_000
_STEPS: Final = {
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


def history_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--rows", type=int, default=STEPS_SHOWN, metavar="N", help=f"how many rows at most; {STEPS_SHOWN} by default")
    add("--hours", type=float, default=0.0, metavar="H", help="only the last H hours; all by default")


def history(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show the crawl over time: pages, errors and new URLs per second, and waiting URLs."""
    columns = in_crawl(config, history_of)
    columns = last_of(columns, opts.hours * 3600) if opts.hours > 0 else columns
    return Result(columns, history_text(rates_of(columns, min(max(1, opts.rows), STEPS_MAX))))


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
    return "\n".join(table_lines(_STEPS, cells))


def _number_text(number: float | None, digits: int = 0) -> str:
    return "" if number is None else f"{number:,.{digits}f}"


def _sum(*numbers: float | None) -> float | None:
    return None if None in numbers else sum(number or 0 for number in numbers)


def _in_millions(number: float | None) -> float | None:
    return None if number is None else number / 1e6


_CRAWLS: Final = {"crawl": -20, "spider": -14, "state": -9, "nodes": 5, "pages": 11, "waiting": 11}
_JOBS: Final = {"project": -13, "spider": -15, "state": -9, "start": -21, "end": -21}


def crawls(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """List the crawls that the Redis of this one knows."""
    found = in_crawl(config, crawls_of)
    return Result(found, _table(_CRAWLS, found["crawls"]))


def jobs(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """List the jobs of a scrapyd; the exit status is 1 if it does not answer."""
    found = read_jobs(config)
    return Result(found, jobs_text(found), 1 if found["error"] else 0)


def jobs_text(found: dict[str, Any]) -> str:
    if found["scrapyd"] is None:
        return "no scrapyd is known: see BIGCRAWL_DASHBOARD_SCRAPYD"
    return str(found["error"] or _table(_JOBS, found["jobs"]))


def _table(widths: Mapping[str, int], rows: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(table_lines(widths, ([_cell(row[name], width) for name, width in widths.items()] for row in rows)))


def _cell(value: Any, width: int) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    text = time_text(round(value * 1000)) if isinstance(value, float) else str(value or "")
    return text[: abs(width) - 1]
