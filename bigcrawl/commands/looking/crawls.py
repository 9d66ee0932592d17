from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bigcrawl.clock import time_text
from bigcrawl.commands.result import Result, table_lines
from bigcrawl.views.activity.crawls import crawls_of
from bigcrawl.views.activity.jobs import read_jobs
from bigcrawl.views.opened_crawl import in_crawl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from bigcrawl.config import Config

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
