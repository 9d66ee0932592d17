from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bigcrawl.commands.result import Result, table_lines
from bigcrawl.views.hosts import ORDERS, STATES, WALKED_MAX, HostQuery, list_hosts
from bigcrawl.views.opened_crawl import in_crawl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config

LIMIT: Final = 30
LIMIT_MAX: Final = 10_000
WIDTHS: Final = {"  state": -10, "due in s": 10, "queued": 10, "taken": 7, "rest s": 10, "  failures": -10}


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--state", choices=STATES, default="", help="only hosts in this state")
    add("--sort", choices=ORDERS, default="due", help="due first, most URLs waiting, most failures, or shortest rest")
    add("--limit", type=int, default=LIMIT, metavar="N", help=f"how many; {LIMIT} by default")
    add("--first", type=int, default=0, metavar="N", help="leave out the first N, for the next page")


def hosts(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """List hosts: all, those of a host or PLD and below, or those that match a pattern with * and ?."""
    limit, first = min(max(1, opts.limit), LIMIT_MAX), min(max(0, opts.first), WALKED_MAX)
    wanted = HostQuery(words[0].lower() if words else "", opts.state, opts.sort, first, limit)
    data = in_crawl(config, list_hosts, wanted)
    return Result(data, hosts_text(data))


def hosts_text(data: dict[str, Any]) -> str:
    if not data["hosts"]:
        lines = ["no host in Redis matches; `scrapy frontier status` counts all"]
    else:
        width = max(20, *(len(row["host"]) for row in data["hosts"]))
        lines = table_lines({"host": -width, **WIDTHS}, map(_host_cells, data["hosts"]))
    if not data["is_whole"]:
        lines.append("there are more hosts, which were not examined")
    return "\n".join(lines)


def _host_cells(row: dict[str, Any]) -> tuple[str, ...]:
    due = "" if row["due_in_s"] is None else f"{row['due_in_s']:,.1f}"
    failed = f"{row['failures']:,} {row['why']}" if row["failures"] else ""
    numbers = (due, f"{row['queued']:,}", str(row["taken"]), f"{row['rest_s']:,.1f}")
    return row["host"], f"  {row['state']}", *numbers, f"  {failed}"
