from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bigcrawl.commands.result import Result, table_lines
from bigcrawl.views.counted import NOTHING
from bigcrawl.views.newest_files import REMEDY
from bigcrawl.views.opened_crawl import in_crawl
from bigcrawl.views.plds import LISTED_MAX, ORDERS, list_plds

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config

LIMIT: Final = 30
WIDTHS: Final = {"pages": 12, "share": 8, "MB": 12, "in-degree": 11, "  budget, URLs a turn": -1}


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--sort", choices=ORDERS, default="pages", help="most pages first, or most bytes of those with most pages")
    add("--here", action="store_true", help="read no files of the store, where there are none here")
    add("--limit", type=int, default=LIMIT, metavar="N", help=f"how many, at most {LISTED_MAX}; {LIMIT} by default")


def plds(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """List the pay-level domains with the most pages, with bytes, in-degree and budget."""
    limit, asks_store = min(max(1, opts.limit), LISTED_MAX), not getattr(opts, "here", False)
    data = in_crawl(config, list_plds, opts.sort, limit, asks_store=asks_store)
    return Result(data, plds_text(data))


def plds_text(data: dict[str, Any]) -> str:
    if data["pages"] is None:
        lines = [NOTHING]
    elif not data["plds"]:
        lines = ["no page is counted yet; nodes send their counts every ten seconds"]
    else:
        width = max(20, *(len(row["pld"]) for row in data["plds"]))
        widths = {"PLD": -width, **WIDTHS}
        lines = table_lines(widths, (_pld_cells(row, data["pages"]) for row in data["plds"]))
    if data["from_store"]:
        lines.append(f"the store was asked for {data['from_store']:,} partitions, whose files are not here")
    if data["unread"]:
        lines.append(f"the files of {data['unread']:,} of these PLDs are not here, or none were committed; {REMEDY}")
    if data["unreadable"]:
        nodes = "1 node" if data["unreadable"] == 1 else f"{data['unreadable']:,} nodes"
        lines.append(f"the counts of {nodes} cannot be read by this version")
    return "\n".join(lines)


def _pld_cells(row: dict[str, Any], pages: int) -> tuple[str, ...]:
    in_degree = "" if row["in_degree"] is None else f"{row['in_degree']:,}"
    by = "" if row["budget_set_by"] in (None, "policy") else f" ({row['budget_set_by']})"
    budget = "none" if row["budget"] is None else f"{row['budget']:,}{by}"
    share, megabytes = f"{row['pages'] / pages:.1%}", f"{row['bytes'] / 1e6:,.1f}"
    return row["pld"], f"{row['pages']:,}", share, megabytes, in_degree, f"  {budget}"
