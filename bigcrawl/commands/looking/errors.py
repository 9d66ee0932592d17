from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.commands.result import Result
from bigcrawl.views.errors import by_reason, read_errors
from bigcrawl.views.opened_crawl import in_crawl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config

LIMIT = 5


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--reason", metavar="TEXT", help="only reasons that contain this")
    add("--pld", metavar="PLD", help="only this pay-level domain")
    add("--limit", type=int, default=LIMIT, metavar="N", help=f"how many PLDs of each reason; {LIMIT} by default")


def errors(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show the most frequent failures, by reason and pay-level domain."""
    rows = in_crawl(config, read_errors)
    if opts.reason:
        rows = [row for row in rows if opts.reason in row["reason"]]
    if opts.pld:
        rows = [row for row in rows if row["pld"] == opts.pld]
    data = {"errors": by_reason(rows, max(1, opts.limit))}
    return Result(data, errors_text(data))


def errors_text(data: dict[str, Any]) -> str:
    lines = []
    for found in data["errors"]:
        some = "1 PLD" if found["plds"] == 1 else f"{found['plds']:,} PLDs"
        lines.append(f"{found['reason']:<28}{found['fetches']:>10,}  in {some}")
        lines += [f"  {row['pld']:<26}{row['fetches']:>10,}  {row['last']}  {row['example']}" for row in found["worst"]]
    return "\n".join(lines) or "nothing of this kind has failed"
