"""`scrapy frontier errors`: what fails most, by reason and PLD, with an example each.

Nodes count failed tries, also those that are repeated, and URLs that ended unfetched. Redis keeps the
`failed_fetches.KEPT_MAX` most frequent pairs of reason and PLD, so that rare ones may be missing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from bigcrawl.commands.looking.explain import time_text
from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.replies import scores_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.commands.opened_crawl import OpenedCrawl
    from bigcrawl.config import Config

LIMIT = 5  # PLDs of each reason


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose rows."""
    add = parser.add_argument
    add("--reason", metavar="TEXT", help="only reasons that contain this")
    add("--pld", metavar="PLD", help="only this pay-level domain")
    add("--limit", type=int, default=LIMIT, metavar="N", help=f"how many PLDs of each reason; {LIMIT} by default")


def errors(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show what fails most, the most frequent reason first.

    Raises:
        ConfigError: there is no such crawl.
        TransientStoreError: Redis does not answer.
    """
    with server_of(config) as server:
        rows = asyncio.run(_read(config, server))
    if opts.reason:
        rows = [row for row in rows if opts.reason in row["reason"]]
    if opts.pld:
        rows = [row for row in rows if row["pld"] == opts.pld]
    data = {"errors": by_reason(rows, max(1, opts.limit))}
    return Result(data, errors_text(data))


async def _read(config: Config, server: str) -> list[dict[str, Any]]:
    async with opened(config, server) as crawl:
        return await read_errors(crawl)


async def read_errors(crawl: OpenedCrawl) -> list[dict[str, Any]]:
    """Return what fails, by reason and PLD, the most frequent first."""
    keys = CrawlKeys(crawl.config.crawl.name)
    counts = scores_of(await crawl.client.command("ZRANGE", keys.errors, 0, -1, "REV", "WITHSCORES"))
    examples = await crawl.client.command("HMGET", keys.examples, *[row for row, _ in counts]) if counts else []
    found = []
    for (member, fetches), example in zip(counts, examples, strict=True):
        reason, _, pld = member.partition("\n")
        time_ms, _, url = (example or b"0\n").decode(errors="replace").partition("\n")
        row = {"reason": reason, "pld": pld, "fetches": int(fetches), "last": time_text(int(time_ms)), "example": url}
        found.append(row)
    return found


def by_reason(rows: Sequence[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """Sum rows of `read_errors` by reason, the most frequent first, each with its `limit` worst PLDs."""
    reasons: dict[str, dict[str, Any]] = {}
    for row in rows:
        of_reason = reasons.setdefault(row["reason"], {"reason": row["reason"], "fetches": 0, "plds": 0, "worst": []})
        of_reason["fetches"] += row["fetches"]
        of_reason["plds"] += 1
        if len(of_reason["worst"]) < limit:
            of_reason["worst"].append({name: value for name, value in row.items() if name != "reason"})
    return sorted(reasons.values(), key=lambda of_reason: -of_reason["fetches"])


def errors_text(data: dict[str, Any]) -> str:
    """Return the result as text."""
    lines = []
    for found in data["errors"]:
        some = "1 PLD" if found["plds"] == 1 else f"{found['plds']:,} PLDs"
        lines.append(f"{found['reason']:<28}{found['fetches']:>10,}  in {some}")
        lines += [f"  {row['pld']:<26}{row['fetches']:>10,}  {row['last']}  {row['example']}" for row in found["worst"]]
    return "\n".join(lines) or "nothing of this kind has failed"
