"""`scrapy frontier status`: the state of the whole crawl, from Redis only.

A stopped embedded server is started for the query; a crawl that starts meanwhile uses it.
"""

from __future__ import annotations

import asyncio
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from bigcrawl.commands.looking.standstill import Facts, done_in_s, standstill
from bigcrawl.commands.moving.begun_crawl import IMPORTING
from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.commands.steering.discovery import discovery_data
from bigcrawl.commands.steering.speed import speed_of
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.node_reports import read_or_nothing
from bigcrawl.scheduler.crawl.survey import survey
from bigcrawl.scheduler.node.control import DISCOVERY, Discovery
from bigcrawl.scheduler.queues.epoch_directory import REJECTED

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.commands.opened_crawl import OpenedCrawl
    from bigcrawl.config import Config
    from bigcrawl.scheduler.crawl.survey import Survey


def status(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show the state of the crawl; the exit status is 1 if inbox entries could not be read.

    Raises:
        as `read_status`.
    """
    with server_of(config) as server:
        found = asyncio.run(read_status(config, server))
    return Result(found, status_text(found), 1 if found["rejected"]["entries"] else 0)


async def read_status(config: Config, server: str) -> dict[str, Any]:
    """Return the crawl's nodes, partitions, hosts and URLs by state, pages and rates.

    Who asks again and again opens the crawl once and calls `status_of`.

    Raises:
        ConfigError: there is no such crawl.
        TransientStoreError: Redis does not answer.
    """
    async with opened(config, server) as crawl:
        return await status_of(crawl)


async def status_of(crawl: OpenedCrawl) -> dict[str, Any]:
    """Return what `read_status` does, of a crawl that is open.

    Cost: a survey and two more commands, so four with the default of 256 partitions, and one a second for the time.

    Raises:
        TransientStoreError: Redis does not answer.
    """
    config, client = crawl.config, crawl.client
    [view] = await client.run([scripts.look_crawl(CrawlKeys(config.crawl.name), config.frontier.lease_ms)])
    seen = await survey(client, config.crawl.name, crawl.partitions)
    speed = speed_of(config, view.control, view.now_ms)
    nodes = {name: read_or_nothing(report) for name, report in sorted(view.reports.items())}
    starts = [value.decode() for name, value in view.record.items() if name.startswith("start:")]
    awaited = _awaited_host(seen, client.now_ms())
    discovery = discovery_data(Discovery.from_field(view.control.get(DISCOVERY)))
    tail = await _tail(crawl, list(nodes.values()))
    facts = Facts(
        seen,
        nodes,
        finished="finished" in view.record,
        importing=IMPORTING in view.record,
        starting=tuple(value.partition("\n")[0] for value in starts if not value.startswith("done")),
        paused=frozenset(speed["paused"]),
        has_speed=0 not in (speed["pages_per_s"], speed["bytes_per_s"]),
        speed_by_hand=speed["by_hand"] is not None,
        pages_max=config.crawl.pages_max,
        awaited=awaited,
    )
    why, done = standstill(facts), done_in_s(facts)
    status = _status(config, seen, nodes, finished=facts.finished)
    return {
        **status,
        "awaited_host": awaited,
        "standstill": why,
        "done_in_s": done,
        "tail": tail,
        "discovery": discovery,
    }


def _awaited_host(seen: Survey, now_ms: int) -> dict[str, Any] | None:
    """Return the host that is due first while none is due now; None if no URL waits for a host."""
    due = seen.next_due
    if seen.hosts_ready or not seen.hosts_waiting or due is None:
        return None
    due_in_s = max(0.0, round((due.due_ms - now_ms) / 1000, 1))
    return {"host": due.host, "due_in_s": due_in_s, "failures": due.failures, "why": due.why or None}


async def _tail(crawl: OpenedCrawl, reports: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the host with the most URLs, as nodes report; None if none has any.

    Its URLs, one rest apart, bound the end of the crawl from below.
    """
    hosts = [report["longest"] for report in reports if report.get("longest")]
    if not hosts:
        return None
    host, urls = max(hosts, key=itemgetter(1))
    key = crawl.keys(crawl.place_of(f"http://{host}/").partition).host + host
    delay = await crawl.client.command("HGET", key, "delay")
    rest_s = max(crawl.config.politeness.host_delay_ms, int(float(delay or 0))) / 1000
    return {"host": host, "urls": urls, "rest_s": rest_s, "least_s": round(urls * rest_s, 1)}


def _status(config: Config, seen: Survey, nodes: dict[str, dict[str, Any]], *, finished: bool) -> dict[str, Any]:
    return {
        "crawl": config.crawl.name,
        "finished": finished,
        "nodes": {
            name: {
                "partitions": seen.owners[name],
                "held": report.get("held", 0),
                "fetches_max": report.get("fetches_max", 0),
                "outbox": report.get("outbox", 0),
                "pages_per_s": report.get("rate", 0.0),
            }
            for name, report in nodes.items()
        },
        "partitions": {
            "all": seen.partitions,
            "owned": seen.owned,
            "damaged": seen.counts["damaged"],
            "missing": seen.counts["missing"],
            "begun_anew": seen.counts["begun_anew"],
        },
        "rejected": {
            "entries": seen.counts["rejected"],
            "below": [str(config.crawl.crawl_dir / f"p{number:04d}" / REJECTED) for number in seen.rejected_in],
        },
        "hosts": {
            "ready": seen.hosts_ready,
            "waiting": seen.hosts_waiting,
            "busy": seen.hosts_busy,
            "snoozed": seen.hosts_snoozed,
            "retired": seen.hosts_retired,
        },
        "urls": {
            "inbox": seen.urls_inbox,
            "disk": seen.urls_disk,
            "withheld": seen.counts["withheld"],
            "unrunnable": seen.counts["unrunnable"],
            "queued": seen.urls_queued,
            "taken": seen.urls_taken,
            "damaged": seen.urls_damaged,
            "missing": seen.urls_missing,
            "may_refetch": seen.counts["may_refetch"],
            "lost": seen.counts["lost"],
            "uncounted": seen.urls_uncounted,
            "ended": seen.counts["ended"],
            "seen": seen.counts["seen"],
            "dead": seen.counts["dead"],
        },
        "revisits": {
            "waiting": seen.counts["revisits"],
            "overdue": seen.counts["overdue"],
            "late_s": max((report.get("visits_late_s", 0) for report in nodes.values()), default=0),
        },
        "unrunnable": dict(seen.unrunnable),
        "waits_for_code": seen.waits_for_code,
        "pages": seen.pages,
        "bytes": seen.counts["bytes"],
        "copies": {"exact": seen.counts["exact_copies"], "near": seen.counts["near_copies"]},
        "mirrors": seen.counts["mirrors"],
        "pages_per_s": round(sum(report.get("rate", 0.0) for report in nodes.values()), 1),
        "outcomes": {name: count for name, count in sorted(seen.counts.items()) if ":" in name},
    }


def status_text(status: dict[str, Any]) -> str:
    """Return the status as text."""
    lines = overview_lines(status)
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
    """Return the lines of the text that are about the crawl as a whole."""
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
    if (revisits := status["revisits"])["waiting"]:
        late = f"; visits come {_time_text(revisits['late_s'])} late" if revisits["late_s"] else ""
        waiting, overdue = revisits["waiting"], revisits["overdue"]
        lines.append(f"revisits    {waiting:,} pages wait for their next visit, {overdue:,} overdue{late}")
    if status["tail"] and status["tail"]["least_s"] > (status["done_in_s"] or 0):
        tail = status["tail"]
        lines.insert(
            2,
            f"tail        {tail['host']}: {tail['urls']:,} URLs, {tail['rest_s']:g} s apart, "
            f"{_time_text(tail['least_s'])} at least",
        )
    lines[1:1] = [f"standstill  {reason}" for reason in status["standstill"]]
    return lines + _notice_lines(status)


def _notice_lines(status: dict[str, Any]) -> list[str]:
    """Return a line for each thing that most crawls do not have: copies, damage, losses."""
    lines, urls = [], status["urls"]
    if not status["discovery"]["is_on"]:
        lines.append(f"discovery   off since {status['discovery']['off_from']}: links found since are not queued")
    if any((copies := status["copies"]).values()):
        lines.append(f"copies      {copies['exact']:,} exact, {copies['near']:,} near: see scrapy frontier copies")
    if mirrors := status["mirrors"]:
        lines.append(f"mirrors     {mirrors:,} PLDs have lower budgets for it: see scrapy frontier budget PLD")
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
    """What waits is done in this time, if no more is found."""
    if seconds is None:
        return ""
    return f"; what waits now takes {_time_text(seconds)}"


def _time_text(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:,.0f} s"
