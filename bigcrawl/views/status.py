"""Reads the state of the whole crawl and of each node, from Redis only."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.json_text import read_json
from bigcrawl.redisdb.replies import scores_of
from bigcrawl.redisdb.scripts import looking
from bigcrawl.scheduler.crawl.alike import SINCE, VERSION
from bigcrawl.scheduler.crawl.crawl_record import BEGAN
from bigcrawl.scheduler.crawl.node_reports import read_or_nothing, read_settings
from bigcrawl.scheduler.crawl.start_requests import SEEDS, SEEDS_MAX
from bigcrawl.scheduler.crawl.survey import Survey, survey
from bigcrawl.scheduler.node.control import DISCOVERY, DRAINED, PAUSED, Discovery
from bigcrawl.scheduler.queues.epoch_directory import REJECTED
from bigcrawl.views.feature import all_views
from bigcrawl.views.orders import discovery_data, speed_of
from bigcrawl.views.standstill import CrawlFacts, done_in_s, possible_rate, standstill_reasons

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bigcrawl.config import Config
    from bigcrawl.views.opened_crawl import OpenedCrawl

SIZES: Final = {"seen": "seen", "tables": "table", "queues": "queue"}

SCOPE_NAMES: Final = 3
FIGURE_CHARACTERS: Final = 60

IMPORTING: Final = "importing"
"""The field of the crawl record that marks an incomplete import."""


async def status_of(crawl: OpenedCrawl) -> dict[str, Any]:
    """Return a crawl's nodes, its partitions, hosts and URLs by state, its pages and rates.

    Cost: four Redis commands.
    """
    config, client = crawl.config, crawl.client
    [view] = await client.run([looking.look_crawl(crawl.crawl_keys, config.frontier.lease_ms)])
    seen = await survey(client, config.crawl.name, crawl.partitions)
    speed = speed_of(config, view.control, view.now_ms)
    nodes = {name: read_or_nothing(report) for name, report in sorted(view.reports.items())}
    starts = [value.decode() for name, value in view.record.items() if name.startswith("start:")]
    awaited = _awaited_host(seen, client.now_ms())
    discovery = discovery_data(Discovery.from_field(view.control.get(DISCOVERY)))
    tail = await _slowest_host(crawl, list(nodes.values()))
    facts = CrawlFacts(
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
    why, done = standstill_reasons(facts), done_in_s(facts)
    status = _status_data(config, seen, nodes, finished=facts.finished)
    possible = possible_rate(facts, config, speed["pages_per_s"])
    return {
        **status,
        **_identity_data(config, view.record),
        "paused": speed["paused"],
        "possible_per_s": possible.per_s,
        "possible_by": possible.why,
        "items": view.made.items,
        "log": {"warnings": view.made.warnings, "errors": view.made.errors},
        "awaited_host": awaited,
        "standstill": why,
        "done_in_s": done,
        "tail": tail,
        "discovery": discovery,
    }


def _identity_data(config: Config, record: Mapping[str, bytes]) -> dict[str, Any]:
    """Return a crawl's spider, first seeds, start, scope and contact."""
    try:
        seeds = [str(url) for url in read_json(record.get(SEEDS) or b"[]")]
    except (ValueError, TypeError):
        seeds = []
    filters, began = config.filters, record.get(BEGAN, b"")
    named = f": {', '.join(filters.scope_list[:SCOPE_NAMES])}" if filters.scope == "list" else ""
    return {
        "spider": record.get("spider", b"").decode("utf-8", "replace"),
        "seeds": seeds[:SEEDS_MAX],
        "since_s": int(began) / 1000 if began.isdigit() else None,
        "scope": filters.scope + named + (", ..." if named and len(filters.scope_list) > SCOPE_NAMES else ""),
        "contact": config.politeness.contact,
    }


def _awaited_host(seen: Survey, now_ms: int) -> dict[str, Any] | None:
    due = seen.next_due
    if seen.hosts_ready or not seen.hosts_waiting or due is None:
        return None
    due_in_s = max(0.0, round((due.due_ms - now_ms) / 1000, 1))
    return {"host": due.host, "due_in_s": due_in_s, "failures": due.failures, "why": due.why or None}


async def _slowest_host(crawl: OpenedCrawl, reports: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    hosts = [report["longest"] for report in reports if report.get("longest")]
    if not hosts:
        return None
    host, urls = max(hosts, key=itemgetter(1))
    key = crawl.keys(crawl.place_of(f"http://{host}/").partition).host + host
    delay = await crawl.client.command("HGET", key, "delay")
    rest_s = max(crawl.config.politeness.host_delay_ms, int(float(delay or 0))) / 1000
    return {"host": host, "urls": urls, "rest_s": rest_s, "least_s": round(urls * rest_s, 1)}


def _status_data(config: Config, seen: Survey, nodes: dict[str, dict[str, Any]], *, finished: bool) -> dict[str, Any]:
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
                "items": report.get("items", 0),
                "items_per_s": report.get("item_rate", 0.0),
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
        "unrunnable": dict(seen.unrunnable),
        "waits_for_code": seen.waits_for_code,
        "pages": seen.pages,
        "bytes": seen.counts["bytes"],
        "sizes": {name: seen.counts[f"{field}_bytes"] for name, field in SIZES.items()},
        **{name: value for view in all_views() for name, value in view.status(seen.counts, nodes.values()).items()},
        "pages_per_s": round(sum(report.get("rate", 0.0) for report in nodes.values()), 1),
        "items_per_s": round(sum(report.get("item_rate", 0.0) for report in nodes.values()), 1),
        "figures": _figures_of(nodes.values()),
        "outcomes": {name: count for name, count in sorted(seen.counts.items()) if ":" in name},
    }


def _figures_of(reports: Iterable[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Return the sums of spiders' own counts since their nodes started: each a number, or a part and its whole."""
    sums: dict[str, list[float]] = {}
    for report in reports:
        for name, value in report.get("figures", {}).items():
            numbers = value if isinstance(value, list) else [value]
            if not 1 <= len(numbers) <= 2 or not all(isinstance(number, int | float) for number in numbers):
                continue
            before = sums.get(name, [0] * len(numbers))
            if len(before) == len(numbers):
                sums[name[:FIGURE_CHARACTERS]] = [one + other for one, other in zip(before, numbers, strict=True)]
    return sums


async def read_nodes(crawl: OpenedCrawl) -> list[dict[str, Any]]:
    keys, client = crawl.crawl_keys, crawl.client
    beats = scores_of(await client.command("ZRANGE", keys.beats, 0, -1, "WITHSCORES"))
    reports = await client.command("HMGET", keys.nodes, *[name for name, _ in beats]) if beats else []
    settings = await read_settings(client, crawl.config.crawl.name)
    orders = {name.decode() for name in await client.command("HKEYS", keys.control)}
    now_ms = client.now_ms()
    rows = []
    for (name, beat_ms), text in sorted(zip(beats, reports, strict=True)):
        report = read_or_nothing(text or b"")
        silent_ms = max(0, now_ms - beat_ms)
        state = "silent" if silent_ms > crawl.config.frontier.lease_ms else "runs"
        if state == "runs" and f"{DRAINED}:{name}" in orders:
            state = "is being drained"
        elif state == "runs" and orders & {PAUSED, f"{PAUSED}:{name}"}:
            state = "paused"
        rows.append(
            {
                "node": name,
                "state": state,
                "version": report.get(VERSION, ""),
                "last_heard_s": round(silent_ms / 1000, 1),
                "up_s": round((beat_ms - report.get(SINCE, beat_ms)) / 1000, 1),
                "partitions": report.get("partitions", 0),
                "pages": report.get("pages", 0),
                "pages_per_s": report.get("rate", 0.0),
                "items": report.get("items", 0),
                "items_per_s": report.get("item_rate", 0.0),
                "warnings": report.get("warnings", 0),
                "errors": report.get("errors", 0),
                "held": report.get("held", 0),
                "stages": report.get("stages", {}),
                "fetches_max": report.get("fetches_max", 0),
                "outbox": report.get("outbox", 0),
                "late_ms": report.get("late_ms", 0),
                "crowded": report.get("crowded", False),
                "trouble": report.get("trouble", ""),
                "settings": settings.get(name, {}),
            }
        )
    return rows
