"""`scrapy frontier status` and `nodes`, from Redis only.

An embedded Redis server that was stopped runs during the query; a crawl that starts meanwhile takes it over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bigcrawl.clock import length_text
from bigcrawl.commands.looking.sizes import page_bytes, redis_bytes
from bigcrawl.commands.result import Result
from bigcrawl.views.feature import all_views
from bigcrawl.views.opened_crawl import in_crawl
from bigcrawl.views.status import read_nodes, status_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config
    from bigcrawl.views.opened_crawl import OpenedCrawl

_SIZES: Final = {
    "seen": "URLSeen",
    "queues": "queues",
    "tables": "other tables",
    "redis": "Redis",
    "pages": "WARC files here",
    "indexes": "files beside them",
}


def status(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show the state of the crawl; the exit status is 1 if inbox entries could not be read."""
    found = in_crawl(config, _read_status)
    found["sizes"] |= page_bytes(config.crawl.warc_dir)
    return Result(found, status_text(found), 1 if found["rejected"]["entries"] else 0)


async def _read_status(crawl: OpenedCrawl) -> dict[str, Any]:
    found = await status_of(crawl)
    found["sizes"]["redis"] = await redis_bytes(crawl)
    return found


def status_text(status: dict[str, Any]) -> str:
    lines = overview_lines(status)
    sizes = status["sizes"]
    shown = [f"{label} {sizes[name] / 1e6:,.1f} MB" for name, label in _SIZES.items() if sizes.get(name) is not None]
    lines.append(f"sizes       {', '.join(shown)}")
    for name, node in status["nodes"].items():
        lines.append(
            f"node        {name}: {node['partitions']} partitions, {node['held']} URLs held, "
            f"{node['fetches_max']} fetches at a time, {node['pages_per_s']:.1f} pages/s"
        )
    if not status["nodes"]:
        lines.append("node        none runs")
    lines += [f"  {name:<24}{count:>12,}" for name, count in status["outcomes"].items()]
    return "\n".join(lines)


def overview_lines(status: dict[str, Any]) -> list[str]:
    urls, hosts = status["urls"], status["hosts"]
    lines = [
        f"crawl {status['crawl']}{': finished' if status['finished'] else ''}",
        (
            f"pages       {status['pages']:,} ({status['bytes'] / 1e6:,.1f} MB), {status['pages_per_s']:.1f} a second"
            f"{_done_text(status['done_in_s'])}"
        ),
        (
            f"hosts       {hosts['ready']:,} ready, {hosts['waiting']:,} waiting, {hosts['busy']:,} busy; "
            f"{hosts['snoozed']:,} snoozed, {hosts['retired']:,} retired"
        ),
        (
            f"URLs        {urls['inbox']:,} in inboxes, {urls['disk']:,} on disk, {urls['queued']:,} in Redis, "
            f"{urls['taken']:,} taken, {urls['ended']:,} ended, {urls['withheld']:,} withheld; {urls['seen']:,} seen"
        ),
        f"partitions  {status['partitions']['owned']} of {status['partitions']['all']} owned",
    ]
    if status["tail"] and status["tail"]["least_s"] > (status["done_in_s"] or 0):
        tail = status["tail"]
        lines.insert(
            2,
            f"tail        {tail['host']}: {tail['urls']:,} URLs, {tail['rest_s']:g} s apart, "
            f"{length_text(tail['least_s'])} at least",
        )
    lines[1:1] = [f"standstill  {reason}" for reason in status["standstill"]]
    return lines + _notice_lines(status)


def _notice_lines(status: dict[str, Any]) -> list[str]:
    lines, urls = [], status["urls"]
    if not status["discovery"]["is_on"]:
        lines.append(f"discovery   off since {status['discovery']['off_from']}: links found since are not queued")
    lines += [line for view in all_views() for line in view.status_lines(status)]
    if damaged := status["partitions"]["damaged"]:
        lines.append(
            f"damaged     {damaged} partitions, where {urls['damaged']:,} URLs wait: see scrapy frontier repair"
        )
    if missing := status["partitions"]["missing"]:
        lines.append(
            f"missing     {missing} partitions have their files nowhere, and {urls['missing']:,} URLs wait there: "
            f"bring the files back, start the node that has them, or see BIGCRAWL_LOST_PARTITIONS"
        )
    if anew := status["partitions"]["begun_anew"]:
        lines.append(
            f"begun anew  {anew} partitions, whose files were lost: up to {urls['may_refetch']:,} URLs are fetched "
            f"twice"
        )
    if status["waits_for_code"]:
        lines.append(f"unrunnable  {status['waits_for_code']}")
    if rejected := status["rejected"]["entries"]:
        first, *others = status["rejected"]["below"]
        more = f" and {len(others)} more" if others else ""
        lines.append(
            f"rejected    {rejected:,} inbox entries could not be read; they lie below {first}{more}: "
            f"see scrapy frontier rejected"
        )
    if urls["lost"]:
        lines.append(f"lost        {urls['lost']:,} URLs by a Redis that forgot them; see BIGCRAWL_REDIS_LOSS_SECONDS")
    if urls["uncounted"]:
        lines.append(f"uncounted   {urls['uncounted']:,} URLs were seen and are in no place: please report this")
    if urls["dead"]:
        lines.append(f"dead        {urls['dead']:,} URLs kill or hang their node; `scrapy frontier dead` lists them")
    return lines


def _done_text(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"; the URLs that wait now take {length_text(seconds)}"


def nodes(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show the live nodes and those that died recently."""
    found = in_crawl(config, read_nodes)
    return Result({"nodes": found}, nodes_text(found))


def nodes_text(rows: Sequence[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        stages = ", ".join(f"{count:,} {stage}" for stage, count in sorted(row["stages"].items())) or "none"
        version = f", bigcrawl {row['version']}" if row["version"] else ""
        lines += [
            f"{row['node']}: {row['state']}{version}, seen {row['last_heard_s']:,.1f} s ago, up {row['up_s']:,.0f} s",
            f"  pages     {row['pages']:,}, {row['pages_per_s']:.1f} a second",
            f"  has       {row['partitions']:,} partitions; URLs held: {stages}; {row['outbox']:,} in its outbox",
            f"  fetches   {row['fetches_max']:,} at a time; hosts start {row['late_ms']:,} ms late",
        ]
        if row["crowded"]:
            lines.append("  takes     nothing: outbox or inboxes are full")
        if row["trouble"]:
            lines.append(f"  waits     {row['trouble']}")
    return "\n".join(lines) or "no node runs"
