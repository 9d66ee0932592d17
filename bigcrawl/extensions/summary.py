"""The summary table at a crawl's end, modelled on PolyBot's Tables 4.1 and 4.2."""

from __future__ import annotations

from http.client import responses
from typing import TYPE_CHECKING

from bigcrawl.scheduler.records.outcomes import HEADS

if TYPE_CHECKING:
    from bigcrawl.scheduler.adapter.frontier import Frontier
    from bigcrawl.scheduler.crawl.survey import Survey

Row = tuple[str, str]


def summary_table(
    frontier: Frontier, seen: Survey, reason: str, seconds: float, pages_before: int, refused: int = 0
) -> str:
    """Return the figures of the whole crawl, with duration and rate of this run, and its `refused` requests."""
    rows = [
        *_request_rows(seen),
        *_grouped_rows(seen, "error", "errors"),
        *_grouped_rows(seen, "dropped", "not fetched"),
        *([("requests that this node could not store", f"{refused:,}")] if refused else []),
        *_status_rows(seen),
        *_amount_rows(seen),
        *_this_run(frontier, seen, seconds, pages_before),
    ]
    width = max(len(label) for label, _ in rows) + 2
    lines = [f"{label:<{width}}{value:>14}" if value else label for label, value in rows]
    title = f"crawl {frontier.config.crawl.name}: {_ending_text(reason, seen)}{_refusals_text(refused)}"
    where = frontier.config.crawl.warc_dir
    footer = f"WARC files: {where}" if where else "pages were not stored (BIGCRAWL_WARC_DIR is empty)"
    return "\n".join(["", title, *lines, footer, *filter(None, [seen.waits_for_code]), ""])


def _ending_text(reason: str, seen: Survey) -> str:
    if reason == "finished":
        withheld, dead = seen.counts["withheld"], seen.counts["dead"]
        letters = f"; {dead:,} URLs are dead letters (scrapy frontier dead)" if dead else ""
        if not withheld:
            return f"finished{letters}"
        retired = f", or their host is one of the {seen.hosts_retired:,} retired ones" if seen.hosts_retired else ""
        return f"finished; {withheld:,} URLs are withheld: no budget lets them go{retired}{letters}"
    return f"stopped ({reason}), {seen.waiting + seen.urls_taken} URLs wait; the same command continues"


def _refusals_text(refused: int) -> str:
    return f"; {refused:,} requests could not be stored and were refused, see the errors above" if refused else ""


def _sum_counts(seen: Survey, prefix: str) -> int:
    return sum(count for name, count in seen.counts.items() if name.startswith(prefix + ":"))


def _request_rows(seen: Survey) -> list[Row]:
    heads = sum(seen.counts[counter] for counter in HEADS)
    requests = seen.pages + _sum_counts(seen, "error") + _sum_counts(seen, "retried") + seen.counts["robots"] + heads
    return [
        ("HTTP requests", f"{requests:,}"),
        ("robots.txt requests", f"{seen.counts['robots']:,}"),
        ("pages (any status)", f"{seen.pages:,}"),
        ("tries that were repeated", f"{_sum_counts(seen, 'retried'):,}"),
    ]


def _grouped_rows(seen: Survey, prefix: str, label: str) -> list[Row]:
    rows = [(f"{label}", f"{_sum_counts(seen, prefix):,}")]
    named = sorted((name, count) for name, count in seen.counts.items() if name.startswith(prefix + ":"))
    return rows + [(f"  {name.partition(':')[2]}", f"{count:,}") for name, count in named]


def _status_rows(seen: Survey) -> list[Row]:
    rows = []
    for name, count in sorted(seen.counts.items()):
        if name.startswith("status:"):
            code = int(name.partition(":")[2])
            share = 100 * count / max(seen.pages, 1)
            rows.append((f"  {code} {responses.get(code, '')}".rstrip(), f"{count:,} {share:6.2f}%"))
    return rows


def _amount_rows(seen: Survey) -> list[Row]:
    size = seen.counts["bytes"]
    return [
        ("mean size of a page", f"{size // max(seen.pages, 1):,} bytes"),
        ("total data", f"{size / 1e6:,.1f} MB"),
        ("URLs seen", f"{seen.counts['seen']:,}"),
        ("duplicates among links", f"{seen.counts['duplicates']:,}"),
    ]


def _this_run(frontier: Frontier, seen: Survey, seconds: float, pages_before: int) -> list[Row]:
    pages = seen.pages - pages_before
    rows = [
        ("duration of this run", f"{seconds:,.1f} s"),
        ("pages/s of this run", f"{pages / max(seconds, 1e-3):,.1f}"),
    ]
    if pages_before:
        rows.insert(0, ("pages of this run", f"{pages:,}"))
    return rows
