from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bigcrawl.clock import time_text
from bigcrawl.commands.result import BOLD, YELLOW, Result, painted, wrapped_lines
from bigcrawl.views.activity.recent import recent_now
from bigcrawl.views.opened_crawl import in_crawl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

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
