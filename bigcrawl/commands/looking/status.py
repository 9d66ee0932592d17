"""`scrapy frontier status` and `nodes`, from Redis only. They start a stopped embedded Redis meanwhile."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.clock import length_text, time_text
from bigcrawl.commands.result import BOLD, GREEN, YELLOW, Result, painted, table_lines, wrapped_lines
from bigcrawl.scheduler.crawl.start_requests import SEEDS_MAX
from bigcrawl.views.feature import all_views
from bigcrawl.views.opened_crawl import in_crawl
from bigcrawl.views.status import read_nodes, status_of
from bigcrawl.warc.files import OPEN_SUFFIX, WARC_SUFFIX

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

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
_NODES: Final = {"node": -31, "pages/s": 9, "items/s": 9, "fetches": 9, "held": 9, "partitions": 12}
INDENT: Final = 12
RUNS: Final = "runs"
FINISHED: Final = "finished"
WRONG: Final = frozenset(
    ("standstill", "log", "damaged", "missing", "begun anew", "unrunnable", "rejected", "lost", "uncounted", "dead")
)
"""Labels of lines that may need an operator."""


def status(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show the state of the crawl; the exit status is 1 if inbox entries could not be read."""
    found = in_crawl(config, _read_status)
    found["sizes"] |= page_bytes(config.crawl.warc_dir)
    return Result(found, status_text(found), 1 if found["rejected"]["entries"] else 0, paint_status)


async def _read_status(crawl: OpenedCrawl) -> dict[str, Any]:
    found = await status_of(crawl)
    found["sizes"]["redis"] = await redis_bytes(crawl)
    return found


def status_text(status: dict[str, Any]) -> str:
    lines = [*title_lines(status), *_identity_lines(status), *_figure_lines(status), *notice_lines(status)]
    sizes = status["sizes"]
    shown = [f"{label} {sizes[name] / 1e6:,.1f} MB" for name, label in _SIZES.items() if sizes.get(name) is not None]
    lines.append(f"sizes       {', '.join(shown)}")
    if not status["nodes"]:
        lines.append("node        none runs")
    lines = [part for line in lines for part in wrapped_lines(line, INDENT)]
    if status["nodes"]:
        lines += table_lines(_NODES, (_node_cells(name, node) for name, node in status["nodes"].items()))
    lines += [f"  {name:<24}{count:>12,}" for name, count in status["outcomes"].items()]
    return "\n".join(lines)


def _node_cells(name: str, node: dict[str, Any]) -> Sequence[str]:
    return (
        f"  {name}"[: -_NODES["node"] - 1],
        f"{node['pages_per_s']:,.1f}",
        f"{node['items_per_s']:,.1f}",
        f"{node['fetches_max']:,}",
        f"{node['held']:,}",
        f"{node['partitions']:,}",
    )


def paint_status(text: str) -> str:
    first, *others = text.split("\n")
    name, colon, state = first.rpartition(": ")
    is_well = state in (RUNS, FINISHED)
    lines = [painted(name + colon, BOLD) + painted(state, GREEN if is_well else YELLOW)]
    for line in others:
        label = line[:INDENT]
        is_wrong = label.rstrip() in WRONG and not (is_well and label.startswith("standstill"))
        lines.append(painted(label, YELLOW if is_wrong else BOLD) + line[INDENT:] if line[:1].strip() else line)
    return "\n".join(lines)


def state_of(status: dict[str, Any]) -> str:
    if status["finished"]:
        return FINISHED
    if not status["nodes"]:
        return "no node runs"
    if "" in status["paused"]:
        return "paused"
    return RUNS if status["pages_per_s"] else "stands still"


def _identity_lines(status: dict[str, Any]) -> list[str]:
    since = f", since {time_text(round(status['since_s'] * 1000))}" if status["since_s"] else ""
    lines = [f"spider      {status['spider']}{since}"] if status["spider"] else []
    seeds = status["seeds"]
    lines += [f"seeds       {', '.join(seeds)}{', ...' if len(seeds) == SEEDS_MAX else ''}"] if seeds else []
    lines += [f"scope       {status['scope']}"] if status["scope"] != "any" else []
    return lines + ([f"contact     {status['contact']}"] if status["contact"] else [])


def title_lines(status: dict[str, Any]) -> list[str]:
    title = f"crawl {status['crawl']}: {state_of(status)}"
    return [title, *(f"standstill  {reason}" for reason in status["standstill"])]


def _figure_lines(status: dict[str, Any]) -> list[str]:
    urls, hosts, log = status["urls"], status["hosts"], status["log"]
    pages = _cells((status["pages"], "in all"), (status["pages_per_s"], "a second"))
    items = _cells((status["items"], "in all"), (status["items_per_s"], "a second"))
    lines = [f"pages       {pages}{status['bytes'] / 1e6:>13,.1f} MB", f"items       {items.rstrip()}"]
    if possible := status["possible_per_s"]:
        lines.append(f"possible    {possible:,.1f} pages a second at most now, by {status['possible_by']}")
    lines += end_lines(status)
    for name, numbers in status["figures"].items():
        share = f" of {numbers[1]:,}, {numbers[0] / (numbers[1] or 1):.1%}" if len(numbers) > 1 else ""
        lines.append(f"counts      {name}: {numbers[0]:,}{share}")
    if any(log.values()):
        lines.append(f"log         {log['warnings']:,} warnings, {log['errors']:,} errors: see scrapy frontier recent")
    lines += [
        f"hosts       {_cells(*((hosts[name], name) for name in ('ready', 'waiting', 'busy')))}".rstrip(),
        f"            {_cells(*((hosts[name], name) for name in ('snoozed', 'retired')))}".rstrip(),
        f"URLs        {_cells((urls['inbox'], 'in inbox'), (urls['disk'], 'on disk'), (urls['queued'], 'in Redis'))}",
        f"            {_cells((urls['taken'], 'taken'), (urls['ended'], 'ended'), (urls['seen'], 'seen'))}".rstrip(),
    ]
    if urls["withheld"]:
        lines.append(f"withheld    {urls['withheld']:,} URLs on disk, which the crawl does not wait for")
    return [*lines, f"partitions  {status['partitions']['owned']:,} of {status['partitions']['all']:,} owned"]


def _cells(*cells: tuple[float, str]) -> str:
    """Return numbers and their units in columns; three columns fit into 80 characters beside a label."""
    return "".join(
        f"{number:>13,.1f} {unit:<8}" if isinstance(number, float) else f"{number:>13,} {unit:<8}"
        for number, unit in cells
    )


def end_lines(status: dict[str, Any]) -> list[str]:
    done_s, tail = status["done_in_s"], status["tail"]
    lines = [f"done        in {length_text(done_s)}, if no more URLs are found"] if done_s is not None else []
    if tail and tail["least_s"] > (done_s or 0):
        lines.append(
            f"tail        {tail['host']}: {tail['urls']:,} URLs, {tail['rest_s']:g} s apart, "
            f"{length_text(tail['least_s'])} at least"
        )
    return lines


def notice_lines(status: dict[str, Any]) -> list[str]:
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
            f"  items     {row['items']:,}, {row['items_per_s']:.1f} a second",
            f"  log       {row['warnings']:,} warnings, {row['errors']:,} errors",
            f"  has       {row['partitions']:,} partitions; URLs held: {stages}; {row['outbox']:,} in its outbox",
            f"  fetches   {row['fetches_max']:,} at a time; hosts start {row['late_ms']:,} ms late",
        ]
        if row["crowded"]:
            lines.append("  takes     nothing: outbox or inboxes are full")
        if row["trouble"]:
            lines.append(f"  waits     {row['trouble']}")
    return "\n".join(lines) or "no node runs"


_find_used = re.compile(rb"^used_memory:(\d+)", re.MULTILINE).search


async def redis_bytes(crawl: OpenedCrawl) -> int:
    """Return the memory that all Redis servers use, for other crawls too."""
    replies = await crawl.client.ask_each_server("INFO", "memory")
    return sum(int(found[1]) for found in map(_find_used, replies) if found is not None)


def page_bytes(directory: Path | None) -> dict[str, int | None]:
    """Return the bytes of WARC files and of all other files beside them; None if there is no WARC file."""
    pages = others = 0
    with suppress(OSError), os.scandir(directory or "") as entries:
        for entry in entries:
            size = 0
            with suppress(FileNotFoundError):  # renamed or moved meanwhile
                size = entry.stat().st_size if entry.is_file() else 0
            if entry.name.endswith((WARC_SUFFIX, WARC_SUFFIX + OPEN_SUFFIX)):
                pages += size
            else:
                others += size
    return {"pages": pages or None, "indexes": others if pages else None}
