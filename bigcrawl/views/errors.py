"""Reads the most frequent failures, by reason and PLD, with examples; Redis keeps `failed_fetches.KEPT_MAX`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.clock import time_text
from bigcrawl.redisdb.replies import scores_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.views.opened_crawl import OpenedCrawl


async def read_errors(crawl: OpenedCrawl) -> list[dict[str, Any]]:
    keys = crawl.crawl_keys
    counts = scores_of(await crawl.client.command("ZRANGE", keys.errors, 0, -1, "REV", "WITHSCORES"))
    examples = await crawl.client.command("HMGET", keys.examples, *[row for row, _ in counts]) if counts else []
    return error_rows(counts, examples)


def error_rows(counts: Sequence[tuple[str, float]], examples: Sequence[bytes | None]) -> list[dict[str, Any]]:
    found = []
    for (member, fetches), example in zip(counts, examples, strict=True):
        reason, _, pld = member.partition("\n")
        time_ms, _, url = (example or b"0\n").decode(errors="replace").partition("\n")
        row = {"reason": reason, "pld": pld, "fetches": int(fetches), "last": time_text(int(time_ms)), "example": url}
        found.append(row)
    return found


def by_reason(rows: Sequence[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """Sum the rows of `read_errors` by reason; return the most frequent first, each with its `limit` worst PLDs."""
    reasons: dict[str, dict[str, Any]] = {}
    for row in rows:
        of_reason = reasons.setdefault(row["reason"], {"reason": row["reason"], "fetches": 0, "plds": 0, "worst": []})
        of_reason["fetches"] += row["fetches"]
        of_reason["plds"] += 1
        if len(of_reason["worst"]) < limit:
            of_reason["worst"].append({name: value for name, value in row.items() if name != "reason"})
    return sorted(reasons.values(), key=lambda of_reason: -of_reason["fetches"])
